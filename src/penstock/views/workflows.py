"""Workflows: what is stored under a name, its versions and its aliases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.definition.problems import Problem
from penstock.stores.base import WorkflowVersion
from penstock.stores.records import LATEST, Weights, WorkflowRow
from penstock.views.graphs import WorkflowGraph
from penstock.views.times import time_text

ShownWeights = dict[str, int]
"""`Weights`, with text as keys, as JSON has no other."""


class StoredWorkflow(msgspec.Struct, kw_only=True):
    name: str
    version: int
    created: bool
    created_at: str
    warnings: list[Problem]
    aliases: dict[str, ShownWeights]


class ListedWorkflow(msgspec.Struct, kw_only=True):
    name: str
    latest_version: int
    versions: int
    aliases: dict[str, ShownWeights]
    created_at: str
    updated_at: str


class Workflow(msgspec.Struct, kw_only=True):
    name: str
    version: int
    definition: dict[str, Any]
    created_at: str
    latest_version: int
    aliases: dict[str, ShownWeights]


class Version(msgspec.Struct, kw_only=True):
    version: int
    created_at: str
    content_hash: str
    aliases: list[str]


class ExecutionDefinition(msgspec.Struct, kw_only=True):
    """The document that an execution runs."""

    execution_id: str
    workflow: str
    version: int
    definition: dict[str, Any]
    stored: Annotated[
        bool,
        Meta(
            description="The version can be started by its name:"
            " it isn't inline and wasn't deleted."
        ),
    ]


class Alias(msgspec.Struct, kw_only=True):
    name: str
    alias: str
    weights: ShownWeights


class Validation(msgspec.Struct, kw_only=True):
    valid: bool
    name: str | None
    nodes: int
    problems: list[Problem]
    warnings: list[Problem]
    graph: Annotated[
        WorkflowGraph | UnsetType,
        Meta(description="If it was asked for, and there are no mistakes."),
    ] = UNSET


def stored_workflow_view(
    stored: WorkflowVersion,
    aliases: Mapping[str, Weights],
    warnings: list[Problem],
    *,
    created: bool,
) -> StoredWorkflow:
    return StoredWorkflow(
        name=stored.name,
        version=stored.version,
        created=created,
        created_at=time_text(stored.created_at),
        warnings=warnings,
        aliases=aliases_view(aliases),
    )


def listed_workflow_view(row: WorkflowRow) -> ListedWorkflow:
    return ListedWorkflow(
        name=row.name,
        latest_version=row.latest,
        versions=row.versions,
        aliases=aliases_view({LATEST: {row.latest: 100}, **row.aliases}),
        created_at=time_text(row.created_at),
        updated_at=time_text(row.updated_at),
    )


def workflow_view(stored: WorkflowVersion, aliases: Mapping[str, Weights]) -> Workflow:
    return Workflow(
        name=stored.name,
        version=stored.version,
        definition=json.loads(stored.document),
        created_at=time_text(stored.created_at),
        latest_version=max(aliases.get(LATEST) or {stored.version: 1}),
        aliases=aliases_view(aliases),
    )


def version_view(stored: WorkflowVersion, aliases: Mapping[str, Weights]) -> Version:
    version = stored.version
    return Version(
        version=version,
        created_at=time_text(stored.created_at),
        content_hash=stored.content_hash,
        aliases=sorted(alias for alias in aliases if aliases[alias].get(version)),
    )


def weights_view(weights: Weights) -> ShownWeights:
    return {str(version): share for version, share in weights.items()}


def aliases_view(aliases: Mapping[str, Weights]) -> dict[str, ShownWeights]:
    return {name: weights_view(weights) for name, weights in aliases.items()}
