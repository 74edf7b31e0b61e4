// From a workflow's `input_schema` and its `input` to the fields of a form.
import { hintsOf, isObject, isSimple, plainOf, type Schema } from './schema';

export type Kind =
  | 'text'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'constant'
  | 'object'
  | 'list'
  | 'json';

export type Field = {
  key: string;
  label: string;
  kind: Kind;
  schema: Schema;
  required: boolean;
  nullable: boolean;
  description: string | null;
  hints: string[];
  /** Its value before the user has filled it in. */
  initial: unknown;
  /** Of a choice. */
  choices: unknown[];
  /** Of an object. */
  fields: Field[];
  /** Of a list: what each item is like. */
  item: Field | null;
};

const DEPTH_MAX = 5;

/** The fields of the input, or null if the schema allows no form. */
export function fieldsOf(schema: unknown, input: unknown): Field[] | null {
  if (!isObject(schema)) return null;
  const plain = plainOf(schema, schema);
  if (plain.isBeyond || (plain.schema.type !== undefined && plain.schema.type !== 'object')) {
    return null;
  }
  const defaults = isObject(input) ? input : {};
  const fields = objectFields(plain.schema, schema, defaults, 0);
  const known = new Set(fields.map((field) => field.key));
  // Defaults of the workflow that its schema doesn't name are part of the input too.
  for (const [key, value] of Object.entries(defaults)) {
    if (!known.has(key)) fields.push(fieldOf(key, guessed(value), schema, false, value, 0));
  }
  return fields.length ? fields : null;
}

function objectFields(schema: Schema, root: Schema, initial: unknown, depth: number): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required)
    ? schema.required.filter((name) => typeof name === 'string')
    : [];
  const values = isObject(initial) ? initial : {};
  const keys = [...new Set([...Object.keys(properties), ...required])];
  return keys.map((key) => {
    const own = Object.hasOwn(values, key) ? values[key] : undefined;
    return fieldOf(key, properties[key] ?? {}, root, required.includes(key), own, depth);
  });
}

function fieldOf(
  key: string,
  given: unknown,
  root: Schema,
  required: boolean,
  value: unknown,
  depth: number,
): Field {
  const { schema, nullable, isBeyond } = plainOf(given, root);
  const initial = value === undefined ? schema.default : value;
  const field: Field = {
    key,
    label: typeof schema.title === 'string' && schema.title ? schema.title : key,
    kind: 'json',
    schema,
    required,
    nullable,
    description: typeof schema.description === 'string' ? schema.description : null,
    hints: hintsOf(schema),
    initial,
    choices: [],
    fields: [],
    item: null,
  };
  return isBeyond || depth > DEPTH_MAX ? field : shaped(field, root, depth);
}

/** The field with the kind that its schema asks for. */
function shaped(field: Field, root: Schema, depth: number): Field {
  const { schema } = field;
  if ('const' in schema) return { ...field, kind: 'constant', initial: schema.const };
  if (Array.isArray(schema.enum) && schema.enum.length) {
    return { ...field, kind: 'choice', choices: schema.enum };
  }
  if (schema.type === 'string') return { ...field, kind: 'text' };
  if (schema.type === 'number' || schema.type === 'integer') return { ...field, kind: 'number' };
  if (schema.type === 'boolean') return { ...field, kind: 'boolean' };
  if (schema.type === 'array') {
    const item = plainOf(schema.items, root);
    if (
      item.isBeyond ||
      item.nullable ||
      !(isSimple(item.schema.type) || Array.isArray(item.schema.enum))
    ) {
      return field;
    }
    return {
      ...field,
      kind: 'list',
      item: fieldOf('', schema.items, root, true, undefined, depth + 1),
    };
  }
  if (isObject(schema.properties) && (schema.type === 'object' || schema.type === undefined)) {
    const fields = objectFields(schema, root, field.initial, depth + 1);
    if (fields.length) return { ...field, kind: 'object', fields };
  }
  return field;
}

function guessed(value: unknown): Schema {
  const type = typeof value;
  return type === 'string' || type === 'number' || type === 'boolean' ? { type } : {};
}
