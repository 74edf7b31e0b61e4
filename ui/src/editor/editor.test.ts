import { describe, expect, it } from 'vitest';
import { checkSchema } from './checkSchema';
import { type Knowledge, optionsAt } from './completions';
import { cursorAt } from './cursor';
import { jsonText, plainValue, rangeOf, stepsOf, type TreeValue } from './documentTree';
import { definitionText, formatTree } from './formats';
import { parseJson } from './parseJson';
import { parseYaml } from './parseYaml';
import type { Schema } from './schema';
import { sketch } from './sketch';

const SCHEMA: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'How the workflow is called' },
    timeout_seconds: { type: 'number', exclusiveMinimum: 0 },
    nodes: { type: 'array', items: { $ref: '#/$defs/node' } },
  },
  $defs: {
    node: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string', minLength: 1 },
        handler: { type: 'string', examples: ['echo'] },
        depends_on: { anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] },
        optional: { type: 'boolean' },
        trigger_rule: { enum: ['all_success', 'all_done'] },
        config: { type: 'object' },
      },
      additionalProperties: false,
      allOf: [
        {
          if: { required: ['handler'], properties: { handler: { enum: ['call'] } } },
          // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
          then: {
            properties: {
              config: {
                properties: {
                  url: { anyOf: [{ type: 'string', pattern: '^https?://' }, { type: 'null' }] },
                  method: { enum: ['GET', 'POST'] },
                },
                additionalProperties: false,
              },
            },
          },
        },
      ],
    },
  },
};

function treeOf(text: string, format: 'json' | 'yaml' = 'json'): TreeValue {
  const { root, problems } = format === 'json' ? parseJson(text) : parseYaml(text);
  expect(problems).toEqual([]);
  return root as TreeValue;
}

describe('the text as a tree', () => {
  it('keeps the numbers of JSON as they were typed', () => {
    const text = '{"a":[12345678901234567890,1.0,-2e3,null,true,"x\\u00e9"]}';
    expect(jsonText(treeOf(text))).toBe(text);
  });

  it('keeps the numbers of a stored document, also in YAML', () => {
    const answer = '{"version":1,"definition":{"a":12345678901234567890,"b":1.0}}';
    expect(definitionText(answer, 'json')).toBe('{\n  "a": 12345678901234567890,\n  "b": 1.0\n}\n');
    const yaml = definitionText(answer, 'yaml');
    expect(yaml).toBe('a: 12345678901234567890\nb: 1.0\n');
    expect(jsonText(treeOf(yaml, 'yaml'))).toBe('{"a":12345678901234567890,"b":1.0}');
  });

  it('reads YAML as the server does', () => {
    const text = [
      'base: &base {a: 1, b: [x, "2"]}',
      'c:',
      '  <<: *base',
      '  a: yes',
      '  d: 010',
      '  e: +.5',
      '  f: ~',
      '  g: |-',
      '    two',
      '    lines',
    ].join('\n');
    expect(plainValue(treeOf(text, 'yaml'))).toEqual({
      base: { a: 1, b: ['x', '2'] },
      c: { b: ['x', '2'], a: 'yes', d: '010', e: 0.5, f: null, g: 'two\nlines' },
    });
  });

  it('goes from JSON to YAML and back', () => {
    const text = '{"a":"{{ x.y }}","b":["yes","12","010","true",""],"c":{},"d":"two\\nlines"}';
    expect(jsonText(treeOf(formatTree(treeOf(text), 'yaml'), 'yaml'))).toBe(text);
  });

  it('says where a text is neither JSON nor YAML', () => {
    const json = parseJson('{\n  "a": 1,\n  "b" 2\n}');
    expect(json.root).toBeNull();
    expect(json.problems[0]?.from).toBe(18);
    const yaml = parseYaml('a: "b\nc: [');
    expect(yaml.root).toBeNull();
    expect(yaml.problems.length).toBeGreaterThan(0);
    expect(parseYaml('a: {{ x }}').problems[0]?.message).toContain('must be in quotes');
  });

  it('refuses a name that is there twice', () => {
    expect(parseJson('{"a": 1, "a": 2}').problems).toEqual([
      { from: 9, to: 12, severity: 'error', message: '“a” is here twice' },
    ]);
    expect(parseYaml('a: 1\na: 2').problems[0]?.from).toBe(5);
  });

  it('finds the place of a path', () => {
    const text = '{"nodes": [{"id": "a"},\n {"id": "b", "config": {"x.y": 1, "z": [2, 3]}}]}';
    const root = treeOf(text);
    const at = (path: string) => {
      const { from, to } = rangeOf(root, stepsOf(path), text);
      return text.slice(from, to);
    };
    expect(at('nodes[1].id')).toBe('"b"');
    expect(at('nodes[1].config.x.y')).toBe('1');
    expect(at('nodes[1].config["x.y"]')).toBe('1');
    expect(at('nodes[1].config.z[1]')).toBe('3');
    expect(at('nodes[0].handler')).toBe('{"id": "a"}');
    expect(at('')).toBe('{"nodes": [{"id": "a"},');
  });
});

describe('the schema', () => {
  const check = (value: unknown) =>
    checkSchema(treeOf(JSON.stringify(value)), SCHEMA).map(
      ({ steps, message }) => `${steps.join('.')}: ${message}`,
    );

  it('finds nothing in a good document', () => {
    expect(
      check({ name: 'a', nodes: [{ id: 'a', depends_on: null, config: { any: [1] } }] }),
    ).toEqual([]);
  });

  it('says what is wrong and where', () => {
    expect(
      check({ name: 7, timeout_seconds: 0, nodes: [{ handler: 'echo', trigger_rule: 'x' }] }),
    ).toEqual([
      'name: must be text',
      'timeout_seconds: must be more than 0',
      'nodes.0: “id” is missing',
      'nodes.0.trigger_rule: must be "all_success" or "all_done"',
    ]);
    expect(check({ nodes: [{ id: '', depends_on: ['a', 1], handlr: 'x' }] })).toEqual([
      'nodes.0.id: must not be empty',
      'nodes.0.depends_on.1: must be text',
      'nodes.0.handlr: no field is called “handlr” here',
    ]);
  });
});

describe('the schema of the config of a handler', () => {
  const check = (node: object) =>
    checkSchema(treeOf(JSON.stringify({ nodes: [{ id: 'a', ...node }] })), SCHEMA).map(
      ({ steps, message }) => `${steps.join('.')}: ${message}`,
    );

  it('is that of the handler that the node names', () => {
    const config = { url: 'a.test', methd: 'GET' };
    expect(check({ handler: 'call', config })).toEqual([
      'nodes.0.config.url: must be text like ^https?://',
      'nodes.0.config.methd: no field is called “methd” here',
    ]);
    expect(check({ handler: 'call', config: { url: 'https://a.test' } })).toEqual([]);
    expect(check({ handler: 'echo', config })).toEqual([]);
    expect(check({ config })).toEqual([]);
  });
});

describe('completions', () => {
  const labels = (marked: string, format: 'json' | 'yaml', readable = '{}') => {
    const position = marked.indexOf('▮');
    const cursor = cursorAt(marked.replace('▮', ''), position, format);
    const knowledge: Knowledge = {
      format,
      schema: SCHEMA,
      handlers: ['step'],
      root: treeOf(readable),
    };
    return cursor ? optionsAt(cursor, knowledge).map(({ label }) => label) : null;
  };

  it('offers the fields of an object that it has not yet', () => {
    expect(labels('{"name": "x", ▮', 'json')).toEqual(['"timeout_seconds"', '"nodes"']);
    expect(labels('{"nodes": [{"id": "a", "han▮"}]}', 'json')).toContain('"handler"');
    expect(labels('{"nodes": [{"id": "a", ▮', 'json')).not.toContain('"id"');
    expect(labels('name: x\n▮', 'yaml')).toEqual(['timeout_seconds', 'nodes']);
    expect(labels('nodes:\n  - id: a\n    ▮', 'yaml')).toEqual([
      'handler',
      'depends_on',
      'optional',
      'trigger_rule',
      'config',
    ]);
    expect(labels('nodes:\n- id: a\n- ▮', 'yaml')).toContain('id');
    expect(labels('nodes:\n- id: a\n  config:\n    x: 1\n  h▮', 'yaml')).toContain('handler');
  });

  it('offers values', () => {
    expect(labels('{"nodes": [{"handler": "▮', 'json')).toEqual(['"echo"', '"step"']);
    expect(labels('nodes:\n  - handler: ▮', 'yaml')).toEqual(['echo', 'step']);
    expect(labels('nodes:\n  - optional: ▮', 'yaml')).toEqual(['true', 'false']);
    const nodes = '{"nodes": [{"id": "a"}, {"id": "b"}]}';
    expect(labels('{"nodes": [{"id": "c", "depends_on": ["▮', 'json', nodes)).toEqual([
      '"a"',
      '"b"',
    ]);
    expect(labels('nodes:\n  - depends_on:\n      - ▮', 'yaml', nodes)).toEqual(['a', 'b']);
  });

  it('offers the fields and values of the config of a handler', () => {
    const readable = '{"nodes": [{"handler": "call", "config": {}}, {"handler": "echo"}]}';
    const marked = '{"nodes": [{"handler": "call", "config": {"▮"}}]}';
    expect(labels(marked, 'json', readable)).toEqual(['"url"', '"method"']);
    const yaml = 'nodes:\n  - handler: call\n    config:\n      method: ▮';
    expect(labels(yaml, 'yaml', readable)).toEqual(['GET', 'POST']);
    const other = '{"nodes": [{}, {"handler": "echo", "config": {"▮"}}]}';
    expect(labels(other, 'json', readable)).toEqual([]);
  });

  it('offers nothing where the schema knows nothing', () => {
    expect(labels('{"nodes": [{"config": {▮', 'json')).toEqual([]);
    expect(labels('# a comment ▮', 'yaml')).toBeNull();
  });
});

it('sketches the graph of a document with mistakes', () => {
  const root = treeOf(
    '{"name": "x", "nodes": [{"id": "a", "depends_on": ["c"]}, {"id": "b", "type": "echo", "dependencies": ["a", "nobody"], "condition": "a.x"}, {"id": "c", "depends_on": ["b"]}, {}]}',
  );
  const { nodes, edges } = sketch(root);
  expect(nodes.map(({ id, handler, condition }) => [id, handler, condition])).toEqual([
    ['a', '', null],
    ['b', 'echo', 'a.x'],
    ['c', '', null],
  ]);
  expect(edges.map(({ from, to }) => `${from} ${to}`)).toEqual(['c a', 'a b', 'b c']);
});
