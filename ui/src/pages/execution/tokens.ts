export type Tokens = { prompt: number; completion: number; total: number };

/** The sums over all outputs that have `usage`, as language models report it. */
export function tokensIn(outputs: Record<string, unknown>): Tokens | null {
  const sums: Tokens = { prompt: 0, completion: 0, total: 0 };
  let isReported = false;
  for (const output of Object.values(outputs)) {
    const usage = (output as { usage?: unknown } | null)?.usage;
    if (typeof usage !== 'object' || usage === null) continue;
    const fields = usage as Record<string, unknown>;
    const prompt = numberOf(fields.prompt_tokens ?? fields.input_tokens);
    const completion = numberOf(fields.completion_tokens ?? fields.output_tokens);
    isReported = true;
    sums.prompt += prompt;
    sums.completion += completion;
    sums.total += numberOf(fields.total_tokens) || prompt + completion;
  }
  return isReported ? sums : null;
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
