// Which field each of the server's problems belongs to. The server's paths are such as
// `input.address.city`, where `input` is the root.
import type { Problem } from '../../../api/problem';
import type { Field } from './fields';
import { type Errors, join } from './values';

type FieldProblem = Pick<Problem['problems'][number], 'path' | 'message'>;

const ITEM_INDEX = /^\.\d+/;
const MISSING = /^"((?:[^"\\]|\\.)*)" is a required property$/;

/**
 * Problems by the path of their field. `isAllPlaced` is false if there are others, which need a box
 * of their own.
 */
export function errorsByField(
  error: Problem,
  fields: Field[],
  root = 'input',
): { errors: Errors; isAllPlaced: boolean } {
  const problems = fieldProblems(error, root);
  const errors: Errors = {};
  let left = problems.length === 0 ? 1 : 0;
  for (const { path, message } of problems) {
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

function fieldProblems({ problems }: Pick<Problem, 'problems'>, root: string): FieldProblem[] {
  return problems.map(({ path, message }) => {
    const fieldPath = path === root ? '' : path.replace(`${root}.`, '');
    const missing = MISSING.exec(message)?.[1];
    return missing === undefined
      ? { path: fieldPath, message }
      : { path: join(fieldPath, missing), message: 'Fill this in' };
  });
}

/** The path of the field at this path, or of the field that contains it. */
function nearest(path: string, fields: Field[], base = ''): string | null {
  for (const field of fields) {
    const fieldPath = join(base, field.key);
    if (path !== fieldPath && !path.startsWith(`${fieldPath}.`)) continue;
    if (field.kind === 'object') return nearest(path, field.fields, fieldPath) ?? fieldPath;
    if (field.kind !== 'list') return fieldPath;
    const index = ITEM_INDEX.exec(path.slice(fieldPath.length))?.[0] ?? '';
    return fieldPath + index;
  }
  return null;
}
