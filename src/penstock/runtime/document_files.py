"""`penstock.load`: a document from a file, checked, with the place of every problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.definition.handler_configs import ConfigRules
from penstock.definition.parse import Limits, form_of, parse
from penstock.definition.plan import compile_document
from penstock.definition.positions import located
from penstock.errors import InvalidWorkflow
from penstock.worker.registry import registered


def load(file: str | Path, *, strict: bool = False) -> dict[str, Any]:
    """Read a workflow from a file: JSON, which may have `//` comment lines, or YAML.

    The document is a `dict` that `run`, `Engine.start` and `Client.start` take. It is checked, also
    against the handlers that are registered by now; handlers that aren't may come later. With
    `strict`, unknown fields are problems too.

    Raises `InvalidWorkflow` with all problems, each with its line and column, and `OSError` if the
    file can't be read.
    """
    path = Path(file)
    data = path.read_bytes()
    form = form_of(path.name)
    settings = Settings.load({"http_private": True})
    limits = document_limits(settings)
    try:
        document: dict[str, Any] = parse(data, form=form, limits=limits)
        compile_document(
            document,
            handlers=registered.defaults(),
            allow_unknown_handlers=True,
            strict=strict,
            limits=limits,
            config_rules=config_rules(settings),
            checked=True,
        )
    except InvalidWorkflow as error:
        raise InvalidWorkflow(located(error.problems, data, form), str(file)) from None
    return document


def document_limits(settings: Settings) -> Limits:
    return Limits(
        settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth
    )


def config_rules(settings: Settings) -> ConfigRules:
    """How configs are judged, with the handlers that this process has imported."""
    return ConfigRules(registered.config_checks(), settings.mock_services, settings.names_models)
