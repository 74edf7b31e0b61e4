"""The hot store on Redis or Valkey. `docs/design.md` has the layout of the keys.

- `connection`: how Redis is reached, and why not with redis-py's clients.
- `keys`: names of keys.
- `timing`: how long what may take, and how often things are done.
- `hot`: executions, inboxes, timers, leases.
- `flat_lists`: several values for each of many things, as scripts take and answer them.
- `commits`: a commit plan as the arguments of `commit.lua`.
- `inbox`: positions in an inbox, and what its entries hold.
- `malformed`: entries that can't be read.
- `entries`: where each queued task is in its stream.
- `queue`: tasks for workers.
- `tasks_ahead`: how many tasks are ahead of a certain one.
- `waking`: how a worker learns that there are tasks.
- `fleet`: workers as they show themselves.
- `live_logs`: what running tasks have logged so far.
- `commit_feed`: what commits recorded, live.
- `hot_tier`: what tiering asks of the hot store.
"""
