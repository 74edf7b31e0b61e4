// The JSON Schema of the document: what may stand in it, and what it means.

export type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  title?: string;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema | boolean>;
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

/** What an object's schema says of a key: a schema, or whether there may be one at all. */
export function propertySchema(schema: Schema, name: string): Schema | boolean | undefined {
  const named = schema.properties?.[name];
  if (named) return named;
  for (const [pattern, matched] of Object.entries(schema.patternProperties ?? {})) {
    if (patternOf(pattern).test(name)) return matched;
  }
  return schema.additionalProperties;
}

const patterns = new Map<string, RegExp>();

export function patternOf(source: string): RegExp {
  const pattern = patterns.get(source) ?? new RegExp(source, 'u');
  patterns.set(source, pattern);
  return pattern;
}

export function typesOf(schema: Schema): string[] {
  if (schema.type === undefined) return [];
  return Array.isArray(schema.type) ? schema.type : [schema.type];
}
