import type { Part } from './diffRows';

/** A line's text, with its changed parts marked. */
export function LineParts({ parts }: { parts: Part[] }) {
  return parts.map((part, index) => {
    if (!part.isChanged) return part.text;
    // biome-ignore lint/suspicious/noArrayIndexKey: a line's parts never change
    return <mark key={index}>{part.text}</mark>;
  });
}
