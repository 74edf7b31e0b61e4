"""WHERE facts live. Stores keep facts and move messages; they commit decisions and never make them.

`base` has the protocols: a hot store (active executions, inboxes, timers, leases), a task queue
(who runs what), a cold store (definitions, all executions, dead letters) and blobs (large values).
`memory` is for tests and the simulator, `sqlite/` is the embedded default. One contract suite
(`penstock.contract`) runs on all of them.
"""
