"""Alembic's folder: `env.py` and the steps in `versions/`, each with its SQL beside it."""
