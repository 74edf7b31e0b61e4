export type JsonMatches = { paths: Set<string>; hits: Set<string>; count: number };

/**
 * The paths whose key or value contains the text, and the paths of everything that contains them.
 */
export function findInJson(root: unknown, searchText: string): JsonMatches {
  const matches: JsonMatches = { paths: new Set(), hits: new Set(), count: 0 };
  const stack: { value: unknown; path: string; key: string; ancestors: string[] }[] = [
    { value: root, path: '$', key: '', ancestors: [] },
  ];
  while (stack.length) {
    const { value, path, key, ancestors } = stack.pop() as (typeof stack)[number];
    const isLeaf = value === null || typeof value !== 'object';
    if (
      key.toLowerCase().includes(searchText) ||
      (isLeaf && String(value).toLowerCase().includes(searchText))
    ) {
      matches.count += 1;
      matches.hits.add(path);
      for (const ancestor of ancestors) matches.paths.add(ancestor);
    }
    if (isLeaf) continue;
    for (const [name, child] of Object.entries(value as object)) {
      stack.push({
        value: child,
        path: `${path}/${name}`,
        key: Array.isArray(value) ? '' : name,
        ancestors: [...ancestors, path],
      });
    }
  }
  return matches;
}
