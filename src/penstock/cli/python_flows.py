"""Workflows in Python: `flow.py:flow` or `package.module:flow` instead of a document's file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from penstock.definition.builder import Workflow
from penstock.definition.parse import refuse
from penstock.definition.problems import Problem
from penstock.errors import InvalidWorkflow, SettingsError
from penstock.worker.loading import load_module

UNREADABLE = "unreadable"


class PythonFlow(NamedTuple):
    """Where a workflow is in Python."""

    origin: str
    """A module's name, or a `.py` file."""
    name: str
    """Of the variable; empty for the only workflow of the module."""


def python_flow(target: str) -> PythonFlow | None:
    """The workflow in Python that an argument names; None if it names something else."""
    if target.endswith(".py"):
        return PythonFlow(target, "")
    origin, colon, name = target.rpartition(":")
    if not colon or not name.isidentifier():
        return None
    is_module = all(part.isidentifier() for part in origin.split("."))
    if origin.endswith(".py") or (is_module and not Path(target).exists()):
        return PythonFlow(origin, name)
    return None


def is_importable(flow: PythonFlow) -> bool:
    """Whether there is such a file or module; a stored workflow may have such a name too."""
    if flow.origin.endswith(".py"):
        return True
    sys.path.insert(0, str(Path.cwd()))
    try:
        return find_spec(flow.origin.partition(".")[0]) is not None
    finally:
        sys.path.pop(0)


def read_python_flow(flow: PythonFlow) -> dict[str, Any]:
    """Import the module, which registers its handlers, and return the workflow's document.

    Raises `InvalidWorkflow` if there is none.
    """
    value = _chosen(flow, _import(flow.origin))
    if isinstance(value, Workflow):
        return value.document()
    if not isinstance(value, Mapping):
        refuse(
            UNREADABLE,
            f"it must be a penstock.Workflow or a dict, and it is of type {type(value).__name__}",
        )
    return dict(value)


def _import(origin: str) -> ModuleType:
    from penstock.cli.reading import cause_of

    try:
        # What the module prints must not be mixed with what the command prints.
        with redirect_stdout(sys.stderr):
            return load_module(origin, "with a workflow")
    except SettingsError as error:
        refuse(UNREADABLE, str(error))
    except (Exception, SystemExit) as error:
        raise InvalidWorkflow([Problem(UNREADABLE, "", cause_of(error))]) from error


def _chosen(flow: PythonFlow, module: ModuleType) -> Any:
    names = [name for name, value in vars(module).items() if isinstance(value, Workflow)]
    if flow.name:
        if not hasattr(module, flow.name):
            hint = f"; it has {', '.join(names)}" if names else ""
            refuse(UNREADABLE, f"{flow.origin} has no {flow.name!r}{hint}")
        return getattr(module, flow.name)

    if not names:
        refuse(
            UNREADABLE,
            f"it has no penstock.Workflow; name the variable of a dict as {flow.origin}:NAME",
        )
    if len(names) > 1:
        choices = ", ".join(f"{flow.origin}:{name}" for name in names)
        refuse(UNREADABLE, f"it has {len(names)} workflows; name one of them: {choices}")
    return getattr(module, names[0])
