"""The hot store on Redis or Valkey. See docs/decisions/010-redis-and-postgresql.md for the layout.

- `address`: from a URL to where and how to connect.
- `wire`: one connection; `server`: the connections of a store, its clock, whether it is there.
- `scripts`: the `.lua` files; they check first, write after and decide nothing.
- `hot`: executions, inboxes, timers, leases; `commits` puts a commit into the script's words,
  `inbox` reads entries, `entries` knows where handed-out tasks are.
- `queue`: tasks for workers; `waking` tells them that there are some.
- `commit_feed`: what commits recorded, live.
- `hot_tier`: what tiering asks of the hot store.
"""
