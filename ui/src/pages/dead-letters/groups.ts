// Dead letters with the same error of the same node are one group, whatever ids and numbers are in
// their messages.
import type { DeadLetter } from '../../api/calls';

export type Group = {
  key: string;
  workflow: string;
  nodeId: string;
  handler: string;
  category: string;
  /** The message of the oldest dead letter: an example that new ones don't change. */
  message: string;
  letters: DeadLetter[];
  newest: string;
  oldest: string;
};

/**
 * The message without what differs between executions. Quoted parts stay: they often name the
 * cause.
 */
export function normalised(message: string): string {
  return message
    .slice(0, 1000)
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>')
    .replace(/\b0x[0-9a-f]+\b/gi, '<id>')
    .replace(/\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,}\b/gi, '<id>')
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<id>')
    .replace(/\d+(?:[.,]\d+)*/g, '<n>')
    .replace(/\s+/g, ' ')
    .trim();
}

export const messageOfLetter = (letter: DeadLetter): string =>
  letter.error?.message || 'no message';
export const categoryOf = (letter: DeadLetter): string =>
  letter.category ?? letter.error?.category ?? 'unknown';

export function keyOf(letter: DeadLetter): string {
  return JSON.stringify([
    letter.workflow,
    letter.node_id,
    categoryOf(letter),
    normalised(messageOfLetter(letter)),
  ]);
}

/**
 * The largest group first. Not the newest: rows would move away from under the pointer with each
 * new one.
 */
export function groupsOf(letters: DeadLetter[]): Group[] {
  const groups = new Map<string, Group>();
  for (const letter of letters) {
    const key = keyOf(letter);
    const group = groups.get(key);
    if (!group) {
      groups.set(key, {
        key,
        workflow: letter.workflow,
        nodeId: letter.node_id,
        handler: letter.handler,
        category: categoryOf(letter),
        message: messageOfLetter(letter),
        letters: [letter],
        newest: letter.at,
        oldest: letter.at,
      });
      continue;
    }
    group.letters.push(letter);
    if (letter.at <= group.oldest) {
      group.oldest = letter.at;
      group.message = messageOfLetter(letter);
    }
    if (letter.at > group.newest) group.newest = letter.at;
  }
  return [...groups.values()].sort(
    (a, b) =>
      b.letters.length - a.letters.length ||
      b.newest.localeCompare(a.newest) ||
      a.key.localeCompare(b.key),
  );
}

/** A short name for the address: the key itself contains a whole message. */
export function shortKey(key: string): string {
  let hash = 5381;
  for (let index = 0; index < key.length; index += 1) {
    hash = ((hash * 33) ^ key.charCodeAt(index)) >>> 0;
  }
  return hash.toString(36);
}

export const openIds = (letters: DeadLetter[]): number[] =>
  letters.filter((letter) => letter.closed === null).map((letter) => letter.id);
