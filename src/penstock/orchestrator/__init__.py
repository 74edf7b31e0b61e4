"""The loop around the core: receive a batch of events, load, decide, commit, and again.

An orchestrator owns its share of the partitions by leases. Under each
lease it runs one
`PartitionOwner`, the single writer of that partition's executions.
Its memory is a cache: whatever
goes wrong with a commit, the cache is dropped and the events are
read again from the committed
position. Timers, the reaper and recovery run beside that loop and
only ever append events to its inbox. All of
this is the same for every store.

- `orchestrator`: keeps leases on its share of the partitions, and runs a lease term for each.
- `balance`: the shares, by nothing but the names of the members.
- `lease_term`: all that runs for as long as one lease holds, and ends with it.
- `owner`: the loop: decides for the executions of one partition.
- `loader`: loads executions that aren't in memory.
- `preparer`: has expensive conditions and configs evaluated in a sandbox, beside the loop.
- `children`: what children need to begin, and what is sent to and from them.
- `routing`: the queue that a task goes to, by what live workers serve.
- `committer`: commits of one partition, one after another.
- `reaper`: takes tasks back from dead workers.
- `backlog`: tasks that wait in a queue where nobody takes them.
- `recovery`: what a new owner makes up for, and the reconciler.
- `tiering`: moves executions between a hot and a cold store that are two.
- `timing`: how long the parts wait, and how often they look.
- `meter`: reads commits for metrics.
- `outcomes`: reads commits for the log of outcomes.
"""
