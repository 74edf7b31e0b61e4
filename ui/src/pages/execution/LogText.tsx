import { useEffect, useRef } from 'react';

/** A log that stays scrolled to its end while lines arrive, unless the reader has scrolled up. */
export function LogText({ text, follows }: { text: string; follows: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new text is what moves the end
  useEffect(() => {
    if (follows && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follows]);
  return (
    <pre
      ref={box}
      className="text-block log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {text}
    </pre>
  );
}
