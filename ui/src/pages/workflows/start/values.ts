// Converts between an input and the drafts in a form's fields. A draft is text, as it was typed.

import type { Field } from './fields';
import { isObject } from './schema';
import { violationOf } from './validation';

export type Draft = string | string[] | Drafts;
export type Drafts = {
  values: Record<string, Draft>;
  /** Parts of the input that have no field. */
  extra: Record<string, unknown>;
};
export type Errors = Record<string, string>;

export function join(path: string, key: string | number): string {
  return path ? `${path}.${key}` : String(key);
}

/** The drafts for this input; without an input, the initial ones. */
export function draftsOf(fields: Field[], input?: unknown): Drafts {
  const given = isObject(input) ? input : {};
  const values: Record<string, Draft> = {};
  for (const field of fields) {
    values[field.key] = draftOf(
      field,
      input === undefined ? field.initial : given[field.key],
      input !== undefined,
    );
  }
  const known = new Set(fields.map((field) => field.key));
  const extra = Object.fromEntries(Object.entries(given).filter(([key]) => !known.has(key)));
  return { values, extra };
}

function draftOf(field: Field, value: unknown, isGiven: boolean): Draft {
  if (field.kind === 'object') {
    if (isGiven) return draftsOf(field.fields, isObject(value) ? value : {});
    const known = new Set(field.fields.map((child) => child.key));
    const rest = Object.entries(isObject(value) ? value : {}).filter(([key]) => !known.has(key));
    return { ...draftsOf(field.fields), extra: Object.fromEntries(rest) };
  }
  const { item } = field;
  if (field.kind === 'list' && item) {
    return Array.isArray(value) ? value.map((entry) => textOf(item, entry)) : [];
  }
  return textOf(field, value);
}

function textOf(field: Field, value: unknown): string {
  if (field.kind === 'boolean' && field.required && value === undefined) return 'false';
  if (value === undefined || (value === null && field.nullable && field.kind !== 'choice')) {
    return '';
  }
  if (field.kind === 'text') {
    if (typeof value !== 'string') return JSON.stringify(value);
    return field.schema.format === 'date-time' ? localTime(value) : value;
  }
  return JSON.stringify(value, null, field.kind === 'json' ? 2 : undefined) ?? '';
}

/** Paths of an input whose values the form's fields would change. */
export function misfitsOf(fields: Field[], input: unknown, parent = ''): string[] {
  if (!isObject(input)) return [parent || 'the input'];
  return fields.flatMap((field) => {
    const value = input[field.key];
    const path = join(parent, field.key);
    if (value === undefined || field.kind === 'json') return [];
    if (value === null && field.nullable) return [];
    if (field.kind === 'object') return misfitsOf(field.fields, value, path);
    if (field.kind === 'constant') return isSame(value, field.schema.const) ? [] : [path];
    const { item } = field;
    if (field.kind === 'list' && item) {
      if (!Array.isArray(value)) return [path];
      return value.flatMap((entry, index) => (canHold(item, entry) ? [] : [join(path, index)]));
    }
    return canHold(field, value) ? [] : [path];
  });
}

function canHold(field: Field, value: unknown): boolean {
  if (field.kind === 'choice') return field.choices.some((choice) => isSame(choice, value));
  if (field.kind === 'text') return typeof value === 'string' && (value !== '' || !field.required);
  return typeof value === field.kind;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The input in the drafts, and its errors by path. */
export function inputOf(
  fields: Field[],
  drafts: Drafts,
): { input: Record<string, unknown>; errors: Errors } {
  const errors: Errors = {};
  return { input: read(fields, drafts, '', errors), errors };
}

function read(
  fields: Field[],
  drafts: Drafts,
  parent: string,
  errors: Errors,
): Record<string, unknown> {
  const input: Record<string, unknown> = { ...drafts.extra };
  for (const field of fields) {
    const path = join(parent, field.key);
    const ownErrors: Errors = {};
    let value = readOne(field, drafts.values[field.key], path, ownErrors);
    if (value === undefined && field.required && Object.keys(ownErrors).length === 0) {
      if (field.nullable) value = null;
      else ownErrors[path] = field.kind === 'choice' ? 'Choose one' : 'Fill this in';
    }
    Object.assign(errors, ownErrors);
    if (value !== undefined) input[field.key] = value;
  }
  return input;
}

/** The value of a field, or undefined if it wasn't filled in. */
function readOne(field: Field, draft: Draft | undefined, path: string, errors: Errors): unknown {
  if (field.kind === 'constant') return field.schema.const;
  if (field.kind === 'object') return readObject(field, draft as Drafts, path, errors);
  const { item } = field;
  if (field.kind === 'list' && item) {
    const texts = Array.isArray(draft) ? draft : [];
    if (!texts.length && !field.required) return undefined;
    const list = texts.map((text, n) => readItem(item, text, join(path, n), errors));
    return checked(field, list, path, errors);
  }
  return readText(field, typeof draft === 'string' ? draft : '', path, errors);
}

function readItem(item: Field, text: string, path: string, errors: Errors): unknown {
  if (item.kind === 'text' && text === '') return checked(item, '', path, errors);
  const value = readText(item, text, path, errors);
  if (value === undefined) errors[path] ??= 'Fill this in, or remove it';
  return value;
}

/** An optional object that wasn't filled in is left out, whatever its required fields are. */
function readObject(field: Field, drafts: Drafts, path: string, errors: Errors): unknown {
  const ownErrors: Errors = {};
  const value = read(field.fields, drafts, path, ownErrors);
  const isEmpty = field.fields.every(
    (child) => child.kind === 'constant' || isBlank(child, drafts.values[child.key]),
  );
  if (isEmpty && !field.required && Object.keys(drafts.extra).length === 0) return undefined;
  Object.assign(errors, ownErrors);
  return value;
}

function isBlank(field: Field, draft: Draft | undefined): boolean {
  if (draft === undefined || typeof draft === 'string') {
    return (
      !draft ||
      (field.kind === 'boolean' &&
        field.required &&
        draft === 'false' &&
        field.initial === undefined)
    );
  }
  if (Array.isArray(draft)) return draft.length === 0;
  if (Object.keys(draft.extra).length) return false;
  return field.fields.every(
    (child) => child.kind === 'constant' || isBlank(child, draft.values[child.key]),
  );
}

function readText(field: Field, text: string, path: string, errors: Errors): unknown {
  if (text.trim() === '' && (field.kind !== 'text' || text === '')) return undefined;
  if (field.kind === 'text') {
    const value = field.schema.format === 'date-time' ? utcTime(text) : text;
    return checked(field, value, path, errors);
  }
  if (field.kind === 'number') {
    const value = Number(text);
    if (Number.isFinite(value)) return checked(field, value, path, errors);
    errors[path] = "This isn't a number";
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    errors[path] = 'This isn\'t JSON; a text is written as "text"';
    return undefined;
  }
}

function checked(field: Field, value: unknown, path: string, errors: Errors): unknown {
  const wrong = violationOf(field.schema, value);
  if (wrong) errors[path] = wrong;
  return value;
}

/**
 * A time as an input of type datetime-local shows it, to the second. What can't be parsed stays as
 * it is.
 */
function localTime(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function utcTime(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
}
