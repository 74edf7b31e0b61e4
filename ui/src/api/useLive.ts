// Lists that follow what happens: one stream of all executions for the whole page tells that something changed, and
// what is shown is read again, about once a second at the most. Without the stream it is read every few seconds.
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ALL_EVENTS } from './calls';
import { follow } from './eventStream';

const AGAIN_MS = 1000;

/** Read these queries again when an execution begins, ends or is steered. Answers whether the stream is there. */
export function useLive(...keys: QueryKey[]): boolean {
  const queries = useQueryClient();
  const [live, setLive] = useState(false);
  const name = JSON.stringify(keys);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let stop = () => {};
    const again = () => {
      timer ??= setTimeout(() => {
        timer = null;
        if (document.visibilityState === 'hidden') return;
        for (const key of JSON.parse(name) as QueryKey[]) void queries.invalidateQueries({ queryKey: key });
      }, AGAIN_MS);
    };
    const begin = () => {
      stop = follow(ALL_EVENTS, {
        onEvents: again,
        onLive: (now) => {
          setLive(now);
          if (now) again(); // what happened before the stream was there
        },
        onGap: begin,
      });
    };
    begin();
    document.addEventListener('visibilitychange', again);
    return () => {
      stop();
      if (timer) clearTimeout(timer);
      document.removeEventListener('visibilitychange', again);
    };
  }, [queries, name]);
  return live;
}
