import type { LogItem } from '../../api/calls';

/** The log with only the lines that have a text in them; nothing if there is no such line. */
export function linesWith(item: LogItem, text: string): LogItem[] {
  if (!text) return [item];
  const wanted = text.toLowerCase();
  const lines = item.text.split('\n').filter((line) => line.toLowerCase().includes(wanted));
  return lines.length ? [{ ...item, text: lines.join('\n') }] : [];
}

/** All logs as one file. */
export function logFile(items: readonly LogItem[]): string {
  return items
    .map(
      ({ node_id: nodeId, attempt, text }) =>
        `=== ${nodeId}, attempt ${attempt}\n${text.trimEnd()}\n`,
    )
    .join('\n');
}
