"""The row of a new execution."""

from __future__ import annotations

import msgspec

from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.base import Intent
from penstock.stores.phases import Phase
from penstock.stores.sql.intents import encode_rest
from penstock.stores.sqlite.intents import Row
from penstock.stores.sqlite.numbers import Numbers

PENDING = str(ExecutionState.PENDING)
STARTED = str(Phase.STARTED)
WAITING = str(Phase.WAITING)


def intent_row(intent: Intent, numbers: Numbers) -> Row:
    record = intent.record
    phase = WAITING if intent.waits else STARTED
    labels = msgspec.json.encode(record.labels) if record.labels else None
    return (
        numbers.next(record.created_at),
        record.execution_id,
        record.workflow,
        record.version,
        phase,
        PENDING,
        record.created_at,
        intent.retry_of,
        labels,
        codec.encode(record),
        encode_rest(intent),
    )
