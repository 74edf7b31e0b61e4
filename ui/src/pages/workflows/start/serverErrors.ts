// Where in the form the server's complaints belong. It names places as `input.address.city` or `input.tags.0`.
import type { Problem } from '../../../api/problem';
import type { Field } from './fields';
import { type Errors, join } from './values';

type FieldProblem = Pick<Problem['problems'][number], 'path' | 'message'>;

const MISSING = /^"((?:[^"\\]|\\.)*)" is a required property$/;

/** Complaints by the place of their field; what has no field is left for a box of its own. */
export function errorsByField(error: Problem, fields: Field[]): { errors: Errors; isAllPlaced: boolean } {
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

function complaintsOf({ problems }: Pick<Problem, 'problems'>): FieldProblem[] {
  return problems.map(({ path, message }) => {
    const place = path.replace(/^input\.?/, '');
    const missing = MISSING.exec(message)?.[1];
    return missing === undefined ? { path: place, message } : { path: join(place, missing), message: 'Fill this in' };
  });
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
