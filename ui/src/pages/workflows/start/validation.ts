// Constraints that the form checks before the server does. The server checks all of them again.
import type { Schema } from './schema';

const EMAIL = /^[^\s@]+@[^\s@]+$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Why the schema refuses the value, or null. */
export function violationOf(schema: Schema, value: unknown): string | null {
  if (typeof value === 'string') return wrongText(schema, value);
  if (typeof value === 'number') return wrongNumber(schema, value);
  if (Array.isArray(value)) return wrongList(schema, value);
  return null;
}

function wrongText(schema: Schema, value: string): string | null {
  const { minLength, maxLength, pattern, format } = schema;
  const length = [...value].length;
  if (typeof minLength === 'number' && length < minLength) {
    return `Give at least ${minLength} characters`;
  }
  if (typeof maxLength === 'number' && length > maxLength) {
    return `Give at most ${maxLength} characters`;
  }
  if (typeof pattern === 'string' && !matches(pattern, value)) return `It must match ${pattern}`;
  if (format === 'email' && !EMAIL.test(value)) return "This isn't an e-mail address";
  if (format === 'uri' && !URL.canParse(value)) {
    return "This isn't a URL such as https://example.com";
  }
  if (format === 'date' && (!DATE.test(value) || Number.isNaN(Date.parse(value)))) {
    return "This isn't a date";
  }
  if (format === 'date-time' && Number.isNaN(Date.parse(value))) {
    return "This isn't a date and time";
  }
  return null;
}

/** A pattern that this browser can't parse is left to the server. */
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

function wrongNumber(schema: Schema, value: number): string | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (schema.type === 'integer' && !Number.isInteger(value)) return "This isn't a whole number";
  if (typeof minimum === 'number' && value < minimum) return `It must be at least ${minimum}`;
  if (typeof maximum === 'number' && value > maximum) return `It must be at most ${maximum}`;
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) {
    return `It must be more than ${exclusiveMinimum}`;
  }
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) {
    return `It must be less than ${exclusiveMaximum}`;
  }
  if (typeof multipleOf === 'number' && multipleOf > 0) {
    const times = value / multipleOf; // 0.3 / 0.1 is 2.9999999999999996
    if (Math.abs(times - Math.round(times)) > 1e-9) return `It must be a multiple of ${multipleOf}`;
  }
  return null;
}

function wrongList(schema: Schema, value: unknown[]): string | null {
  const { minItems, maxItems, uniqueItems } = schema;
  if (typeof minItems === 'number' && value.length < minItems) {
    return `Give at least ${minItems} items`;
  }
  if (typeof maxItems === 'number' && value.length > maxItems) {
    return `Give at most ${maxItems} items`;
  }
  const texts = new Set(value.map((entry) => JSON.stringify(entry)));
  if (uniqueItems === true && texts.size < value.length) return 'Each item may appear only once';
  return null;
}
