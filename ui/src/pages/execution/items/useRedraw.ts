import { useCallback, useEffect, useRef } from 'react';

/**
 * Draws after each render and when the colours change between light and dark. Returns what to call
 * for another drawing; it is made once before the next frame.
 */
export function useRedraw(draw: () => void): () => void {
  const latest = useRef(draw);
  latest.current = draw;
  const frame = useRef(0);
  const redraw = useCallback(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => latest.current());
  }, []);
  useEffect(redraw);
  useEffect(() => {
    const isDark = matchMedia('(prefers-color-scheme: dark)');
    isDark.addEventListener('change', redraw);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      isDark.removeEventListener('change', redraw);
      theme.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, [redraw]);
  return redraw;
}
