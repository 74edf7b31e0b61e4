// Where in the form the server's complaints belong. It names places as `address.city` or `tags.0`.
import type { Problem } from '../../../api/problem';
import type { Field } from './fields';
import { type Errors, join } from './values';

type Complaint = { path: string; message: string };

const BEFORE = 'input_schema: ';
const PLACE = /^([^\s":]+): /;
const MISSING = /^"((?:[^"\\]|\\.)*)" is a required property$/;

/** Complaints by the place of their field; what has no field is left for a box of its own. */
export function placed(error: Problem, fields: Field[]): { errors: Errors; isAllPlaced: boolean } {
  const complaints = complaintsOf(error);
  const errors: Errors = {};
  let left = complaints.length === 0 ? 1 : 0;
  for (const { path, message } of complaints) {
    const field = nearest(path, fields);
    if (field === null) {
      left += 1;
      continue;
    }
    const inside = path.slice(field.length + 1);
    const text = inside ? `${inside}: ${message}` : message;
    errors[field] = errors[field] ? `${errors[field]}; ${text}` : text;
  }
  return { errors, isAllPlaced: left === 0 };
}

export function complaintsOf(error: Pick<Problem, 'code' | 'message' | 'problems'>): Complaint[] {
  if (error.problems.length) {
    return error.problems.map(({ path, message }) => ({ path: path.replace(/^input[./]?/, ''), message }));
  }
  const start = error.message.indexOf(BEFORE);
  if (error.code !== 'invalid_input' || start < 0) return [];
  return outsideQuotes(error.message.slice(start + BEFORE.length)).map(complaint);
}

function complaint(text: string): Complaint {
  const place = PLACE.exec(text)?.[1] ?? '';
  const message = place ? text.slice(place.length + 2) : text;
  const missing = MISSING.exec(message)?.[1];
  return missing === undefined ? { path: place, message } : { path: join(place, missing), message: 'Fill this in' };
}

/** Parts between `; `, which may also stand inside a quoted value. */
export function outsideQuotes(text: string): string[] {
  const parts: string[] = [];
  let isInside = false;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') isInside = !isInside;
    else if (!isInside && text.startsWith('; ', at)) {
      parts.push(text.slice(from, at));
      from = at + 2;
    }
  }
  return [...parts, text.slice(from)];
}

/** The field at this place, or the one that holds it. */
function nearest(path: string, fields: Field[], base = ''): string | null {
  for (const field of fields) {
    const place = join(base, field.key);
    if (path !== place && !path.startsWith(`${place}.`)) continue;
    if (field.kind === 'object') return nearest(path, field.fields, place) ?? place;
    if (field.kind !== 'list') return place;
    return /^\.\d+/.test(path.slice(place.length))
      ? path.slice(0, place.length) + /^\.\d+/.exec(path.slice(place.length))?.[0]
      : place;
  }
  return null;
}
