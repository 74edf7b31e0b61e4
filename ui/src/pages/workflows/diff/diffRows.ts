// Two texts side by side: a line and its replacement are in one row.
import { diffLines, diffWordsWithSpace } from 'diff';

export type Part = { text: string; isChanged: boolean };
export type Line = { number: number; parts: Part[] };
export type Row = {
  kind: 'same' | 'changed' | 'added' | 'removed';
  left: Line | null;
  right: Line | null;
};

const TIMEOUT_MS = 4000;
/** Longer lines aren't compared word by word. */
const LINE_LENGTH_MAX = 2000;

/**
 * Aligned rows, or null if the texts are too large and too different to compare in a few seconds.
 */
export function diffRows(left: string, right: string): Row[] | null {
  const changes = diffLines(ended(left), ended(right), { timeout: TIMEOUT_MS });
  if (!changes) return null;
  const rows: Row[] = [];
  let leftNumber = 0;
  let rightNumber = 0;
  const removedAt: string[] = [];
  const flush = (added: string[]) => {
    for (let n = 0; n < Math.max(removedAt.length, added.length); n += 1) {
      const from = removedAt[n];
      const to = added[n];
      if (from !== undefined) leftNumber += 1;
      if (to !== undefined) rightNumber += 1;
      rows.push(changedRow(from, to, leftNumber, rightNumber));
    }
    removedAt.length = 0;
  };
  for (const change of changes) {
    const lines = linesOf(change.value);
    if (change.removed) removedAt.push(...lines);
    else if (change.added) {
      flush(lines);
    } else {
      flush([]);
      for (const text of lines) {
        leftNumber += 1;
        rightNumber += 1;
        const parts = [{ text, isChanged: false }];
        rows.push({
          kind: 'same',
          left: { number: leftNumber, parts },
          right: { number: rightNumber, parts },
        });
      }
    }
  }
  flush([]);
  return rows;
}

function ended(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function linesOf(value: string): string[] {
  return value.replace(/\n$/, '').split('\n');
}

function changedRow(
  from: string | undefined,
  to: string | undefined,
  left: number,
  right: number,
): Row {
  const whole = (text: string): Part[] => [{ text, isChanged: false }];
  if (from === undefined) {
    return { kind: 'added', left: null, right: { number: right, parts: whole(to ?? '') } };
  }
  if (to === undefined) {
    return { kind: 'removed', left: { number: left, parts: whole(from) }, right: null };
  }
  const [leftParts, rightParts] = wordParts(from, to);
  return {
    kind: 'changed',
    left: { number: left, parts: leftParts },
    right: { number: right, parts: rightParts },
  };
}

/** The parts of a changed line, on both sides. */
export function wordParts(from: string, to: string): [Part[], Part[]] {
  if (from.length > LINE_LENGTH_MAX || to.length > LINE_LENGTH_MAX) {
    return [[{ text: from, isChanged: true }], [{ text: to, isChanged: true }]];
  }
  const changes = diffWordsWithSpace(from, to);
  const side = (hidden: 'added' | 'removed', shown: 'added' | 'removed') =>
    changes
      .filter((change) => !change[hidden])
      .map((change) => ({ text: change.value, isChanged: change[shown] === true }));
  return [side('added', 'removed'), side('removed', 'added')];
}

export type Section = { id: number; isFolded: boolean; rows: Row[] };

/**
 * Blocks of rows. Long ones without a change are folded, except for a few lines next to changes.
 */
export function sectionsOf(rows: Row[], context = 3): Section[] {
  const sections: Section[] = [];
  const add = (isFolded: boolean, part: Row[]) => {
    if (part.length) sections.push({ id: sections.length, isFolded, rows: part });
  };
  let at = 0;
  while (at < rows.length) {
    let end = at;
    const isSame = rows[at]?.kind === 'same';
    while (end < rows.length && (rows[end]?.kind === 'same') === isSame) end += 1;
    const before = at === 0 ? 0 : context;
    const after = end === rows.length ? 0 : context;
    // Folding one or two lines would take more room than it gives.
    if (isSame && end - at > before + after + 2) {
      add(false, rows.slice(at, at + before));
      add(true, rows.slice(at + before, end - after));
      add(false, rows.slice(end - after, end));
    } else {
      add(false, rows.slice(at, end));
    }
    at = end;
  }
  return sections;
}

export function countChanges(rows: Row[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const { kind } of rows) {
    if (kind === 'added' || kind === 'changed') added += 1;
    if (kind === 'removed' || kind === 'changed') removed += 1;
  }
  return { added, removed };
}

export type OneLine = {
  sign: ' ' | '-' | '+';
  left: number | null;
  right: number | null;
  parts: Part[];
};

/** For a narrow screen: removed lines above added ones, in each block of changes. */
export function unified(rows: Row[]): OneLine[] {
  const lines: OneLine[] = [];
  let added: OneLine[] = [];
  for (const { kind, left, right } of rows) {
    if (kind === 'same') {
      lines.push(...added);
      added = [];
      lines.push({
        sign: ' ',
        left: left?.number ?? null,
        right: right?.number ?? null,
        parts: right?.parts ?? [],
      });
      continue;
    }
    if (left) lines.push({ sign: '-', left: left.number, right: null, parts: left.parts });
    if (right) added.push({ sign: '+', left: null, right: right.number, parts: right.parts });
  }
  return [...lines, ...added];
}
