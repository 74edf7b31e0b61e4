"""The schema in SQLAlchemy's terms: the result of all migrations.

A test compares a migrated database with this. `migrations/versions/*.sql` explain what each table
holds.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    text,
)
from sqlalchemy import Text as AnyText
from sqlalchemy.dialects.postgresql import JSONB

from penstock.stores.postgres.schema import VERSION_TABLE

__all__ = ["VERSION_TABLE", "metadata"]

metadata = MetaData()
Text = AnyText(collation="C")


def _must(name: str, kind: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


def _may(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind)


def _key(name: str, kind: Any) -> Column[Any]:
    return _must(name, kind, primary_key=True, autoincrement=False)


def _number(name: str) -> Column[Any]:
    return Column(name, BigInteger, Identity(), primary_key=True)


PHASE_FITS_STATE = """
    CASE phase
      WHEN 'waiting' THEN state = 'PENDING' AND generation = 0
      WHEN 'started' THEN state IN ('PENDING', 'RUNNING', 'PAUSED')
        AND (state = 'PENDING') = (generation = 0)
      WHEN 'ended' THEN state IN ('COMPLETED', 'FAILED', 'CANCELLED')
      ELSE false
    END
"""

Table("meta", metadata, _key("key", Text), _must("value", Text))
Table(
    "partitions",
    metadata,
    _key("number", Integer),
    _must("commit_number", BigInteger),
    _must("generation", Integer),
    _must("claim_term", BigInteger, server_default="0"),
    _must("holder", Text, server_default=""),
    _must("server", Text, server_default=""),
    _must("seen_at", Double, server_default="0"),
    _must("rebuilt_at", Double, server_default="0"),
    _must("rebuilt_on", Text, server_default=""),
)
Table(
    "workflows",
    metadata,
    _key("name", Text),
    _key("version", Integer),
    _must("content_hash", Text),
    _must("created_at", Double),
    _must("deleted", Boolean),
    _must("document", LargeBinary),
    Index("workflow_content", "name", "content_hash", unique=True),
)
Table("aliases", metadata, _key("name", Text), _key("alias", Text), _must("weights", Text))
Table("handlers", metadata, _key("name", Text), _must("defaults", LargeBinary))
Table(
    "executions",
    metadata,
    _number("n"),
    _must("created_at", Double),
    _may("started_at", Double),
    _may("ended_at", Double),
    _must("revision", BigInteger),
    _must("generation", Integer),
    _must("partition", Integer),
    _must("version", Integer),
    _must("id", Text),
    _must("workflow", Text),
    _must("state", Text),
    _must("phase", Text),
    _may("control_request", Text),
    _may("retry_of", Text),
    _may("error_node", Text),
    _may("error", LargeBinary),
    _may("labels", Text),
    _must("intent", LargeBinary),
    _may("rest", LargeBinary),
    _may("parent", Text),
    _may("parent_node", Text),
    _may("parent_partition", Integer),
    _may("archived_at", Double),
    Index("by_id", "id", unique=True),
    CheckConstraint(PHASE_FITS_STATE, name="phase_fits_state"),
    Index("by_state", "phase", "state", "n"),
    Index(
        "by_workflow",
        "workflow",
        "state",
        "n",
        postgresql_where=text("phase <> 'started' OR state = 'PAUSED'"),
    ),
    Index("by_origin", "retry_of", "n", postgresql_where=text("retry_of IS NOT NULL")),
    Index("unfinished", "partition", "id", postgresql_where=text("phase = 'started'")),
    Index("children", "parent", "n", postgresql_where=text("parent IS NOT NULL")),
    Index(
        "ended_children",
        "parent_partition",
        "archived_at",
        postgresql_where=text("archived_at IS NOT NULL"),
    ),
    Index(
        "unfinished_children",
        "partition",
        postgresql_where=text("phase = 'started' AND parent IS NOT NULL"),
    ),
    Index(
        "by_time", "created_at", postgresql_using="brin", postgresql_with={"pages_per_range": 32}
    ),
)
Table(
    "segments",
    metadata,
    _key("n", BigInteger),
    _key("generation", Integer),
    _must("changes", LargeBinary),
    _key("first", Integer),
    _must("until", Integer),
)
Table("labels", metadata, _key("label", LargeBinary), _key("n", BigInteger))
Table(
    "idempotency",
    metadata,
    _key("key", LargeBinary),
    _must("created_at", Double),
    _must("execution_id", Text),
    _must("request_hash", Text),
    Index(
        "keys_by_time",
        "created_at",
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 32},
    ),
)
Table(
    "signals",
    metadata,
    _key("n", BigInteger),
    _must("at", Double),
    _key("number", Integer),
    _must("copied", Boolean),
    _must("name", Text),
    _may("correlation", Text),
    _must("sender", Text),
    _may("idempotency_key", LargeBinary),
    _must("payload", LargeBinary),
    Index("uncopied_signals", "n", postgresql_where=text("NOT copied")),
)
Table(
    "waits",
    metadata,
    _number("id"),
    _must("n", BigInteger),
    _must("node_id", Text),
    _must("kind", Text),
    _may("correlation", Text),
    _must("wait", LargeBinary),
    Index("wait_of_node", "n", "node_id", unique=True),
    Index("waits_by_kind", "kind", "id"),
    Index("waits_by_correlation", "correlation", postgresql_where=text("correlation IS NOT NULL")),
)
Table(
    "posts",
    metadata,
    _number("id"),
    _must("correlation", Text),
    _must("expires_at", Double),
    _must("post", LargeBinary),
    Index("posts_by_correlation", "correlation", "id"),
    Index("posts_by_expiry", "expires_at"),
)
Table(
    "dead_letters",
    metadata,
    _number("id"),
    _must("n", BigInteger),
    _must("mark", LargeBinary),
    _may("closed_at", Double),
    _must("handler", Text),
    _must("category", Text),
    _may("closed", Text),
    _may("retried_as", Text),
    _must("dead_letter", LargeBinary),
    Index("dead_letter_marks", "mark", unique=True),
    Index("dead_letters_of", "n"),
    Index("open_dead_letters", "id", postgresql_where=text("closed IS NULL")),
    Index("dead_letters_by_handler", "handler", "id"),
)
Table(
    "api_keys",
    metadata,
    _key("id", Text),
    _must("created_at", Double),
    _may("revoked_at", Double),
    _must("name", Text),
    _must("scopes", Text),
    _must("hash", LargeBinary),
)
Table(
    "audit",
    metadata,
    _number("id"),
    _must("at", Double),
    _must("status", Integer),
    _must("key_id", Text),
    _must("key_name", Text),
    _must("action", Text),
    _must("object", Text),
    _must("address", Text),
    _may("detail", Text),
    Index("audit_of", "object", postgresql_using="hash"),
    Index("audit_by_action", "action", "id"),
)
Table("reports", metadata, _key("n", BigInteger), _must("report", JSONB))
Table("blobs", metadata, _key("key", Text), _must("used_at", Double), _must("data", LargeBinary))
Table("blob_uses", metadata, _key("key", Text), _key("n", BigInteger), Index("blobs_of", "n"))
