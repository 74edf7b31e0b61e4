"""The hot store on Redis or Valkey. `docs/design.md` has the layout of the keys.

The connection:

- `address`: from a URL to where and how to connect.
- `sentinels`: where the master is, as Sentinels know it.
- `wire`: one connection.
- `server`: the connections of a store, its clock, whether it is there.
- `clients`: redis-py's clients, for what isn't worth a connection of our own kind.
- `scripts`: the `.lua` files; they check first, write after and decide nothing.

The store:

- `keys`: names of keys.
- `hot`: executions, inboxes, timers, leases.
- `commits`: a commit plan as the arguments of `commit.lua`.
- `inbox`: positions in an inbox, and what its entries hold.
- `malformed`: entries that can't be read.
- `entries`: where each queued task is in its stream.
- `queue`: tasks for workers.
- `waking`: how a worker learns that there are tasks.
- `fleet`: workers as they show themselves.
- `live_logs`: what running tasks have logged so far.
- `commit_feed`: what commits recorded, live.
- `hot_tier`: what tiering asks of the hot store.
"""
