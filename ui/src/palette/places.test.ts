import { expect, it } from 'vitest';
import type { ListedExecution, ListedWorkflow } from '../api/calls';
import { placesFor } from './places';

const WORKFLOWS = ['order', 'reorder', 'report'].map((name) => ({ name }) as ListedWorkflow);

it('shows only the pages that the key may see', () => {
  const labels = (scopes: string[]) => placesFor('', scopes, [], []).map(({ label }) => label);
  expect(labels(['read'])).not.toContain('API keys');
  expect(labels(['read', 'submit', 'operate', 'admin'])).toContain('API keys');
});

it('finds workflows, executions and pages by a part of their names', () => {
  const row = { execution_id: '01a1', workflow: 'order', version: 2, state: 'FAILED' };
  const places = placesFor('ORDER', ['read'], WORKFLOWS, [row as ListedExecution]);
  expect(places.map(({ to }) => to)).toEqual([
    '/workflows/order',
    '/workflows/reorder',
    '/executions/01a1',
    '/edit/order',
    '/edit/reorder',
  ]);
  expect(places[2]?.detail).toBe('order@2, failed');
  expect(placesFor('audit', ['operate'], WORKFLOWS, []).map(({ label }) => label)).toEqual([
    'Audit log',
  ]);
});
