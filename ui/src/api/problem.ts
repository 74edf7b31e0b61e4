import type { components } from './schema';

type Document = components['schemas']['ProblemDocument'];

/**
 * Why the server refused a request, in its own words. The status is 0 if the server couldn't be
 * reached.
 */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: components['schemas']['Problem'][];
  readonly retryAfterSeconds: number | null;

  constructor(status: number, document: Partial<Document>, retryAfter: string | null = null) {
    super(document.detail || document.title || `the server answered ${status}`);
    this.status = status;
    this.code = document.code ?? 'unknown';
    this.problems = document.problems ?? [];
    this.retryAfterSeconds = retryAfter ? Number(retryAfter) || null : null;
  }

  /** Trying again may help: the server is unreachable, restarting or busy. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503;
  }
}

export function unreachable(): Problem {
  return new Problem(0, {
    code: 'unreachable',
    detail: "The server can't be reached. The UI tries again by itself.",
  });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
