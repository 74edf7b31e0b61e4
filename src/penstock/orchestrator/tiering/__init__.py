"""Tiering: what moves between a hot and a cold store that are two, beside a partition owner's loop.

`stores.tiering` has the protocols of the two tiers.

- `partition`: the tiering of one partition, for one lease term.
- `rebuild`: claims the partition, and fills a hot store that has lost its data again.
- `archiver`: copies executions that have ended into the cold store; then they leave the hot one.
- `checkpointer`: copies executions that run.
- `hot_reader`: reads both kinds from the hot store, a portion at a time.
- `cold_writer`: writes both kinds into the cold store.
- `portions`: how much is moved at once.
"""
