"""The cold store on SQLite: definitions, intents and finished executions.

It is the same file as the hot store.
"""

from __future__ import annotations

from penstock.stores.sqlite.api_keys import SqliteApiKeys
from penstock.stores.sqlite.audit_log import SqliteAuditLog
from penstock.stores.sqlite.counting import SqliteCounts
from penstock.stores.sqlite.dead_letters import SqliteDeadLetters
from penstock.stores.sqlite.definitions import SqliteDefinitions
from penstock.stores.sqlite.executions import SqliteExecutions
from penstock.stores.sqlite.forgetting import SqliteRetention
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.posts import SqlitePosts
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.signals import SqliteSignals
from penstock.stores.sqlite.waits import SqliteWaits
from penstock.stores.sqlite.writer import Writer


class SqliteColdStore:
    def __init__(
        self,
        hot: SqliteHotStore,
        writer: Writer,
        reader: Reader,
        searcher: Reader,
        numbers: Numbers,
    ) -> None:
        """`searcher` is for slow reads, so that quick ones on `reader` don't wait behind them."""
        self.definitions = SqliteDefinitions(writer, reader)
        self.executions = SqliteExecutions(hot, writer, reader, searcher, numbers)
        self.signals = SqliteSignals(writer, reader)
        self.waits = SqliteWaits(reader)
        self.posts = SqlitePosts(writer)
        self.dead_letters = SqliteDeadLetters(writer, reader, searcher)
        self.counts = SqliteCounts(searcher)
        self.api_keys = SqliteApiKeys(writer, reader)
        self.audit_log = SqliteAuditLog(writer, searcher)
        self.retention = SqliteRetention(writer, searcher, numbers)
