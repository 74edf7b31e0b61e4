// Lists that stay up to date: one stream of all executions says that something
// changed, and these queries are refetched, at most about once a second. Without the stream they
// are refetched every few seconds.
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ALL_EVENTS } from './calls';
import { follow } from './eventStream';

const REFETCH_MS = 1000;

/**
 * Refetches these queries when an execution changes its state. Returns whether the stream is
 * connected.
 */
export function useLive(...keys: QueryKey[]): boolean {
  const queries = useQueryClient();
  const [live, setLive] = useState(false);
  const name = JSON.stringify(keys);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let stop = () => {};
    const scheduleRefetch = () => {
      timer ??= setTimeout(() => {
        timer = null;
        if (document.visibilityState === 'hidden') return;
        for (const key of JSON.parse(name) as QueryKey[]) {
          void queries.invalidateQueries({ queryKey: key });
        }
      }, REFETCH_MS);
    };
    const startFollowing = () => {
      stop = follow(ALL_EVENTS, {
        onEvents: scheduleRefetch,
        onLive: (now) => {
          setLive(now);
          if (now) scheduleRefetch(); // what happened before the stream was there
        },
        onGap: startFollowing,
      });
    };
    startFollowing();
    document.addEventListener('visibilitychange', scheduleRefetch);
    return () => {
      stop();
      if (timer) clearTimeout(timer);
      document.removeEventListener('visibilitychange', scheduleRefetch);
    };
  }, [queries, name]);
  return live;
}
