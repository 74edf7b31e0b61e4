import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type ParsedNode,
  parseDocument,
  Scalar,
  type YAMLMap,
} from 'yaml';
import {
  duplicateNames,
  type Entry,
  type ParsedText,
  type Range,
  type TextProblem,
  type TreeValue,
} from './documentTree';

// What the server's YAML makes of words without quotes: what JSON has, and nothing else.
const NUMBER = /^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/;
const BOOLEAN = /^(?:true|True|TRUE|false|False|FALSE)$/;
const NULL = /^(?:~|null|Null|NULL|)$/;
const COPIES_MAX = 100_000;

class NotJson extends Error {
  readonly range: Range;

  constructor(message: string, range: Range) {
    super(message);
    this.range = range;
  }
}

/** YAML as a way to write JSON: the same values as on the server, with their places. */
export function parseYaml(text: string): ParsedText {
  const document = parseDocument(text, { schema: 'failsafe', uniqueKeys: false, merge: false });
  const problems = document.errors.map((error): TextProblem => {
    const [from, to] = error.pos;
    const message = `This isn't YAML: ${error.message.split(' at line ')[0]}`;
    return { from, to: Math.max(to, from + 1), severity: 'error', message };
  });
  if (problems.length) return { root: null, problems };
  try {
    const builder = new Builder(document as Document<Node>);
    const root = builder.treeOf(document.contents as Node | null);
    return { root, problems: duplicateNames(root) };
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return {
      root: null,
      problems: [{ ...error.range, severity: 'error', message: error.message }],
    };
  }
}

class Builder {
  private readonly document: Document<Node>;
  private copiesLeft = COPIES_MAX;

  constructor(document: Document<Node>) {
    this.document = document;
  }

  treeOf(node: Node | null): TreeValue {
    if (node === null) return { kind: 'scalar', json: 'null', value: null, from: 0, to: 0 };
    const range = placeOf(node);
    if (isAlias(node)) {
      this.copiesLeft -= 1;
      const target = this.copiesLeft > 0 ? node.resolve(this.document) : undefined;
      if (!target) throw new NotJson(`*${node.source} names no &${node.source} before it`, range);
      return { ...this.treeOf(target as Node), ...range };
    }
    if (isMap(node)) {
      return { kind: 'object', entries: this.entriesOf(node as YAMLMap<Node, Node>), ...range };
    }
    if (isSeq(node)) {
      return { kind: 'list', items: node.items.map((item) => this.treeOf(item as Node)), ...range };
    }
    return { kind: 'scalar', ...scalarOf(node, range), ...range };
  }

  /** What `<<` merges comes first; the object's own entries replace it. */
  private entriesOf(map: YAMLMap<Node, Node>): Entry[] {
    const merged: Entry[] = [];
    const own: Entry[] = [];
    for (const { key, value } of map.items) {
      const name = this.nameOf(key);
      const entry = { name, key: placeOf(key), value: this.treeOf(value as Node | null) };
      if (name === '<<' && isPlain(key)) merged.push(...mergedEntries(entry.value));
      else own.push(entry);
    }
    const names = new Set(own.map((entry) => entry.name));
    return [...merged.filter(({ name }) => !names.has(name)), ...own];
  }

  private nameOf(key: Node): string {
    if (isMap(key)) {
      const message = 'Text that begins with {{ must be in quotes: "{{ node.field }}"';
      throw new NotJson(message, placeOf(key));
    }
    if (!isScalar(key)) throw new NotJson('A key must be text', placeOf(key));
    const text = String(key.value ?? '');
    if (isPlain(key) && text !== '' && (NUMBER.test(text) || BOOLEAN.test(text))) {
      throw new NotJson(`The key ${text} must be text: put it in quotes`, placeOf(key));
    }
    return text;
  }
}

function mergedEntries(tree: TreeValue): Entry[] {
  if (tree.kind === 'object') return tree.entries;
  if (tree.kind === 'list') return tree.items.toReversed().flatMap(mergedEntries);
  throw new NotJson('<< can only merge objects', tree);
}

function isPlain(node: Node): boolean {
  return isScalar(node) && (node.type === undefined || node.type === Scalar.PLAIN);
}

function placeOf(node: Node): Range {
  const [from, to] = (node as ParsedNode).range ?? [0, 0];
  return { from, to };
}

function scalarOf(node: Node, range: Range): { json: string; value: unknown } {
  const text = isScalar(node) ? String(node.value ?? '') : '';
  if (isPlain(node)) {
    if (NULL.test(text)) return { json: 'null', value: null };
    if (BOOLEAN.test(text))
      return { json: text.toLowerCase(), value: text[0]?.toLowerCase() === 't' };
    if (NUMBER.test(text)) return { json: jsonNumber(text), value: Number(text) };
    if (/^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$/.test(text)) {
      throw new NotJson(`JSON has no ${text}`, range);
    }
  }
  return { json: JSON.stringify(text), value: text };
}

/** `+1`, `.5` and `1.` are numbers in YAML, but not in JSON. */
function jsonNumber(text: string): string {
  return text
    .replace(/^\+/, '')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?![0-9])/, '.0');
}
