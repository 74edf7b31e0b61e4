"""Hooks, their deliveries, and the messages that they have had."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_name("v0008_hooks.sql").read_text("utf-8"))
