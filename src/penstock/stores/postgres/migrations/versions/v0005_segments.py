"""Changes of an execution in segments: a checkpoint adds what is new."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_name("v0005_segments.sql").read_text("utf-8"))
