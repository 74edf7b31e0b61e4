// The licences of everything that is built into the page, as a file beside it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HEAD = `The page of Penstock is under the Apache License 2.0. Built into it, each under its own licence:\n`;

function builtIn(packages) {
  const found = new Set();
  const visit = (name) => {
    const it = packages[`node_modules/${name}`];
    if (!it || found.has(name) || name.startsWith('@types/')) return;
    found.add(name);
    for (const each of Object.keys(it.dependencies ?? {})) visit(each);
  };
  for (const name of Object.keys(packages[''].dependencies)) visit(name);
  return [...found].sort();
}

function textOf(folder) {
  const name = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return name ? readFileSync(join(folder, name), 'utf8').trim() : '';
}

/** A plugin of Vite. */
export function notice() {
  return {
    name: 'notice',
    apply: 'build',
    generateBundle() {
      const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
      const parts = builtIn(packages).map((name) => {
        const { version, license } = packages[`node_modules/${name}`];
        return `\n${'='.repeat(80)}\n${name} ${version}: ${license}\n\n${textOf(join('node_modules', name))}\n`;
      });
      this.emitFile({ type: 'asset', fileName: 'NOTICE.txt', source: HEAD + parts.join('') });
    },
  };
}
