import { useState } from 'react';
import { applyTheme, chosenTheme, NAME, type Theme } from './theme';

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(chosenTheme);
  const choose = (next: Theme) => {
    localStorage.setItem(NAME, next);
    applyTheme();
    setTheme(next);
  };
  return [theme, choose];
}
