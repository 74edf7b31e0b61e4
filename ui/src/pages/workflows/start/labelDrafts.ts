export type LabelDraft = { key: string; value: string };

export function labelsFromDrafts(drafts: LabelDraft[]): Record<string, string> {
  return Object.fromEntries(
    drafts.filter(({ key }) => key.trim()).map(({ key, value }) => [key.trim(), value.trim()]),
  );
}

export function labelDraftsOf(labels: Record<string, unknown> | undefined): LabelDraft[] {
  return Object.entries(labels ?? {}).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }));
}
