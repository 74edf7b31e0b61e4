// The JSON Schema of the document: what may stand in it, and what it means.

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
  if?: Schema;
  then?: Schema;
  else?: Schema;
  pattern?: string;
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

export function typesOf(schema: Schema): string[] {
  if (schema.type === undefined) return [];
  return Array.isArray(schema.type) ? schema.type : [schema.type];
}
