// Where in a document the cursor is: what could be completed there. The text before the cursor is
// read token by token, so this works for a document that isn't complete yet.
import type { Format, Step } from './documentTree';

export type Cursor = {
  /** A name or a value may stand here. */
  expects: 'name' | 'value';
  /** Of the object or list that contains it, or of the value itself. */
  steps: Step[];
  /** Where the word begins that is being typed. */
  from: number;
  word: string;
  /** The names that the object has before the cursor. */
  names: string[];
  isQuoted: boolean;
};

export function cursorAt(text: string, position: number, format: Format): Cursor | null {
  return format === 'json' ? jsonCursor(text, position) : yamlCursor(text, position);
}

type Level = { isList: boolean; index: number; name: string | null; names: string[] };

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;

function jsonCursor(text: string, position: number): Cursor | null {
  const levels: Level[] = [];
  let from = position;
  let word = '';
  let isQuoted = false;
  for (const match of text.slice(0, position).matchAll(TOKEN)) {
    const token = match[0];
    const level = levels.at(-1);
    const isAtCursor = match.index + token.length === position;
    if (token === '{' || token === '[') {
      levels.push({ isList: token === '[', index: 0, name: null, names: [] });
    } else if (token === '}' || token === ']') {
      levels.pop();
    } else if (token === ',' && level) {
      level.index += 1;
      level.name = null;
    } else if (token === ':') {
      const name = level?.names.at(-1);
      if (level && name !== undefined) level.name = name;
    } else if (isAtCursor && !(token.length > 1 && isClosed(token))) {
      from = match.index;
      isQuoted = token.startsWith('"');
      word = isQuoted ? token.slice(1) : token;
    } else if (level && !level.isList && level.name === null) {
      level.names.push(token.replace(/^"|"$/g, ''));
    }
  }
  const level = levels.at(-1);
  if (!level) return null;
  const steps = levels.slice(0, -1).map(stepOf);
  if (level.isList)
    return { expects: 'value', steps: [...steps, level.index], from, word, names: [], isQuoted };
  if (level.name === null) {
    return { expects: 'name', steps, from, word, names: level.names, isQuoted };
  }
  return { expects: 'value', steps: [...steps, level.name], from, word, names: [], isQuoted };
}

function isClosed(token: string): boolean {
  return token.startsWith('"') && token.endsWith('"') && !token.endsWith('\\"');
}

function stepOf(level: Level): Step {
  return level.isList ? level.index : (level.name ?? '');
}

/** A `name:` or a `-`, and the column in which it stands. */
type Mark = { column: number; name: string | null };
type Frame = Mark & { names: string[] };

const YAML_NAME = /^(?:"([^"]+)"|'([^']+)'|([^\s#"'[\]{},][^:#]*?))\s*:(?=\s|$)/;

/** Block style only: lines with `name:` and `-`. */
function yamlCursor(text: string, position: number): Cursor | null {
  const lines = text.slice(0, position).split('\n');
  const last = lines.pop() ?? '';
  const frames: Frame[] = [];
  for (const line of lines) {
    for (const mark of marksOf(line).marks) enter(frames, mark);
  }
  const { marks, rest, column } = marksOf(last);
  for (const mark of marks) enter(frames, mark);
  if (rest.startsWith('#') || (/[{}[\]]/.test(rest) && !/^["']?\{\{/.test(rest))) return null;
  const isQuoted = /^["']/.test(rest);
  const from = position - rest.length;
  const word = isQuoted ? rest.slice(1) : rest;
  const isValue = marks.at(-1)?.name != null;
  const names = isValue ? [] : leave(frames, { column, name: '' });
  const steps = frames.map((frame): Step => frame.name ?? 0);
  return { expects: isValue ? 'value' : 'name', steps, from, word, names, isQuoted };
}

/** What a line begins with, and the rest of it. */
function marksOf(line: string): { marks: Mark[]; rest: string; column: number } {
  const marks: Mark[] = [];
  let column = line.length - line.trimStart().length;
  let rest = line.slice(column);
  if (rest.startsWith('#')) return { marks, rest, column };
  for (let dash = /^-(\s+|$)/.exec(rest); dash; dash = /^-(\s+|$)/.exec(rest)) {
    marks.push({ column, name: null });
    column += dash[0].length;
    rest = rest.slice(dash[0].length);
  }
  const named = YAML_NAME.exec(rest);
  if (named) {
    marks.push({ column, name: named[1] ?? named[2] ?? named[3] ?? '' });
    rest = rest.slice(named[0].length).trimStart();
  }
  return { marks, rest, column };
}

function enter(frames: Frame[], mark: Mark): void {
  const names = leave(frames, mark);
  frames.push({ ...mark, names: mark.name === null ? [] : [...names, mark.name] });
}

/** Leaves what ends before this mark; returns the names that stand beside it. */
function leave(frames: Frame[], { column, name }: Mark): string[] {
  let names: string[] = [];
  for (let top = frames.at(-1); top; top = frames.at(-1)) {
    const isBeside = top.column === column && (name !== null || top.name === null);
    if (top.column < column || (top.column === column && !isBeside)) break;
    if (isBeside) names = top.names;
    frames.pop();
  }
  return names;
}
