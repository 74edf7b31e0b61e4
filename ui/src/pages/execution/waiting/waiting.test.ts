import { describe, expect, it } from 'vitest';
import type { NodeDetail } from '../../../api/calls';
import { approvalOf } from './approvalOf';
import { jsonFault } from './jsonFault';
import { awaitedNames, textOf } from './signalConfig';
import { signalErrors } from './signalErrors';

function problem(path: string, message: string) {
  return { code: 'x', path, message };
}

describe('problems with a signal', () => {
  it('stand at their fields', () => {
    const refusal = {
      problems: [problem('payload.amount', 'is no number'), problem('name', 'is too long')],
    };
    expect(signalErrors(refusal)).toEqual({
      errors: { payload: 'amount: is no number', name: 'is too long' },
      isAllPlaced: true,
    });
  });

  it('that are about no field need a box of their own', () => {
    expect(signalErrors({ problems: [problem('', 'no')] }).isAllPlaced).toBe(false);
    expect(signalErrors({ problems: [] }).isAllPlaced).toBe(false);
  });
});

it('knows what a signal node waits for', () => {
  expect(awaitedNames({ name: 'paid' })).toEqual(['paid']);
  expect(awaitedNames({ names: ['paid', 'refused'] })).toEqual(['paid', 'refused']);
  expect(awaitedNames({})).toEqual([]);
  expect(textOf(7)).toBe('7');
  expect(textOf({})).toBe('');
});

it('says what is no JSON', () => {
  expect(jsonFault('{"a": 1}')).toBeNull();
  expect(jsonFault('{a')).toMatch(/^This isn't JSON/);
});

it('makes an approval of its node alone', () => {
  const detail = {
    node_id: 'release',
    config: { title: '{{ x.y }}' },
    resolved_config: { title: 'Send it?', needed: 2, form: { type: 'object' } },
    started_at: 'then',
  } as unknown as NodeDetail;
  const execution = { execution_id: 'e', workflow: 'w', version: 1 };
  const approval = approvalOf(execution, detail, true);
  expect(approval).toMatchObject({ title: 'Send it?', needed: 2, comment: 'never', since: 'then' });
  expect(approvalOf(execution, { ...detail, resolved_config: null }, true).title).toBe('{{ x.y }}');
});
