// The schemas of what stands at one place of a document.
import { fits } from './checkSchema';
import { childOf, type Step, type TreeValue } from './documentTree';
import { propertySchema, resolved, type Schema } from './schema';

const DEPTH_MAX = 20;

/** The schemas of the value at a path. `tree` is the document, as far as it can be read. */
export function schemasAt(root: Schema, steps: readonly Step[], tree?: TreeValue | null): Schema[] {
  let value = tree ?? undefined;
  let schemas = alternatives(root, root, value);
  for (const step of steps) {
    value = value && childOf(value, step);
    schemas = schemas.flatMap((schema) => childSchemas(schema, step, root, value));
  }
  return schemas;
}

/** The schema and all schemas that it is made of; of an `if`, the part that is for this value. */
function alternatives(
  schema: Schema,
  root: Schema,
  value: TreeValue | undefined,
  depth = 0,
): Schema[] {
  const own = resolved(schema, root);
  if (depth > DEPTH_MAX) return [own];
  const parts = [...(own.anyOf ?? []), ...(own.oneOf ?? []), ...(own.allOf ?? [])];
  if (own.if && value) {
    const branch = fits(value, own.if, root) ? own.then : own.else;
    if (branch) parts.push(branch);
  }
  return [own, ...parts.flatMap((part) => alternatives(part, root, value, depth + 1))];
}

function childSchemas(
  schema: Schema,
  step: Step,
  root: Schema,
  value: TreeValue | undefined,
): Schema[] {
  if (typeof step === 'number') {
    return typeof schema.items === 'object' ? alternatives(schema.items, root, value) : [];
  }
  const named = propertySchema(schema, step);
  return typeof named === 'object' ? alternatives(named, root, value) : [];
}
