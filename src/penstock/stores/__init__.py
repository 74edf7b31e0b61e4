"""WHERE facts live. Stores keep facts and move messages; they commit decisions and never make them.

The protocols, and what all stores share:

- `base`: hot store, task queue, blobs, commit feed, and `Stores`, which has one of each.
- `cold`: cold stores: definitions, intents, all that outlives an execution's run.
- `fleet`: workers and orchestrators of all processes that share a store.
- `tiering`: what moves between a hot and a cold store that are two.
- `commit_plan`: what a batch decided, as the lists that a store writes.
- `codec`: how things are encoded.
- `partial`: parts of a stored change, read without decoding the rest.
- `phases`: what a cold store goes by, beside the state that users see.
- `records`: what cold stores keep beside executions, and how they are searched.
- `matching`: what the filters of a search mean.
- `idempotency`: idempotency keys.
- `references`: what a reference to a workflow means.
- `children`: what commits send to children and to parents.
- `posts`: signals to whoever waits for a correlation.
- `waits`: nodes that wait for somebody, over all executions.
- `signals`: signals on their way into a store.
- `handlers`: what handlers ask for, as stores keep it.
- `plan_cache`: plans, compiled from the definitions of a cold store, and cached.
- `task_keys`: the key of a task.
- `topology`: how the stores of one address hang together.
- `reports`: JSON of an ended execution that SQL can read.
- `sql`: what the stores on SQL share.
- `blobs`: large values in memory or in a folder.
- `object_blobs`: large values in an object store.
- `opening`: from an address (`sqlite:///work.db`) to stores.
- `installed`: stores of other packages.

The stores; one contract suite (`penstock.contract`) runs on all of them:

- `memory`: for tests and the simulator.
- `sqlite`: one file: the embedded default.
- `redis`: a hot store and a task queue.
- `postgres`: a cold store.
- `scaled`: Redis in front of PostgreSQL.
"""
