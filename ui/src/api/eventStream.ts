// Server-Sent Events by fetch: unlike EventSource, it can send a key and says why a stream ended.
// Events come in batches, at most a few times a second: an execution of thousands of nodes must not
// redraw the UI thousands of times.
import { createParser } from 'eventsource-parser';
import type { CountsEvent, Transition } from './calls';
import { authorization, reach } from './client';
import { noteReachable } from './connection';
import { Problem } from './problem';

type Following = {
  /** The last id that the caller has. */
  after?: string | undefined;
  onEvents: (events: Transition[]) => void;
  /** The newest counts of each map that has changed. */
  onCounts?: (counts: CountsEvent[]) => void;
  /** The execution has ended: nothing more will come. */
  onEnd?: () => void;
  /**
   * The server no longer has the events after `after`: read everything again and follow from there.
   */
  onGap?: () => void;
  onLive?: (live: boolean) => void;
};

const BATCH_MS = 250;
const RECONNECT_MS = 500;
const RECONNECT_MS_MAX = 5000;
/** The server sends a heartbeat every 15 seconds. */
const SILENCE_MS = 40_000;

/**
 * Follows a stream until it ends or the returned function is called. After a break it goes on where
 * it broke off.
 */
export function follow(path: string, following: Following): () => void {
  const stop = new AbortController();
  void followUntilEnd(path, following, stop.signal);
  return () => stop.abort();
}

async function followUntilEnd(
  path: string,
  following: Following,
  stopped: AbortSignal,
): Promise<void> {
  let last = following.after;
  let pause = RECONNECT_MS;
  while (!stopped.aborted) {
    try {
      const outcome = await readOnce(path, last, stopped, following, (id) => {
        last = id;
        pause = RECONNECT_MS;
      });
      if (outcome === 'ended') return following.onEnd?.();
    } catch (error) {
      if (stopped.aborted) return;
      if (error instanceof Problem && error.status === 422) return following.onGap?.();
      if (error instanceof Problem && !error.passing && error.status < 500) return;
    }
    if (stopped.aborted) return;
    following.onLive?.(false);
    await waitFor(pause, stopped);
    pause = Math.min(pause * 2, RECONNECT_MS_MAX);
  }
}

async function readOnce(
  path: string,
  last: string | undefined,
  stopped: AbortSignal,
  following: Following,
  onId: (id: string) => void,
): Promise<'ended' | 'broken'> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const batch = new Batch(following, stopped);
  try {
    const signal = AbortSignal.any([stopped, silence.signal]);
    const response = await reach(addressAfter(path, last), {
      headers: { Accept: 'text/event-stream', ...authorization() },
      signal,
    });
    if (response.status === 204 || !response.body) return 'ended';
    following.onLive?.(true);
    let ended = false;
    const parser = createParser({
      onEvent(event) {
        if (event.event === 'end') {
          ended = true;
        } else if (event.event === 'items') {
          batch.addCounts(JSON.parse(event.data) as CountsEvent);
        } else {
          batch.add(JSON.parse(event.data) as Transition);
          if (event.id) onId(event.id);
        }
      },
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      clearTimeout(timer);
      if (value) parser.feed(value);
      if (ended) return 'ended';
      if (done) return 'broken';
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    }
  } catch (error) {
    if (!stopped.aborted && !(error instanceof Problem)) noteReachable(false);
    throw error;
  } finally {
    clearTimeout(timer);
    batch.flush();
  }
}

class Batch {
  private waiting: Transition[] = [];
  private readonly counts = new Map<string, CountsEvent>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly following: Following;
  private readonly stopped: AbortSignal;

  constructor(following: Following, stopped: AbortSignal) {
    this.following = following;
    this.stopped = stopped;
  }

  add(event: Transition): void {
    this.waiting.push(event);
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  addCounts(counts: CountsEvent): void {
    this.counts.set(counts.node_id, counts);
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  flush(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const events = this.waiting;
    this.waiting = [];
    const counts = [...this.counts.values()];
    this.counts.clear();
    if (this.stopped.aborted) return;
    if (events.length) this.following.onEvents(events);
    if (counts.length) this.following.onCounts?.(counts);
  }
}

function addressAfter(path: string, last: string | undefined): string {
  if (!last) return path;
  return `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(last)}`;
}

function waitFor(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stopped.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
