"""Loading of the modules that define handlers: by name (`my.handlers`) or path (`handlers.py`)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from penstock.errors import SettingsError
from penstock.worker.registry import Handler


def load_handlers(origins: Iterable[str]) -> None:
    """Import each module, so that its `@handler`s register.

    Raises `SettingsError` with what to do.
    """
    for origin in origins:
        load_module(origin, "with handlers")


def load_module(origin: str, description: str) -> ModuleType:
    """Import the module of a name or a file; `description` says what it is needed for.

    Raises `SettingsError` with what to do.
    """
    if origin.endswith(".py"):
        return _load_file(Path(origin).resolve(), description)
    return _load_named(origin, description)


def _load_named(name: str, description: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it; the console script doesn't
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise SettingsError(
                f"there is no module {name!r} {description}; give a module's name or a .py file"
            ) from None
        raise


def _load_file(path: Path, description: str) -> ModuleType:
    if not path.is_file():
        raise SettingsError(f"there is no file {path} {description}")
    name = f"penstock_handlers_{path.stem}"
    imported = sys.modules.get(name)
    if imported is not None and getattr(imported, "__file__", None) == str(path):
        return imported

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{path} can't be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # so that it finds its neighbours, as when it is run
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # as an import statement does it
        raise
    return module


def origin_of(handler: Handler) -> str:
    """What a child process has to import to have this handler."""
    name = handler.function.__module__
    module = sys.modules.get(name)
    if name == "__main__" or name.startswith("penstock_handlers_"):
        return str(getattr(module, "__file__", ""))
    return name
