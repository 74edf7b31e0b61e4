"""Who is measured, on what, and what each of them promises about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SQLITE, EVERYSEC, ALWAYS = "penstock-sqlite", "penstock-everysec", "penstock-always"


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    script: str
    durability: str
    """What is lost if the machine's power fails."""
    needs: Literal["folder", "sqlite", "redis", "postgres", "both"]
    beside: str
    """The Penstock that it is compared with: the one on the like of its stores."""
    packages: tuple[str, ...] = ()
    """None: it runs in this environment."""
    append_only: Literal["everysec", "always"] = "everysec"
    processes: int = 0

    @property
    def environment(self) -> str:
        return self.script.partition("_")[0]

    @property
    def is_penstock(self) -> bool:
        return not self.packages


def _scaled(name: str, append_only: Literal["everysec", "always"], processes: int) -> Peer:
    again = (
        "nothing that was acknowledged"
        if append_only == "always"
        else "no workflow; up to 1 s of its steps run again"
    )
    return Peer(
        name,
        f"Penstock, Redis (AOF {append_only}) + PostgreSQL, {processes} + {processes}",
        "penstock_scaled",
        f"{again}; PostgreSQL syncs each commit",
        "both",
        name,
        append_only=append_only,
        processes=processes,
    )


PEERS = (
    Peer(
        SQLITE,
        "Penstock, SQLite",
        "penstock_embedded",
        "nothing that was acknowledged: WAL with `synchronous=FULL`",
        "folder",
        SQLITE,
    ),
    _scaled(EVERYSEC, "everysec", 1),
    _scaled("penstock-everysec-2", "everysec", 2),
    _scaled(ALWAYS, "always", 1),
    _scaled("penstock-always-2", "always", 2),
    Peer(
        "dbos-sqlite",
        "DBOS, SQLite",
        "dbos_store",
        "nothing that was acknowledged: SQLite's default of `synchronous=FULL`",
        "sqlite",
        SQLITE,
        ("dbos",),
    ),
    Peer(
        "dbos-postgres",
        "DBOS, PostgreSQL",
        "dbos_store",
        "nothing that was acknowledged: PostgreSQL syncs each commit",
        "postgres",
        ALWAYS,
        ("dbos",),
    ),
    Peer(
        "celery",
        "Celery, Redis",
        "celery_redis",
        "up to 1 s of messages and results (AOF everysec); a task that runs when its worker "
        "dies is lost too "
        "(acknowledged before it runs, the default)",
        "redis",
        EVERYSEC,
        ("celery[redis]",),
    ),
    Peer(
        "taskiq",
        "taskiq, Redis streams",
        "taskiq_floor",
        "every workflow that is under way: what comes next is known to the submitting process only",
        "redis",
        EVERYSEC,
        ("taskiq", "taskiq-redis"),
    ),
    # Prefect 3.8.8 doesn't start with the newest FastAPI that it allows
    Peer(
        "prefect",
        "Prefect 3, SQLite",
        "prefect_flow",
        "where a flow was: states are reported to a server on SQLite, and a flow starts again "
        "from its beginning",
        "folder",
        SQLITE,
        ("prefect>=3", "fastapi==0.139.*"),
    ),
    Peer(
        "dagster",
        "Dagster, SQLite",
        "dagster_graph",
        "the run that is under way: its events are in SQLite, and it is started again by hand "
        "from its failed ops",
        "folder",
        SQLITE,
        ("dagster",),
    ),
    Peer(
        "airflow",
        "Airflow 3, PostgreSQL",
        "airflow_dag",
        "the tasks that run: its states are in PostgreSQL, and a task that is lost is run again "
        "by its retries",
        "postgres",
        ALWAYS,
        ("apache-airflow>=3", "psycopg2-binary", "asyncpg"),
    ),
)
