import type { Part } from './diffRows';

export function LineParts({ parts }: { parts: Part[] }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: a line's parts never change
  return parts.map((part, index) => (part.isChanged ? <mark key={index}>{part.text}</mark> : part.text));
}
