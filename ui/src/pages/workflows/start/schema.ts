// Reads as much of a JSON Schema as a form needs. The rest is entered as JSON, which the server
// checks.

export type Schema = Record<string, unknown>;

export type Simple = 'string' | 'number' | 'integer' | 'boolean';
const SIMPLE: readonly string[] = ['string', 'number', 'integer', 'boolean'];
const DEPTH_MAX = 8;
/** Keywords that a form can't represent. */
const BEYOND = [
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'if',
  'patternProperties',
  'prefixItems',
  'dependentSchemas',
];

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSimple(type: unknown): type is Simple {
  return typeof type === 'string' && SIMPLE.includes(type);
}

/**
 * The schema that `#/$defs/x` refers to, or null. References to other documents aren't followed.
 */
function pointed(root: Schema, ref: unknown): Schema | null {
  if (typeof ref !== 'string' || !ref.startsWith('#/')) return null;
  let at: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) || Array.isArray(at) ? (at as Record<string, unknown>)[key] : undefined;
  }
  return isObject(at) ? at : null;
}

export type Plain = { schema: Schema; nullable: boolean; isBeyond: boolean };

/** The schema without references, "or null" and lists of one. `isBeyond`: a form can't show it. */
export function plainOf(given: unknown, root: Schema, depth = 0): Plain {
  const beyond = { schema: isObject(given) ? given : {}, nullable: false, isBeyond: true };
  if (!isObject(given) || depth > DEPTH_MAX) return beyond;
  const { $ref, ...own } = given;
  if ($ref !== undefined) {
    const target = pointed(root, $ref);
    return target ? plainOf({ ...target, ...own }, root, depth + 1) : beyond;
  }
  for (const word of ['anyOf', 'oneOf', 'allOf']) {
    const choices = given[word];
    if (!Array.isArray(choices)) continue;
    const others = choices.filter((choice) => !(isObject(choice) && choice.type === 'null'));
    if (others.length !== 1 || !isObject(others[0])) return beyond;
    const { [word]: _, ...rest } = given;
    const inner = plainOf({ ...others[0], ...rest }, root, depth + 1);
    return { ...inner, nullable: inner.nullable || others.length < choices.length };
  }
  if (BEYOND.some((word) => word in given)) return beyond;
  if (!Array.isArray(given.type)) return { schema: given, nullable: false, isBeyond: false };
  const types = given.type.filter((type) => type !== 'null');
  const schema = { ...given, type: types[0] };
  return { schema, nullable: types.length < given.type.length, isBeyond: types.length !== 1 };
}

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function span(min: number | null, max: number | null, one: string, many: string): string | null {
  const unit = (count: number) => {
    if (!many) return '';
    return count === 1 ? ` ${one}` : ` ${many}`;
  };
  if (min !== null && max !== null) {
    return min === max ? `exactly ${min}${unit(min)}` : `${min} to ${max}${unit(max)}`;
  }
  if (min !== null) return `at least ${min}${unit(min)}`;
  return max === null ? null : `at most ${max}${unit(max)}`;
}

const FORMATS: Record<string, string> = {
  date: 'a date',
  'date-time': 'a date and time, in your time zone',
  email: 'an e-mail address',
  uri: 'a URL such as https://example.com',
};

/** A schema's constraints as short texts. */
export function hintsOf(schema: Schema): string[] {
  const hints: (string | null)[] = [];
  if (schema.type === 'string') {
    hints.push(FORMATS[String(schema.format)] ?? null);
    hints.push(span(number(schema.minLength), number(schema.maxLength), 'character', 'characters'));
    if (typeof schema.pattern === 'string') hints.push(`matches ${schema.pattern}`);
  }
  if (schema.type === 'integer') hints.push('a whole number');
  if (schema.type === 'integer' || schema.type === 'number') {
    hints.push(span(number(schema.minimum), number(schema.maximum), '', ''));
    if (number(schema.exclusiveMinimum) !== null) {
      hints.push(`more than ${schema.exclusiveMinimum}`);
    }
    if (number(schema.exclusiveMaximum) !== null) {
      hints.push(`less than ${schema.exclusiveMaximum}`);
    }
    if (number(schema.multipleOf) !== null) hints.push(`a multiple of ${schema.multipleOf}`);
  }
  if (schema.type === 'array') {
    hints.push(span(number(schema.minItems), number(schema.maxItems), 'item', 'items'));
    if (schema.uniqueItems === true) hints.push('each only once');
  }
  return hints.filter((hint): hint is string => hint !== null);
}
