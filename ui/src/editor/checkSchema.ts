// What of a document doesn't fit the JSON Schema, said at once, before the server has answered.
import type { Step, TreeValue } from './documentTree';
import { patternOf, propertySchema, resolved, type Schema, typesOf } from './schema';

export type SchemaProblem = { steps: Step[]; message: string };

/** At most one problem for each value. The server's own checks see more. */
export function checkSchema(tree: TreeValue, root: Schema): SchemaProblem[] {
  return check(tree, root, root, []);
}

/** Whether a value fits a schema. */
export function fits(tree: TreeValue, schema: Schema, root: Schema): boolean {
  return check(tree, schema, root, []).length === 0;
}

function check(tree: TreeValue, schema: Schema, root: Schema, steps: Step[]): SchemaProblem[] {
  const own = resolved(schema, root);
  const message = misfit(tree, own);
  if (message) return [{ steps, message }];
  const problems = [...missing(tree, own, steps), ...inside(tree, own, root, steps)];
  for (const part of own.allOf ?? []) problems.push(...check(tree, part, root, steps));
  const branch = own.if && (fits(tree, own.if, root) ? own.then : own.else);
  if (branch) problems.push(...check(tree, branch, root, steps));
  const choices = own.anyOf ?? own.oneOf;
  if (choices) problems.push(...nearest(choices.map((part) => check(tree, part, root, steps))));
  return problems;
}

/** The problems of the choice that was most likely meant: the one whose mistakes are deepest. */
function nearest(results: SchemaProblem[][]): SchemaProblem[] {
  const depth = (problems: SchemaProblem[]) =>
    Math.min(...problems.map((problem) => problem.steps.length));
  const hasFit = results.some((problems) => problems.length === 0);
  if (hasFit) return [];
  return results.reduce(
    (best, next) => (depth(next) > depth(best) ? next : best),
    results[0] ?? [],
  );
}

function misfit(tree: TreeValue, schema: Schema): string | null {
  const types = typesOf(schema);
  if (types.length && !types.some((type) => hasType(tree, type))) {
    return `must be ${types.map(typeName).join(' or ')}`;
  }
  if (tree.kind !== 'scalar') {
    if (tree.kind === 'list' && schema.minItems && tree.items.length < schema.minItems) {
      return schema.minItems === 1 ? 'must not be empty' : `needs ${schema.minItems} items`;
    }
    return null;
  }
  const { value } = tree;
  const choices = schema.enum ?? (schema.const === undefined ? null : [schema.const]);
  if (choices && !choices.includes(value)) {
    return `must be ${choices.map((choice) => JSON.stringify(choice)).join(' or ')}`;
  }
  if (typeof value === 'number') return numberMisfit(value, schema);
  if (typeof value === 'string') {
    if (schema.minLength && value.length < schema.minLength) return 'must not be empty';
    if (schema.maxLength && value.length > schema.maxLength) {
      return `must have at most ${schema.maxLength} characters`;
    }
    if (schema.pattern && !patternOf(schema.pattern).test(value)) {
      return `must be ${schema.description ?? `text like ${schema.pattern}`}`;
    }
  }
  return null;
}

function numberMisfit(value: number, schema: Schema): string | null {
  const { minimum, maximum, exclusiveMinimum } = schema;
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > maximum) return `must be at most ${maximum}`;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    return `must be more than ${exclusiveMinimum}`;
  }
  return null;
}

function missing(tree: TreeValue, schema: Schema, steps: Step[]): SchemaProblem[] {
  if (tree.kind !== 'object') return [];
  const names = new Set(tree.entries.map(({ name }) => name));
  return (schema.required ?? [])
    .filter((name) => !names.has(name))
    .map((name) => ({ steps, message: `“${name}” is missing` }));
}

function inside(tree: TreeValue, schema: Schema, root: Schema, steps: Step[]): SchemaProblem[] {
  if (tree.kind === 'list') {
    const { items } = schema;
    if (typeof items !== 'object') return [];
    return tree.items.flatMap((item, index) => check(item, items, root, [...steps, index]));
  }
  if (tree.kind !== 'object') return [];
  return tree.entries.flatMap(({ name, value }) => {
    const named = propertySchema(schema, name);
    if (typeof named === 'object') return check(value, named, root, [...steps, name]);
    if (named === false) {
      return [{ steps: [...steps, name], message: `no field is called “${name}” here` }];
    }
    return [];
  });
}

function hasType(tree: TreeValue, type: string): boolean {
  if (type === 'object') return tree.kind === 'object';
  if (type === 'array') return tree.kind === 'list';
  if (tree.kind !== 'scalar') return false;
  if (type === 'null') return tree.value === null;
  if (type === 'integer') return typeof tree.value === 'number' && Number.isInteger(tree.value);
  return typeof tree.value === type;
}

const TYPE_NAMES: Record<string, string> = {
  object: 'an object',
  array: 'a list',
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
};

function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}
