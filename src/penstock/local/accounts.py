"""PostgreSQL refuses to run as root.

Where we are root, it runs as an account without rights, which must reach it.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from penstock.errors import PenstockError
from penstock.local.finding import Installation
from penstock.local.process import Account

PREFERRED = ("postgres", "nobody")
VERSION_SECONDS = 10.0


def account_for(data: Path) -> Account | None:
    """Whom a server with these data runs as; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat().st_uid) != 0:  # as last time
        return Account(str(owner), owner, data.stat().st_gid)
    known = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in (*PREFERRED, *known):
        if name in known:
            return Account(name, known[name].pw_uid, known[name].pw_gid)
    raise PenstockError(
        "PostgreSQL doesn't run as root, and this system has no other account; create one, or use a URL"
    )


def reachable_folder(folder: Path, account: Account | None) -> Path:
    """The folder itself, unless one above it keeps the account out (as /root does): then one in the system's place."""
    if account is None or _may_enter(folder.absolute(), account):
        return folder
    name = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]
    elsewhere = Path("/var/tmp") / f"penstock-{name}"  # noqa: S108 -- made below, or refused if somebody else has it
    elsewhere.mkdir(mode=0o755, exist_ok=True)
    if elsewhere.lstat().st_uid != os.geteuid() or elsewhere.is_symlink():
        raise PenstockError(
            f"{elsewhere} belongs to somebody else; choose a folder that {account.name} may enter"
        )
    return elsewhere


def _may_enter(folder: Path, account: Account) -> bool:
    for above in folder.resolve().parents:
        if not above.exists():
            continue
        found = above.stat()
        bit = stat.S_IXUSR if found.st_uid == account.user else stat.S_IXOTH
        if found.st_gid == account.group and found.st_uid != account.user:
            bit = stat.S_IXGRP
        if not found.st_mode & bit:
            return False
    return True


def owned_folder(path: Path, account: Account | None) -> Path:
    """Made with all above it, and the account's own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if account is not None and path.stat().st_uid != account.user:
        os.chown(path, account.user, account.group)
    return path


def usable(installation: Installation, account: Account | None, folder: Path) -> Installation:
    """Itself, or a copy in `folder` if the account can't run it where it is (a wheel below /root)."""
    if account is None or _runs(installation, account):
        return installation
    copy = folder / "installation"
    if not copy.exists():
        with tempfile.TemporaryDirectory(dir=folder) as half:
            made = Path(half) / "copy"
            shutil.copytree(installation.folder.parent, made, symlinks=True)
            made.chmod(0o755)
            made.rename(copy)
    copied = Installation(
        installation.name, installation.version, copy / "bin", installation.program
    )
    if not _runs(copied, account):
        raise PenstockError(
            f"{account.name} can't run {installation}; install PostgreSQL for all users, or use a URL"
        )
    return copied


def _runs(installation: Installation, account: Account) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 -- a server's binary
            [installation.path, "--version"],
            user=account.user,
            group=account.group,
            extra_groups=[],
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
            cwd="/",
        )
    except OSError:
        return False
    return done.returncode == 0
