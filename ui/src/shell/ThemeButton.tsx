import { Monitor, Moon, Sun } from 'lucide-react';
import { Button } from '../components/Button';
import type { Theme } from '../theme';
import { useTheme } from '../useTheme';

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

const THEMES = { system: Monitor, light: Sun, dark: Moon };

export function ThemeButton() {
  const [theme, choose] = useTheme();
  const label = `Theme: ${theme}. Change to ${NEXT[theme]}`;
  return (
    <Button
      kind="quiet"
      icon={THEMES[theme]}
      aria-label={label}
      title={label}
      onClick={() => choose(NEXT[theme])}
    />
  );
}
