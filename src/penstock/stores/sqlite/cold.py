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
from penstock.stores.sqlite.forgetting import SqliteForgetting
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer


class SqliteColdStore(
    SqliteDefinitions,
    SqliteExecutions,
    SqliteDeadLetters,
    SqliteCounts,
    SqliteApiKeys,
    SqliteAuditLog,
    SqliteForgetting,
):
    def __init__(
        self, hot: SqliteHotStore, writer: Writer, reader: Reader, searcher: Reader
    ) -> None:
        """`searcher` is for slow reads, so that quick ones on `reader` don't wait behind them."""
        SqliteDefinitions.__init__(self, writer, reader)
        SqliteExecutions.__init__(self, hot, writer, reader, searcher)
        SqliteForgetting.__init__(self, writer, searcher, self._numbers)
        SqliteDeadLetters.__init__(self, writer, reader, searcher)
        SqliteCounts.__init__(self, searcher)
        SqliteApiKeys.__init__(self, writer, reader)
        SqliteAuditLog.__init__(self, writer, searcher)
