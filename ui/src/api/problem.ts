import type { components } from './schema';

type Document = components['schemas']['ProblemDocument'];

/** What the server has refused, in its own words; status 0 if it couldn't be reached. */
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

  /** It may go by itself: the server is away, restarting or busy. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503;
  }
}

export function unreachable(): Problem {
  return new Problem(0, { code: 'unreachable', detail: "The server can't be reached. It is tried again by itself." });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
