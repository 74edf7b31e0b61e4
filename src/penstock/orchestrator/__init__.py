"""The loop around the core: receive a batch of events, load, decide, commit, and again.

An orchestrator owns partitions by leases (`service`). For each it runs one `PartitionOwner`, the single writer of that
partition's executions. Its memory is a cache: whatever goes wrong with a commit, the cache is dropped and the events
are read again from the committed position. Timers, the reaper and recovery live beside that loop and only ever feed it
events. All of this is the same for every store.
"""
