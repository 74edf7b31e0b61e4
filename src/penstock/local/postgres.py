"""A PostgreSQL server that is started here."""

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
        """Without `fsync` it is faster, but a crash of the machine may destroy the data."""
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
        version_file = self.data / "PG_VERSION"
        major = None
        if version_file.exists():
            major = int(version_file.read_text(encoding="ascii"))
        self.installation = usable(find_postgres(major), self._account, self.folder)
        if major is None:
            self._initialize()

    def _initialize(self) -> None:
        """Create the data in a folder of another name, so that a half-made one is not used."""
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        owned_folder(unfinished, self._account)
        with tempfile.NamedTemporaryFile("w", suffix=".password") as file:
            file.write(self.password())
            file.flush()
            if self._account is not None:
                os.chown(file.name, self._account.user, self._account.group)

            options = [
                f"--pgdata={unfinished}",
                f"--username={USER}",
                "--encoding=UTF8",
                "--no-locale",
                "--auth=scram-sha-256",
                f"--pwfile={file.name}",
            ]
            if not self._fsync:
                options.append("--no-sync")
            self._run("initdb", *options)
        unfinished.rename(self.data)

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
            last_lines = done.stderr.split("\n")[-4:]
            raise PenstockError(f"{program} failed: {' | '.join(last_lines)}")

    def _launch(self) -> Process:
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": str(CONNECTIONS),
        }
        if not self._fsync:
            settings |= FAST
        options: list[str] = []
        for name, value in settings.items():
            options += ["-c", f"{name}={value}"]

        # SIGINT is its "fast shutdown": SIGTERM would wait until all clients have disconnected.
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
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, (USER,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {USER}")


def _psycopg() -> Any:
    try:
        import psycopg  # noqa: PLC0415 -- an extra
    except ImportError:
        raise PenstockError(f"PostgreSQL needs its client, psycopg; {HOW}") from None
    return psycopg
