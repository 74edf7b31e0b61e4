// What the config of a signal node says, filled in or as it is written.

export function awaitedNames(config: Record<string, unknown>): string[] {
  const names = Array.isArray(config.names) ? config.names : [config.name];
  return names.filter((name) => typeof name === 'string');
}

/** Text, or the text of a number; empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
