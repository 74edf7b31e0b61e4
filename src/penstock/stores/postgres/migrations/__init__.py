"""Alembic's folder.

- `env`: run by Alembic.
- `versions`: the steps, each with its SQL beside it.
"""
