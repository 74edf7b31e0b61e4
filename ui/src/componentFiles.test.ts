// A component or a hook is found by its file's name.
import { expect, it } from 'vitest';

const SOURCES = import.meta.glob<string>('./**/*.{ts,tsx}', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const COMPONENT =
  /^export (?:default )?(?:function|class) ([A-Z]\w*)|^export const ([A-Z][a-z]\w*) = memo\(/gm;
const HELPER = /^(?:function|class) ([A-Z]\w*)/gm;
const HOOK = /^export (?:function|const) (use[A-Z]\w*)/gm;
const NOT_NAMED_AFTER_COMPONENTS = [
  './main.tsx',
  './pages/executions/toastOutcome.tsx',
  './pages/dead-letters/toastStarted.tsx',
];

const sources = Object.entries(SOURCES).filter(
  ([path]) => !path.endsWith('.test.ts') && !path.endsWith('.d.ts'),
);

function names(pattern: RegExp, source: string): string[] {
  return [...source.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? '');
}

function stem(path: string): string {
  return path.replace(/^.*\//, '').replace(/\.tsx?$/, '');
}

it('finds the sources', () => {
  expect(sources.length).toBeGreaterThan(100);
});

it('has one component in each .tsx file, under the name of the file', () => {
  const components = sources.filter(
    ([path]) => path.endsWith('.tsx') && !NOT_NAMED_AFTER_COMPONENTS.includes(path),
  );
  for (const [path, source] of components) {
    expect(names(COMPONENT, source), path).toEqual([stem(path)]);
  }
});

it('has each hook in a file of its name', () => {
  for (const [path, source] of sources) {
    const hooks = names(HOOK, source);
    expect(hooks, path).toEqual(hooks.length ? [stem(path)] : []);
  }
});

it('has no two components of one name, also of those that only one file uses', () => {
  const all = sources
    .filter(([path]) => path.endsWith('.tsx'))
    .flatMap(([, source]) => [...names(COMPONENT, source), ...names(HELPER, source)]);
  expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
});

it('has no two files in a folder whose names differ only in case', () => {
  const paths = sources.map(([path]) => path.replace(/\.tsx?$/, '').toLowerCase());
  expect(paths.filter((path, index) => paths.indexOf(path) !== index)).toEqual([]);
});
