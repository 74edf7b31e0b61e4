"""The account that PostgreSQL runs as, since it refuses to run as root.

If we are root, it runs as an account without privileges, which must be able to reach its files.
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
    """The account that a server with these data runs as; None for our own."""
    if os.geteuid() != 0:
        return None
    if data.exists():
        # The same account as last time.
        owner = data.stat().st_uid
        if owner != 0:
            return Account(str(owner), owner, data.stat().st_gid)

    accounts = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in (*PREFERRED, *accounts):
        if name in accounts:
            return Account(name, accounts[name].pw_uid, accounts[name].pw_gid)
    raise PenstockError(
        "PostgreSQL doesn't run as root, and this system has no other account; "
        "create one, or use a URL"
    )


def reachable_folder(folder: Path, account: Account | None) -> Path:
    """The folder, or one in /var/tmp if the account may not enter a folder above it.

    That is so below /root, for example.
    """
    if account is None or _may_enter(folder.absolute(), account):
        return folder
    name = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]
    # It is created here, or refused if it belongs to somebody else.
    elsewhere = Path("/var/tmp") / f"penstock-{name}"  # noqa: S108
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
        status = above.stat()
        bit = stat.S_IXUSR if status.st_uid == account.user else stat.S_IXOTH
        if status.st_gid == account.group and status.st_uid != account.user:
            bit = stat.S_IXGRP
        if not status.st_mode & bit:
            return False
    return True


def owned_folder(path: Path, account: Account | None) -> Path:
    """Create a folder, with those above it, that belongs to the account."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if account is not None and path.stat().st_uid != account.user:
        os.chown(path, account.user, account.group)
    return path


def usable(installation: Installation, account: Account | None, folder: Path) -> Installation:
    """The installation, or a copy in `folder` if the account can't run it where it is.

    That is so for a wheel below /root, for example.
    """
    if account is None or _runs(installation, account):
        return installation
    copy = folder / "installation"
    if not copy.exists():
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            unfinished = Path(temporary) / "copy"
            shutil.copytree(installation.folder.parent, unfinished, symlinks=True)
            unfinished.chmod(0o755)
            unfinished.rename(copy)
    copied = Installation(
        installation.name, installation.version, copy / "bin", installation.program
    )
    if not _runs(copied, account):
        raise PenstockError(
            f"{account.name} can't run {installation}; "
            "install PostgreSQL for all users, or use a URL"
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
