import { expect, test } from 'vitest';
import { Problem } from '../../../api/problem';
import { type Field, fieldsOf } from './fields';
import { hintsOf } from './schema';
import { errorsByField } from './serverErrors';
import { violationOf } from './validation';
import { draftsOf, inputOf, misfitsOf } from './values';

const SCHEMA = {
  type: 'object',
  required: ['user_id', 'address', 'kind'],
  properties: {
    user_id: { type: 'integer', minimum: 1, description: 'Whose' },
    kind: { const: 'order' },
    size: { enum: ['s', 'm', 3, null], default: 'm' },
    gift: { type: 'boolean' },
    mail: { type: ['string', 'null'], format: 'email' },
    tags: {
      type: 'array',
      items: { type: 'string', minLength: 2 },
      maxItems: 3,
      uniqueItems: true,
    },
    address: { $ref: '#/$defs/address' },
    more: { type: 'object', additionalProperties: true },
    either: { oneOf: [{ type: 'string' }, { type: 'number' }] },
    when: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
  },
  $defs: {
    address: {
      type: 'object',
      required: ['city'],
      properties: { city: { type: 'string' }, zip: { type: 'string' } },
    },
  },
};

const fields = fieldsOf(SCHEMA, { lang: 'en', address: { zip: '1000' } }) as Field[];
const named = (key: string) => fields.find((field) => field.key === key) as Field;

test('each schema has the field that fits', () => {
  expect(Object.fromEntries(fields.map((field) => [field.key, field.kind]))).toEqual({
    user_id: 'number',
    kind: 'constant',
    size: 'choice',
    gift: 'boolean',
    mail: 'text',
    tags: 'list',
    address: 'object',
    more: 'json',
    either: 'json',
    when: 'text',
    lang: 'text',
  });
  expect(named('user_id')).toMatchObject({
    required: true,
    description: 'Whose',
    hints: ['a whole number', 'at least 1'],
  });
  expect(named('mail').nullable).toBe(true);
  expect(named('when')).toMatchObject({ nullable: true, schema: { format: 'date-time' } });
  expect(named('address').fields.map((field) => field.initial)).toEqual([undefined, '1000']);
});

test('no form without an object to fill in', () => {
  expect(fieldsOf(undefined, {})).toBe(null);
  expect(fieldsOf(true, {})).toBe(null);
  expect(fieldsOf({ type: 'object' }, {})).toBe(null);
  expect(fieldsOf({ anyOf: [{ required: ['a'] }, { required: ['b'] }] }, {})).toBe(null);
  expect(fieldsOf({ type: 'object', required: ['id'] }, {})?.map((field) => field.kind)).toEqual([
    'json',
  ]);
});

test('a schema that holds itself ends', () => {
  const tree = {
    type: 'object',
    properties: { child: { $ref: '#' }, next: { $ref: '#/properties/next' } },
  };
  expect(fieldsOf(tree, {})?.map((field) => field.kind)).toEqual(['json', 'json']);
  const deep = {
    properties: { a: { $ref: '#/$defs/a' } },
    $defs: { a: { properties: { a: { $ref: '#/$defs/a' } } } },
  };
  expect(fieldsOf(deep, {})).toHaveLength(1);
});

test('what was filled in becomes the input', () => {
  const drafts = draftsOf(fields);
  drafts.values.user_id = '7';
  drafts.values.tags = ['ab', 'cd'];
  drafts.values.gift = 'true';
  drafts.values.more = '{"a": [1]}';
  drafts.values.address = { values: { city: 'Bern', zip: '' }, extra: {} };
  const { input, errors } = inputOf(fields, drafts);
  expect(errors).toEqual({});
  expect(input).toEqual({
    user_id: 7,
    kind: 'order',
    size: 'm',
    gift: true,
    tags: ['ab', 'cd'],
    address: { city: 'Bern' },
    more: { a: [1] },
    lang: 'en',
  });
});

test('errors are given by the path of their field', () => {
  const drafts = draftsOf(fields);
  drafts.values.user_id = '0.5';
  drafts.values.mail = 'nobody';
  drafts.values.tags = ['a', 'ab', 'ab'];
  drafts.values.either = 'text';
  expect(inputOf(fields, drafts).errors).toEqual({
    user_id: "This isn't a whole number",
    mail: "This isn't an e-mail address",
    'tags.0': 'Give at least 2 characters',
    tags: 'Each item may appear only once',
    'address.city': 'Fill this in',
    either: 'This isn\'t JSON; a text is written as "text"',
  });
});

test('an optional object is asked for only when it was begun', () => {
  const optional = fieldsOf(
    { properties: { to: SCHEMA.$defs.address, b: { type: 'string' } } },
    {},
  ) as Field[];
  expect(inputOf(optional, draftsOf(optional))).toEqual({ input: {}, errors: {} });
  const begun = draftsOf(optional, { to: { zip: '1' } });
  expect(inputOf(optional, begun).errors).toEqual({ 'to.city': 'Fill this in' });
});

test('an item that was left blank is an error', () => {
  const lists = fieldsOf(
    { properties: { n: { type: 'array', items: { type: 'number' } } } },
    {},
  ) as Field[];
  expect(inputOf(lists, draftsOf(lists, { n: [1, 2] })).input).toEqual({ n: [1, 2] });
  const blank = { values: { n: ['1', ''] }, extra: {} };
  expect(inputOf(lists, blank).errors).toEqual({ 'n.1': 'Fill this in, or remove it' });
});

test('an input goes into the form and comes back', () => {
  const input = {
    user_id: 7,
    kind: 'order',
    size: null,
    gift: false,
    tags: ['ab'],
    address: { city: 'Bern', street: 'x' },
    either: 'text',
    when: '2026-03-04T05:06:07.000Z',
    unknown: [1],
  };
  expect(misfitsOf(fields, input)).toEqual([]);
  expect(inputOf(fields, draftsOf(fields, input))).toEqual({ input, errors: {} });
});

test('an input that the form would change is not put into it', () => {
  expect(
    misfitsOf(fields, { user_id: 'x', tags: ['a', 1], size: 'xl', address: 3, kind: 'other' }),
  ).toEqual(['user_id', 'kind', 'size', 'tags.1', 'address']);
  expect(misfitsOf(fields, [])).toEqual(['the input']);
});

test('limits are checked as the schema has them', () => {
  expect(violationOf({ type: 'number', multipleOf: 0.1 }, 0.3)).toBe(null);
  expect(violationOf({ type: 'number', multipleOf: 0.1 }, 0.35)).not.toBe(null);
  expect(violationOf({ type: 'number', exclusiveMinimum: 0 }, 0)).not.toBe(null);
  expect(violationOf({ type: 'number', maximum: 3 }, 4)).not.toBe(null);
  expect(violationOf({ type: 'string', maxLength: 2 }, '👍👍')).toBe(null);
  expect(violationOf({ type: 'string', pattern: '^a+$' }, 'b')).not.toBe(null);
  expect(violationOf({ type: 'string', pattern: '(?i)x' }, 'b')).toBe(null);
  expect(violationOf({ type: 'string', format: 'date' }, '2026-02-31x')).not.toBe(null);
  expect(violationOf({ type: 'string', format: 'uri' }, 'nowhere')).not.toBe(null);
  expect(violationOf({ type: 'array', minItems: 1 }, [])).not.toBe(null);
});

test('limits as text', () => {
  expect(hintsOf({ type: 'string', minLength: 1, maxLength: 1 })).toEqual(['exactly 1 character']);
  expect(hintsOf({ type: 'string', maxLength: 5, pattern: 'a' })).toEqual([
    'at most 5 characters',
    'matches a',
  ]);
  expect(hintsOf({ type: 'number', minimum: 0, maximum: 1 })).toEqual(['0 to 1']);
  expect(hintsOf({ type: 'array', minItems: 2, uniqueItems: true })).toEqual([
    'at least 2 items',
    'each only once',
  ]);
});

const refused = (...problems: [path: string, message: string][]) =>
  new Problem(422, {
    code: 'invalid_input',
    problems: problems.map(([path, message]) => ({ code: 'invalid_input', path, message })),
  });

test("the server's problems go to their fields", () => {
  const error = refused(
    ['input.address.city', '5 is not of type "string"'],
    ['input.tags.0', '"a" is shorter than 2 characters'],
    ['input.user_id', '"x; y: z" is not of type "integer"'],
  );
  expect(errorsByField(error, fields)).toEqual({
    isAllPlaced: true,
    errors: {
      'address.city': '5 is not of type "string"',
      'tags.0': '"a" is shorter than 2 characters',
      user_id: '"x; y: z" is not of type "integer"',
    },
  });
});

test('missing fields and those inside a JSON field too; other errors belong to no field', () => {
  const error = refused(
    ['input', '"user_id" is a required property'],
    ['input.address', '"city" is a required property'],
    ['input.more.a.0', '1 is not of type "string"'],
    ['input.elsewhere', 'bad'],
  );
  expect(errorsByField(error, fields)).toEqual({
    isAllPlaced: false,
    errors: {
      user_id: 'Fill this in',
      'address.city': 'Fill this in',
      more: 'a.0: 1 is not of type "string"',
    },
  });
  expect(
    errorsByField(new Problem(404, { code: 'not_found', detail: 'gone' }), fields).isAllPlaced,
  ).toBe(false);
});
