// What the editor offers while one types: fields and values from the JSON Schema, handlers, ids of
// nodes, and references inside of {{ }}.
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  insertCompletionText,
  snippet,
} from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import { type Cursor, cursorAt } from './cursor';
import { type Format, nodeIdOf, nodeListOf, type Step, type TreeValue } from './documentTree';
import { type Schema, typesOf } from './schema';
import { schemasAt } from './schemasAt';

/** What completions are made from; it changes while the editor is open. */
export type Knowledge = {
  format: Format;
  schema: Schema | null;
  handlers: readonly string[];
  /** The last text that could be read. */
  root: TreeValue | null;
};

const REFERENCE = /\{\{\s*([\w.\- ]*)$/;
const DEPENDENCIES = ['depends_on', 'dependencies'];

export function complete(
  context: CompletionContext,
  knowledge: Knowledge,
): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const reference = REFERENCE.exec(line.text.slice(0, context.pos - line.from));
  if (reference) {
    const from = context.pos - (reference[1] ?? '').length;
    return { from, options: references(knowledge), validFor: /^[\w.\- ]*$/ };
  }
  const cursor = cursorAt(context.state.doc.toString(), context.pos, knowledge.format);
  if (!cursor || (!context.explicit && !isTyping(cursor, knowledge.format))) return null;
  const options = optionsAt(cursor, knowledge);
  return options.length ? { from: cursor.from, to: context.pos, options, filter: true } : null;
}

function isTyping(cursor: Cursor, format: Format): boolean {
  return cursor.word !== '' || cursor.isQuoted || (format === 'yaml' && cursor.expects === 'value');
}

export function optionsAt(cursor: Cursor, knowledge: Knowledge): Completion[] {
  const schemas = knowledge.schema ? schemasAt(knowledge.schema, cursor.steps, knowledge.root) : [];
  if (cursor.expects === 'name') {
    const names = fieldOptions(schemas, cursor, knowledge);
    const isListItem = typeof cursor.steps.at(-1) === 'number';
    if (names.length || !isListItem) return names;
  }
  return valueOptions(schemas, cursor.steps, knowledge);
}

function fieldOptions(schemas: Schema[], cursor: Cursor, knowledge: Knowledge): Completion[] {
  const fields = new Map<string, Schema>();
  for (const { properties } of schemas) {
    for (const [name, schema] of Object.entries(properties ?? {})) {
      if (!fields.has(name) && !cursor.names.includes(name)) fields.set(name, schema);
    }
  }
  const root = knowledge.schema as Schema;
  return [...fields].map(([name, field]) => {
    const all = schemasAt({ ...root, ...{ properties: { [name]: field } } }, [name]);
    const info = all.find(({ description }) => description)?.description;
    const types = all.flatMap(typesOf);
    const label = knowledge.format === 'json' ? JSON.stringify(name) : name;
    return {
      label,
      displayLabel: name,
      type: 'property',
      detail: types[0] ?? '',
      boost: all.some(({ deprecated }) => deprecated) ? -50 : 0,
      ...(info ? { info } : {}),
      apply: overQuote(snippet(`${escaped(label)}${placeholder(types, knowledge.format)}`)),
    };
  });
}

function placeholder(types: string[], format: Format): string {
  const type = types[0];
  if (format === 'yaml') {
    if (type === 'array') return ':\n\t- #{}';
    return type === 'object' ? ':\n\t#{}' : ': #{}';
  }
  if (type === 'string') return ': "#{}"';
  if (type === 'array') return ': [#{}]';
  return type === 'object' ? ': {#{}}' : ': #{}';
}

type Apply = (view: EditorView, completion: Completion, from: number, to: number) => void;

/** Also replaces the closing quote, which the editor has put behind the cursor. */
function overQuote(apply: Apply): Apply {
  return (view, completion, from, to) => {
    const isQuoted = view.state.sliceDoc(from, from + 1) === '"';
    const isClosed = view.state.sliceDoc(to, to + 1) === '"';
    apply(view, completion, from, isQuoted && isClosed ? to + 1 : to);
  };
}

/** A snippet reads `\` and `#{` as its own. */
function escaped(text: string): string {
  return text.replace(/[\\{}]/g, '\\$&');
}

function valueOptions(
  schemas: Schema[],
  steps: readonly Step[],
  knowledge: Knowledge,
): Completion[] {
  const values = schemas.flatMap((schema) => [
    ...(schema.enum ?? []),
    ...(schema.const === undefined ? [] : [schema.const]),
    ...(typesOf(schema).includes('boolean') ? [true, false] : []),
    ...(schema.examples ?? []),
  ]);
  const name = steps.at(-1);
  if (name === 'handler' || name === 'type') values.push(...knowledge.handlers);
  if (typeof name === 'number' && DEPENDENCIES.includes(String(steps.at(-2)))) {
    values.push(...nodeIds(knowledge.root));
  }
  const texts = values
    .filter((value) => typeof value !== 'object')
    .map((value) => (knowledge.format === 'json' ? JSON.stringify(value) : yamlWord(value)));
  return [...new Set(texts)].map((label) => ({
    label,
    type: 'constant',
    apply: overQuote((view, _, from, to) =>
      view.dispatch(insertCompletionText(view.state, label, from, to)),
    ),
  }));
}

function yamlWord(value: unknown): string {
  return typeof value === 'string' && !/^[\w][\w ./-]*$/.test(value)
    ? JSON.stringify(value)
    : String(value);
}

export function nodeIds(root: TreeValue | null): string[] {
  const nodes = root ? nodeListOf(root)?.items : [];
  return (nodes ?? []).flatMap((node) => nodeIdOf(node) ?? []);
}

function references({ root }: Knowledge): Completion[] {
  const fixed = ['input', 'secrets.', 'execution.id', 'execution.workflow', 'execution.version'];
  return [
    ...nodeIds(root).map((label) => ({ label, type: 'variable', detail: 'output of a node' })),
    ...fixed.map((label) => ({ label, type: 'keyword' })),
  ];
}
