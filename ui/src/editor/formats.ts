// From one format to the other.
import { Scalar, stringify } from 'yaml';
import { type Format, jsonText, type ParsedText, type TreeValue } from './documentTree';
import { parseJson } from './parseJson';
import { parseYaml } from './parseYaml';

export function parseText(text: string, format: Format): ParsedText {
  return format === 'json' ? parseJson(text) : parseYaml(text);
}

export function formatTree(root: TreeValue, format: Format): string {
  if (format === 'json') return `${jsonText(root, '', '  ')}\n`;
  return stringify(yamlValue(root), { lineWidth: 100, version: '1.2', schema: 'core' });
}

/** Long integers stay exact, and 1.0 stays 1.0. */
function yamlValue(tree: TreeValue): unknown {
  if (tree.kind === 'list') return tree.items.map(yamlValue);
  if (tree.kind === 'object') {
    return new Map(tree.entries.map(({ name, value }) => [name, yamlValue(value)]));
  }
  if (typeof tree.value !== 'number') return tree.value;
  if (/^-?\d+$/.test(tree.json) && !Number.isSafeInteger(tree.value)) return BigInt(tree.json);
  if (!/^-?\d+\.0+$/.test(tree.json)) return tree.value;
  const number = new Scalar(tree.value);
  number.minFractionDigits = 1;
  return number;
}

/** The `definition` in an answer of the API, indented; its numbers are as they were sent. */
export function definitionText(answer: string, format: Format): string {
  const { root } = parseJson(answer);
  const definition =
    root?.kind === 'object'
      ? root.entries.find(({ name }) => name === 'definition')?.value
      : undefined;
  return definition ? formatTree(definition, format) : '';
}
