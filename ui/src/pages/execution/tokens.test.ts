import { expect, it } from 'vitest';
import { linesWith, logFile } from './logLines';
import { tokensIn } from './tokens';

it('adds up the tokens of all outputs that report them', () => {
  const outputs = {
    a: { response: 'x', usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
    b: { usage: { input_tokens: 2, output_tokens: 1 } },
    c: { text: 'no model' },
    d: null,
  };
  expect(tokensIn(outputs)).toEqual({ prompt: 12, completion: 6, total: 18 });
  expect(tokensIn({ c: { text: 'no model' }, d: 7 })).toBeNull();
});

it('shows the lines with a text, and all logs as one file', () => {
  const log = { node_id: 'pay', attempt: 2, live: false, text: 'asks\nthe Bank\n' };
  expect(linesWith(log, 'bank')).toEqual([{ ...log, text: 'the Bank' }]);
  expect(linesWith(log, 'card')).toEqual([]);
  expect(logFile([log])).toBe('=== pay, attempt 2\nasks\nthe Bank\n');
});
