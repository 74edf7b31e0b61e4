import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/json';
import { duplicateNames, type Entry, type ParsedText, type TreeValue } from './documentTree';

/** JSON with the places of its values. */
export function parseJson(text: string): ParsedText {
  try {
    JSON.parse(text);
  } catch (error) {
    return { root: null, problems: [syntaxProblem(text, error as Error)] };
  }
  const top = parser.parse(text).topNode.firstChild;
  const root = top && treeOf(top, text);
  return { root, problems: root ? duplicateNames(root) : [] };
}

function syntaxProblem(text: string, error: Error) {
  let place = text.length;
  parser.parse(text).iterate({
    enter: (node) => {
      if (node.type.isError && node.from < place) place = node.from;
    },
  });
  const words = error.message.replace(/ in JSON at position \d+.*| \(line \d+ column \d+\)/gs, '');
  const message = `This isn't JSON: ${words}`;
  const from = Math.min(place, Math.max(0, text.length - 1));
  return { from, to: Math.min(text.length, from + 1), severity: 'error' as const, message };
}

function treeOf(node: SyntaxNode, text: string): TreeValue {
  const range = { from: node.from, to: node.to };
  if (node.name === 'Object') {
    const entries = node.getChildren('Property').flatMap((property): Entry[] => {
      const key = property.firstChild;
      const value = property.lastChild;
      if (!key || !value) return [];
      const name: string = JSON.parse(text.slice(key.from, key.to));
      return [{ name, key: { from: key.from, to: key.to }, value: treeOf(value, text) }];
    });
    return { kind: 'object', entries, ...range };
  }
  if (node.name === 'Array') {
    const items: TreeValue[] = [];
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (/^[A-Z]/.test(child.name)) items.push(treeOf(child, text));
    }
    return { kind: 'list', items, ...range };
  }
  const json = text.slice(node.from, node.to);
  return { kind: 'scalar', json, value: JSON.parse(json), ...range };
}
