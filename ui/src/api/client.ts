import createClient, { type Middleware } from 'openapi-fetch';
import { PREFIX } from '../routing/prefix';
import { noteReachable } from './connection';
import { Problem, unreachable } from './problem';
import type { paths } from './schema';
import { currentKey, keyRefused } from './session';

export function authorization(): Record<string, string> {
  const key = currentKey();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/**
 * `fetch` that throws a `Problem` for every response that isn't a success. A path is one of the
 * service's own, without the prefix.
 */
export async function reach(input: Request | string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(typeof input === 'string' ? PREFIX + input : input, init);
  } catch (error) {
    if (init?.signal?.aborted || (error instanceof DOMException && error.name === 'AbortError')) {
      throw error;
    }
    noteReachable(false);
    throw unreachable();
  }
  noteReachable(true);
  if (response.ok) return response;
  if (response.status === 401) keyRefused();
  const document = await response.json().catch(() => ({}));
  throw new Problem(response.status, document, response.headers.get('Retry-After'));
}

const withKey: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
    return request;
  },
};

export const client = createClient<paths>({ baseUrl: PREFIX, fetch: (request) => reach(request) });
client.use(withKey);

/** The data of a response; `reach` has thrown everything that isn't a success. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}
