// A workflow document as its author typed it, JSON or YAML, with the place of every value in the
// text. Both become the same tree; the JSON that is sent to the server is made from it.

export type Format = 'json' | 'yaml';
export type Range = { from: number; to: number };
export type Step = string | number;

export type ScalarValue = Range & { kind: 'scalar'; json: string; value: unknown };
export type ListValue = Range & { kind: 'list'; items: TreeValue[] };
export type ObjectValue = Range & { kind: 'object'; entries: Entry[] };
export type TreeValue = ScalarValue | ListValue | ObjectValue;
export type Entry = { name: string; key: Range; value: TreeValue };

export type TextProblem = Range & { severity: 'error' | 'warning'; message: string };
/** Without a `root` the text can't be read; `problems` say why. */
export type ParsedText = { root: TreeValue | null; problems: TextProblem[] };

export function plainValue(tree: TreeValue): unknown {
  if (tree.kind === 'scalar') return tree.value;
  if (tree.kind === 'list') return tree.items.map(plainValue);
  return Object.fromEntries(tree.entries.map(({ name, value }) => [name, plainValue(value)]));
}

/** The tree as JSON. Numbers are as they were typed: JavaScript would round long ones. */
export function jsonText(tree: TreeValue, indent = '', step = ''): string {
  if (tree.kind === 'scalar') return tree.json;
  const isList = tree.kind === 'list';
  const [open, close] = isList ? '[]' : '{}';
  const inner = indent + step;
  const colon = step ? ': ' : ':';
  const parts = isList
    ? tree.items.map((item) => jsonText(item, inner, step))
    : tree.entries.map(
        ({ name, value }) => JSON.stringify(name) + colon + jsonText(value, inner, step),
      );
  if (parts.length === 0) return `${open}${close}`;
  if (!step) return `${open}${parts.join(',')}${close}`;
  return `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`;
}

export function childOf(tree: TreeValue, step: Step): TreeValue | undefined {
  if (tree.kind === 'list') return tree.items[Number(step)];
  if (tree.kind === 'object') return tree.entries.find(({ name }) => name === String(step))?.value;
  return undefined;
}

/** The list of nodes; documents have it in `dag` or at the top. */
export function nodeListOf(root: TreeValue): ListValue | undefined {
  const nodes = childOf(childOf(root, 'dag') ?? root, 'nodes');
  return nodes?.kind === 'list' ? nodes : undefined;
}

/** The id of a node in the document, if it has one. */
export function nodeIdOf(node: TreeValue): string | undefined {
  const id = childOf(node, 'id');
  return id?.kind === 'scalar' && typeof id.value === 'string' ? id.value : undefined;
}

/** The steps of a path as the server writes it: `nodes[0].config["a b"].url`. */
export function stepsOf(path: string): Step[] {
  const steps: Step[] = [];
  for (const [, name, index, quoted] of path.matchAll(
    /\.?([^.[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]/g,
  )) {
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else if (quoted !== undefined) steps.push(quoted.slice(1, -1));
  }
  return steps;
}

/**
 * The place of a path in the text. A value that isn't there (a required field that is missing) has
 * the place of the first line of what should contain it.
 */
export function rangeOf(root: TreeValue, steps: readonly Step[], text: string): Range {
  let tree = root;
  for (let index = 0; index < steps.length; index += 1) {
    const step = rejoined(tree, steps, index);
    const next = childOf(tree, step.name);
    if (!next) return firstLine(tree, text);
    tree = next;
    index += step.length - 1;
  }
  return tree.kind === 'scalar' ? tree : firstLine(tree, text);
}

/** A name may contain dots, at which the path was split: the longest name that exists is meant. */
function rejoined(tree: TreeValue, steps: readonly Step[], index: number) {
  if (tree.kind === 'object') {
    for (let length = steps.length - index; length > 1; length -= 1) {
      const name = steps.slice(index, index + length).join('.');
      if (tree.entries.some((entry) => entry.name === name)) return { name, length };
    }
  }
  return { name: steps[index] as Step, length: 1 };
}

function firstLine({ from, to }: Range, text: string): Range {
  const end = text.indexOf('\n', from);
  return { from, to: end < 0 ? to : Math.max(from, Math.min(to, end)) };
}

/** The names that an object has twice: the server refuses them. */
export function duplicateNames(tree: TreeValue): TextProblem[] {
  if (tree.kind === 'scalar') return [];
  if (tree.kind === 'list') return tree.items.flatMap(duplicateNames);
  const seen = new Set<string>();
  return tree.entries.flatMap(({ name, key, value }) => {
    const isSecond = seen.has(name);
    seen.add(name);
    const problems = duplicateNames(value);
    if (isSecond) {
      problems.unshift({ ...key, severity: 'error', message: `“${name}” is here twice` });
    }
    return problems;
  });
}
