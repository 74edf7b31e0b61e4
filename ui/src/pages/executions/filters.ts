// Filters: in the address, for the API, and in form fields.
import type { ExecutionFilters } from '../../api/calls';
import type { Changes } from '../../routing/queryString';
import { isExecutionState } from '../../states';

export const CLEARED: Changes = {
  state: null,
  workflow: null,
  version: null,
  label: null,
  since: null,
  until: null,
  text: null,
};

/**
 * The filters in the address that the API accepts. Others are left out, so that a mistyped link
 * still shows a list.
 */
export function readFilters(query: URLSearchParams): ExecutionFilters {
  const filters: ExecutionFilters = {};
  const states = query.getAll('state').filter(isExecutionState);
  if (states.length) filters.state = [...new Set(states)];
  const labels = query.getAll('label').filter(isLabel);
  if (labels.length) filters.label = [...new Set(labels)];
  const version = Number(query.get('version'));
  if (Number.isSafeInteger(version) && version > 0) filters.version = version;
  for (const name of ['workflow', 'text'] as const) {
    const value = query.get(name)?.trim();
    if (value) filters[name] = value;
  }
  for (const name of ['since', 'until'] as const) {
    const at = Date.parse(query.get(name) ?? '');
    if (!Number.isNaN(at)) filters[name] = new Date(at).toISOString();
  }
  return filters;
}

/** How many filters are set besides the text and the states, which are always visible. */
export function countHidden(filters: ExecutionFilters): number {
  const { label = [], workflow, version, since, until } = filters;
  return (
    label.length + [workflow, version, since, until].filter((value) => value !== undefined).length
  );
}

export function hasFilters(filters: ExecutionFilters): boolean {
  return Object.keys(filters).length > 0;
}

export function isLabel(text: string): boolean {
  return text.indexOf(':') > 0;
}

/** `key:value` of a label, as the API takes it: what isn't text is compared as JSON. */
export function labelText(key: string, value: unknown): string {
  return `${key}:${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

/** What a field of type datetime-local shows: the viewer's zone, to the minute. */
export function toLocalField(iso: string | null | undefined): string {
  if (!iso) return '';
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The moment in UTC that a field of type datetime-local means. */
export function fromLocalField(text: string): string | null {
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** The end of an id. Ids begin with their time, so those of one list begin alike. */
export function shortId(id: string): string {
  return id.length > 12 ? id.slice(-8) : id;
}
