// The JSON Schema of the document: what may stand where, and what it means.
import type { Step } from './documentTree';

export type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  title?: string;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema | boolean;
  enum?: unknown[];
  const?: unknown;
  examples?: unknown[];
  default?: unknown;
  deprecated?: boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
};

const REFERENCES_MAX = 20;

/** The schema that a `$ref` names, with what stands beside the `$ref`. */
export function resolved(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let count = 0; current.$ref && count < REFERENCES_MAX; count += 1) {
    const { $ref, ...beside } = current;
    let target: unknown = root;
    for (const part of $ref.replace(/^#\/?/, '').split('/').filter(Boolean)) {
      target = (target as Record<string, unknown> | undefined)?.[decodeURIComponent(part)];
    }
    current = { ...((target as Schema | undefined) ?? {}), ...beside };
  }
  return current;
}

/** The schema and all schemas that it is made of: those of `anyOf`, `oneOf` and `allOf`. */
export function alternatives(schema: Schema, root: Schema, depth = 0): Schema[] {
  const own = resolved(schema, root);
  if (depth > REFERENCES_MAX) return [own];
  const parts = [...(own.anyOf ?? []), ...(own.oneOf ?? []), ...(own.allOf ?? [])];
  return [own, ...parts.flatMap((part) => alternatives(part, root, depth + 1))];
}

/** The schemas of the value at a path. */
export function schemasAt(root: Schema, steps: readonly Step[]): Schema[] {
  let schemas = alternatives(root, root);
  for (const step of steps) {
    schemas = schemas.flatMap((schema) => childSchemas(schema, step, root));
  }
  return schemas;
}

function childSchemas(schema: Schema, step: Step, root: Schema): Schema[] {
  if (typeof step === 'number') {
    return typeof schema.items === 'object' ? alternatives(schema.items, root) : [];
  }
  const named = schema.properties?.[step];
  if (named) return alternatives(named, root);
  const rest = schema.additionalProperties;
  return typeof rest === 'object' ? alternatives(rest, root) : [];
}

export function typesOf(schema: Schema): string[] {
  if (schema.type === undefined) return [];
  return Array.isArray(schema.type) ? schema.type : [schema.type];
}
