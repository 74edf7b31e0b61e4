// Light or dark as the system has it, unless the user has chosen.

export type Theme = 'system' | 'light' | 'dark';
export const NAME = 'penstock.theme';

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(NAME);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
