"""Tiering: what moves between a hot and a cold store that are two, beside a partition owner's loop.

`partition` has all of it for one lease term. The `archiver` copies executions that have ended into
the cold store, after which they leave the hot one; the `checkpointer` copies executions that run.
Both read by a `HotReader` and write by a `ColdWriter`. `rebuild` fills a hot store that has lost
its data again, from these copies and from the intents.

`stores.tiering` has the protocols of the two tiers.
"""
