export type JsonMatches = { paths: Set<string>; hits: Set<string>; count: number };

/** The places whose key or value has the text in it, and all places on the way there. */
export function findInJson(root: unknown, wanted: string): JsonMatches {
  const found: JsonMatches = { paths: new Set(), hits: new Set(), count: 0 };
  const stack: { value: unknown; path: string; key: string; way: string[] }[] = [
    { value: root, path: '$', key: '', way: [] },
  ];
  while (stack.length) {
    const { value, path, key, way } = stack.pop() as (typeof stack)[number];
    const isLeaf = value === null || typeof value !== 'object';
    if (key.toLowerCase().includes(wanted) || (isLeaf && String(value).toLowerCase().includes(wanted))) {
      found.count += 1;
      found.hits.add(path);
      for (const each of way) found.paths.add(each);
    }
    if (isLeaf) continue;
    for (const [name, child] of Object.entries(value as object)) {
      stack.push({ value: child, path: `${path}/${name}`, key: Array.isArray(value) ? '' : name, way: [...way, path] });
    }
  }
  return found;
}
