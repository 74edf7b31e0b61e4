"""The loop around the core: receive a batch of events, load, decide, commit, and again.

An orchestrator owns its share (`balance`) of the partitions by leases (`orchestrator`). Under each
lease (`lease_term`) it runs one `PartitionOwner`, the single writer of that partition's executions.
Its memory is a cache: whatever goes wrong with a commit, the cache is dropped and the events are
read again from the committed position. Timers, the reaper and recovery run beside that loop and
only ever append events to its inbox. All of this is the same for every store.

Where the hot and the cold store are two, `tiering` copies executions from one to the other, beside
the loop as well, and back before it begins if the hot one has lost its data.
"""
