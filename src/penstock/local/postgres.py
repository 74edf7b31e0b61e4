"""A PostgreSQL of our own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.local.accounts import account_for, owned_folder, reachable_folder, usable
from penstock.local.finding import HOW, find_postgres
from penstock.local.ports import HOST
from penstock.local.process import Process
from penstock.local.server import Server

USER = "penstock"
INIT_SECONDS = 60.0
CONNECTIONS = 200
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}


class PostgresServer(Server):
    name = "PostgreSQL"

    def __init__(self, folder: Path, *, port: int = 0, fsync: bool = True) -> None:
        """Without `fsync` it is faster, and a crash of the machine may destroy the data: for tests."""
        super().__init__(folder, port)
        self._fsync = fsync
        self._account = account_for(self.folder / "data")
        self.folder = reachable_folder(self.folder, self._account)
        self._account = account_for(self.folder / "data")

    @property
    def url(self) -> str:
        return self.url_of(USER)

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self.password()}@{HOST}:{self.port}/{database}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> PostgresServer:
        super().start()
        self._make_database()
        return self

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        made_by = self.data / "PG_VERSION"
        major = int(made_by.read_text(encoding="ascii")) if made_by.exists() else None
        self.installation = usable(find_postgres(major), self._account, self.folder)
        if major is None:
            self._initialize()

    def _initialize(self) -> None:
        """Under another name first: a half-made folder would be taken for data at the next start."""
        half = self.folder / "data.new"
        shutil.rmtree(half, ignore_errors=True)
        owned_folder(half, self._account)
        with tempfile.NamedTemporaryFile("w", suffix=".password") as file:
            file.write(self.password())
            file.flush()
            if self._account is not None:
                os.chown(file.name, self._account.user, self._account.group)
            self._run(
                "initdb",
                "-D",
                half,
                "-U",
                USER,
                "-E",
                "UTF8",
                "--no-locale",
                "-A",
                "scram-sha-256",
                f"--pwfile={file.name}",
                *([] if self._fsync else ["--no-sync"]),
            )
        half.rename(self.data)

    def _run(self, program: str, *arguments: str | Path) -> None:
        account: dict[str, Any] = {}
        if self._account is not None:
            account = {"user": self._account.user, "group": self._account.group, "extra_groups": []}
        done = subprocess.run(  # noqa: S603 -- PostgreSQL's own
            [self.installation.folder / program, *arguments],
            capture_output=True,
            text=True,
            timeout=INIT_SECONDS,
            check=False,
            cwd="/",
            **account,
        )
        if done.returncode:
            raise PenstockError(f"{program} failed: {' | '.join(done.stderr.split(chr(10))[-4:])}")

    def _launch(self) -> Process:
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": str(CONNECTIONS),
            **({} if self._fsync else FAST),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        # SIGINT is its "fast shutdown": SIGTERM would wait until everybody has hung up
        return Process(
            [self.installation.path, "-D", self.data, *options],
            self.log,
            folder=Path("/"),
            account=self._account,
            stop_signal=signal.SIGINT,
        )

    def _answers(self) -> bool:
        psycopg = _psycopg()
        try:
            psycopg.connect(self.url_of("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        psycopg = _psycopg()
        with psycopg.connect(self.url_of("postgres"), autocommit=True) as connection:
            known = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", (USER,)
            ).fetchone()
            if known is None:
                connection.execute(f"CREATE DATABASE {USER}")


def _psycopg() -> Any:
    try:
        import psycopg  # noqa: PLC0415 -- an extra
    except ImportError:
        raise PenstockError(f"PostgreSQL needs its client, psycopg; {HOW}") from None
    return psycopg
