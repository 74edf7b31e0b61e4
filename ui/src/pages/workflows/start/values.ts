// Between an input and what a form's fields hold. A field holds text, as it was typed; it is read when it is sent.

import type { Field } from './fields';
import { isObject } from './schema';
import { violationOf } from './validation';

export type Draft = string | string[] | Drafts;
export type Drafts = {
  values: Record<string, Draft>;
  /** What the input has beside the fields. */
  extra: Record<string, unknown>;
};
export type Errors = Record<string, string>;

export function join(path: string, key: string | number): string {
  return path ? `${path}.${key}` : String(key);
}

/** What the fields hold for this input; without one, what they begin with. */
export function draftsOf(fields: Field[], input?: unknown): Drafts {
  const given = isObject(input) ? input : {};
  const values: Record<string, Draft> = {};
  for (const field of fields) {
    values[field.key] = draftOf(field, input === undefined ? field.initial : given[field.key], input !== undefined);
  }
  const known = new Set(fields.map((field) => field.key));
  const extra = Object.fromEntries(Object.entries(given).filter(([key]) => !known.has(key)));
  return { values, extra };
}

function draftOf(field: Field, value: unknown, isGiven: boolean): Draft {
  if (field.kind === 'object') {
    if (isGiven) return draftsOf(field.fields, isObject(value) ? value : {});
    const known = new Set(field.fields.map((each) => each.key));
    const rest = Object.entries(isObject(value) ? value : {}).filter(([key]) => !known.has(key));
    return { ...draftsOf(field.fields), extra: Object.fromEntries(rest) };
  }
  const { item } = field;
  if (field.kind === 'list' && item) return Array.isArray(value) ? value.map((each) => textOf(item, each)) : [];
  return textOf(field, value);
}

function textOf(field: Field, value: unknown): string {
  if (field.kind === 'boolean' && field.required && value === undefined) return 'false';
  if (value === undefined || (value === null && field.nullable && field.kind !== 'choice')) return '';
  if (field.kind === 'text') {
    if (typeof value !== 'string') return JSON.stringify(value);
    return field.schema.format === 'date-time' ? localMoment(value) : value;
  }
  return JSON.stringify(value, null, field.kind === 'json' ? 2 : undefined) ?? '';
}

/** Places of an input that the form's fields couldn't give back. */
export function unfit(fields: Field[], input: unknown, path = ''): string[] {
  if (!isObject(input)) return [path || 'the input'];
  return fields.flatMap((field) => {
    const value = input[field.key];
    const place = join(path, field.key);
    if (value === undefined || field.kind === 'json') return [];
    if (value === null && field.nullable) return [];
    if (field.kind === 'object') return unfit(field.fields, value, place);
    if (field.kind === 'constant') return isSame(value, field.schema.const) ? [] : [place];
    const { item } = field;
    if (field.kind === 'list' && item) {
      return Array.isArray(value) ? value.flatMap((each, n) => (holds(item, each) ? [] : [join(place, n)])) : [place];
    }
    return holds(field, value) ? [] : [place];
  });
}

function holds(field: Field, value: unknown): boolean {
  if (field.kind === 'choice') return field.choices.some((each) => isSame(each, value));
  if (field.kind === 'text') return typeof value === 'string' && (value !== '' || !field.required);
  return typeof value === field.kind;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The input that the fields hold, and what is wrong with it by place. */
export function inputOf(fields: Field[], drafts: Drafts): { input: Record<string, unknown>; errors: Errors } {
  const errors: Errors = {};
  return { input: read(fields, drafts, '', errors), errors };
}

function read(fields: Field[], drafts: Drafts, path: string, errors: Errors): Record<string, unknown> {
  const input: Record<string, unknown> = { ...drafts.extra };
  for (const field of fields) {
    const place = join(path, field.key);
    const found: Errors = {};
    let value = readOne(field, drafts.values[field.key], place, found);
    if (value === undefined && field.required && Object.keys(found).length === 0) {
      if (field.nullable) value = null;
      else found[place] = field.kind === 'choice' ? 'Choose one' : 'Fill this in';
    }
    Object.assign(errors, found);
    if (value !== undefined) input[field.key] = value;
  }
  return input;
}

/** The value of a field; undefined where nothing was filled in. */
function readOne(field: Field, draft: Draft | undefined, place: string, errors: Errors): unknown {
  if (field.kind === 'constant') return field.schema.const;
  if (field.kind === 'object') return readObject(field, draft as Drafts, place, errors);
  const { item } = field;
  if (field.kind === 'list' && item) {
    const texts = Array.isArray(draft) ? draft : [];
    if (!texts.length && !field.required) return undefined;
    const list = texts.map((text, n) => readItem(item, text, join(place, n), errors));
    return checked(field, list, place, errors);
  }
  return readText(field, typeof draft === 'string' ? draft : '', place, errors);
}

function readItem(item: Field, text: string, place: string, errors: Errors): unknown {
  if (item.kind === 'text' && text === '') return checked(item, '', place, errors);
  const value = readText(item, text, place, errors);
  if (value === undefined) errors[place] ??= 'Fill this in, or remove it';
  return value;
}

/** An object that nobody asks for and nobody filled in is left out, whatever it would need. */
function readObject(field: Field, drafts: Drafts, place: string, errors: Errors): unknown {
  const found: Errors = {};
  const value = read(field.fields, drafts, place, found);
  const isEmpty = field.fields.every((each) => each.kind === 'constant' || isBlank(each, drafts.values[each.key]));
  if (isEmpty && !field.required && Object.keys(drafts.extra).length === 0) return undefined;
  Object.assign(errors, found);
  return value;
}

function isBlank(field: Field, draft: Draft | undefined): boolean {
  if (draft === undefined || typeof draft === 'string') {
    return !draft || (field.kind === 'boolean' && field.required && draft === 'false' && field.initial === undefined);
  }
  if (Array.isArray(draft)) return draft.length === 0;
  if (Object.keys(draft.extra).length) return false;
  return field.fields.every((each) => each.kind === 'constant' || isBlank(each, draft.values[each.key]));
}

function readText(field: Field, text: string, place: string, errors: Errors): unknown {
  if (text.trim() === '' && (field.kind !== 'text' || text === '')) return undefined;
  if (field.kind === 'text') {
    const value = field.schema.format === 'date-time' ? utcMoment(text) : text;
    return checked(field, value, place, errors);
  }
  if (field.kind === 'number') {
    const value = Number(text);
    if (!Number.isFinite(value)) errors[place] = "This isn't a number";
    else return checked(field, value, place, errors);
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    errors[place] = 'This isn\'t JSON; a text is written as "text"';
    return undefined;
  }
}

function checked(field: Field, value: unknown, place: string, errors: Errors): unknown {
  const wrong = violationOf(field.schema, value);
  if (wrong) errors[place] = wrong;
  return value;
}

/** A moment as a field of type datetime-local shows it, to the second. What can't be read stays as it is. */
function localMoment(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function utcMoment(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
}
