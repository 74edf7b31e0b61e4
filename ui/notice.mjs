// The licences of all packages that are built into the UI, as a file beside it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HEAD =
  'The UI of Penstock is under the Apache License 2.0. Built into it, each under its own licence:\n';

function bundledPackages(packages) {
  const names = new Set();
  const visit = (name) => {
    const entry = packages[`node_modules/${name}`];
    if (!entry || names.has(name) || name.startsWith('@types/')) return;
    names.add(name);
    for (const dependency of Object.keys(entry.dependencies ?? {})) visit(dependency);
  };
  for (const name of Object.keys(packages[''].dependencies)) visit(name);
  return [...names].sort();
}

function licenceText(folder) {
  const name = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  return name ? readFileSync(join(folder, name), 'utf8').trim() : '';
}

function section(name, { version, license }) {
  const text = licenceText(join('node_modules', name));
  return `\n${'='.repeat(80)}\n${name} ${version}: ${license}\n\n${text}\n`;
}

/** A plugin of Vite. */
export function notice() {
  return {
    name: 'notice',
    apply: 'build',
    generateBundle() {
      const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
      const sections = bundledPackages(packages).map((name) =>
        section(name, packages[`node_modules/${name}`]),
      );
      this.emitFile({ type: 'asset', fileName: 'NOTICE.txt', source: HEAD + sections.join('') });
    },
  };
}
