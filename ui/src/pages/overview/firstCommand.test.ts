import { expect, it } from 'vitest';
import { firstCommand } from './firstCommand';

it('is one line whose body is JSON without quotes that a shell would end at', () => {
  const command = firstCommand('http://127.0.0.1:8000', false);
  expect(command).not.toContain('\n');
  expect(command).not.toContain('Authorization');
  const body = /-d '([^']*)'$/.exec(command)?.[1] ?? '';
  expect(JSON.parse(body).definition.nodes).toHaveLength(3);
});

it('takes the key from the environment, where one is wanted', () => {
  expect(firstCommand('http://x', true)).toContain('"Authorization: Bearer $PENSTOCK_KEY"');
});
