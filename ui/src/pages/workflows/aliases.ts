// Aliases as the API has them: each means one version, or several by their shares.
import type { Aliases } from '../../api/calls';

type Weights = Aliases[string];
export type AliasAt = { alias: string; share: number | null };

/** The alias that always means the newest version. */
export const LATEST = 'latest';

/** The aliases that mean this version, with their share if they mean others too. */
export function aliasesAt(aliases: Aliases, version: number): AliasAt[] {
  return names(aliases).flatMap((alias) => {
    const share = shareOf(aliases[alias] ?? {}, String(version));
    if (share === 0) return [];
    return [{ alias, share: share === 1 ? null : share }];
  });
}

function shareOf(weights: Weights, version: string): number {
  const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? (weights[version] ?? 0) / total : 0;
}

/** By name, but `latest` first. */
export function names(aliases: Aliases): string[] {
  return Object.keys(aliases).sort(
    (a, b) => Number(b === LATEST) - Number(a === LATEST) || a.localeCompare(b),
  );
}

/** What an alias means, such as `3`, or `3 (90 %), 4 (10 %)`. */
export function meaning(weights: Weights): string {
  const shares = Object.keys(weights)
    .map((version) => ({ version: Number(version), share: shareOf(weights, version) }))
    .filter(({ share }) => share > 0)
    .sort((a, b) => b.share - a.share || b.version - a.version);
  if (shares.length === 1) return String(shares[0]?.version);
  return shares.map(({ version, share }) => `${version} (${percent(share)})`).join(', ');
}

export function percent(share: number): string {
  const text = (share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0);
  return `${text.replace(/\.0$/, '')} %`;
}

/** Why the API would refuse this name for a new alias, or null. */
export function wrongAlias(name: string, aliases: Aliases): string | null {
  if (name === LATEST) return '“latest” always means the newest version; choose another name';
  if (!/^[A-Za-z_][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return 'Begin with a letter; then letters, digits, . _ or -';
  }
  return name in aliases ? 'This alias exists already; move it instead' : null;
}
