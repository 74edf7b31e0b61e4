export type LabelDraft = { key: string; value: string };

export function labelsFromDrafts(drafts: LabelDraft[]): Record<string, string> {
  return Object.fromEntries(
    drafts.filter(({ key }) => key.trim()).map(({ key, value }) => [key.trim(), value.trim()]),
  );
}
