"""A term per partition, by which it is decided who may build it again."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        Path(__file__).with_name("v0002_rebuild_term.sql").read_text("utf-8")
    )
