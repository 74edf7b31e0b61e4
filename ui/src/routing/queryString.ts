export type Changes = Record<string, string | string[] | null | undefined>;

/** `?a=1&b=2`, or nothing. An empty value leaves its name out. */
export function queryString(changes: Changes, from = new URLSearchParams()): string {
  for (const [name, value] of Object.entries(changes)) {
    from.delete(name);
    const items = Array.isArray(value) ? value : [value];
    for (const item of items) {
      if (item) from.append(name, item);
    }
  }
  const text = from.toString();
  return text ? `?${text}` : '';
}
