// Light or dark as the system has it, unless the viewer has chosen.
import { useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const NAME = 'penstock.theme';

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(NAME);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(chosenTheme);
  const choose = (next: Theme) => {
    localStorage.setItem(NAME, next);
    applyTheme();
    setTheme(next);
  };
  return [theme, choose];
}
