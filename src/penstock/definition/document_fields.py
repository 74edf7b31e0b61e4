"""The fields of a document: every spelling that is read, what it means and which values it takes.

`read` knows its names from here, and `document_schema` makes the JSON Schema of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.error_patterns import PATTERN_CHARACTERS_MAX
from penstock.definition.fields import SECONDS_MAX
from penstock.definition.model import (
    CHILD_DEPTH,
    CHILD_DEPTH_MAX,
    ITEM_FAILURE_POLICIES,
    REGION_OUTPUTS,
    TRIGGER_RULES,
)

Schema = dict[str, Any]
ID_CHARACTERS_MAX = 256
MULTIPLIER_MAX = 1000
ATTEMPTS_MAX = 1000
PARALLEL_MAX = 10_000
ROUNDS_MAX = 10_000
REGION_DEPTH_MAX = 4
"""How deep maps and loops may be nested."""
NO_CONTROL_CHARACTERS = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"

SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": SECONDS_MAX}
DELAY: Schema = {"type": "number", "minimum": 0, "maximum": SECONDS_MAX}
NAME: Schema = {
    "type": "string",
    "maxLength": ID_CHARACTERS_MAX,
    "pattern": NO_CONTROL_CHARACTERS,
}
NODE_ID: Schema = {**NAME, "minLength": 1}
MULTIPLIER: Schema = {"type": "number", "minimum": 1, "maximum": MULTIPLIER_MAX}
TEXT: Schema = {"type": "string"}
PERCENT = "^\\d+(\\.\\d+)?%$"
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}
RETRY: Schema = {"$ref": "#/$defs/retry"}


class DocumentField(msgspec.Struct, frozen=True):
    description: str
    schema: Schema
    """Of a value that isn't null, which is as if the field were missing."""


def _kept(what: str) -> DocumentField:
    return DocumentField(f"{what} Stored with the document; no effect.", ANY)


DESCRIPTION = DocumentField(
    "What it is for. Stored with the document; no effect.", {"type": "string"}
)
RETRY_FIELD = DocumentField("How failed attempts are repeated.", RETRY)
RETRY_ALIAS = DocumentField("The same as `retry`.", RETRY)
DEFAULT_RETRY = DocumentField("The same as `defaults.retry`.", RETRY)
TIMEOUT_FIELD = DocumentField("How long one attempt may take.", SECONDS)
TIMEOUT_ALIAS = DocumentField("The same as `timeout_seconds`.", SECONDS)
QUEUE = DocumentField("Which workers may take the task. Default: the handler's name.", NAME)
QUEUE_TIMEOUT = DocumentField("How long a task may wait until a worker takes it.", SECONDS)
DEPENDENCIES: Schema = {
    "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]
}
PATTERN: Schema = {"type": "string", "minLength": 1, "maxLength": PATTERN_CHARACTERS_MAX}
PATTERNS: Schema = {"anyOf": [{"type": "array", "items": PATTERN, "minItems": 1}, PATTERN]}
CATCHES_MAX = 100
"""Nodes that one node may catch, and nodes that may catch one."""
CATCH_FIELDS: dict[str, DocumentField] = {
    "node": DocumentField("The id of the node whose failure is handled.", NODE_ID),
    "on": DocumentField("Which of its errors are meant. Default: all.", PATTERNS),
}
CATCH: Schema = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/catch"}]}
CATCHES: Schema = {"anyOf": [{"type": "array", "items": CATCH, "maxItems": CATCHES_MAX}, CATCH]}
CASES: Schema = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]
    },
}
NODES: Schema = {
    "anyOf": [
        {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1},
        {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/keyed_node"},
            "minProperties": 1,
        },
    ]
}
NODES_FIELD = DocumentField("The nodes: a list, or an object that maps ids to nodes.", NODES)

WORKFLOW_FIELDS: dict[str, DocumentField] = {
    "$schema": DocumentField("The address of this schema, for editors.", ANY),
    "name": DocumentField("The name. Default: `workflow-` and a hash of the content.", NAME),
    "description": DESCRIPTION,
    "timeout_seconds": DocumentField("How long the whole execution may take.", SECONDS),
    "timeout": TIMEOUT_ALIAS,
    "cleanup_timeout_seconds": DocumentField(
        "How long clean-up nodes may take after a cancel, the timeout or a terminate node."
        " Default: 300.",
        SECONDS,
    ),
    "on_failure": DocumentField(
        "Whether a failed node ends the execution, or other branches finish first.",
        {"enum": ["fail_fast", "continue"]},
    ),
    "input_schema": DocumentField(
        "A JSON Schema that the input, including defaults, must satisfy.",
        {"type": ["object", "boolean"]},
    ),
    "input": DocumentField("Default values for the execution's input.", OBJECT),
    "defaults": DocumentField("For nodes that don't set their own.", {"$ref": "#/$defs/defaults"}),
    "dag": DocumentField("The nodes, as an object around them.", {"$ref": "#/$defs/dag"}),
    "nodes": NODES_FIELD,
    "labels": DocumentField("Stored with the document; no effect.", OBJECT),
    "metadata": _kept("Anything."),
    "created_by": _kept("Who wrote it."),
    "version": _kept("A version of your own."),
    "retry": DEFAULT_RETRY,
    "retry_policy": DEFAULT_RETRY,
    "retry_config": DEFAULT_RETRY,
}
DAG_FIELDS: dict[str, DocumentField] = {
    "nodes": NODES_FIELD,
    "labels": _kept("Labels."),
    "metadata": _kept("Anything."),
    "description": _kept("What it is for."),
    "created_by": _kept("Who wrote it."),
}
DEFAULTS_FIELDS: dict[str, DocumentField] = {
    "retry": RETRY_FIELD,
    "retry_policy": RETRY_ALIAS,
    "retry_config": RETRY_ALIAS,
    "timeout_seconds": TIMEOUT_FIELD,
    "timeout": TIMEOUT_ALIAS,
    "queue": QUEUE,
    "queue_timeout_seconds": QUEUE_TIMEOUT,
}
NODE_FIELDS: dict[str, DocumentField] = {
    "id": DocumentField("A name that no other node has.", NODE_ID),
    "handler": DocumentField("The name of the handler that it runs.", NAME),
    "type": DocumentField("The same as `handler`.", NAME),
    "depends_on": DocumentField(
        "Ids of the nodes to wait for. References in the config, the condition and the expression"
        " make dependencies too.",
        DEPENDENCIES,
    ),
    "dependencies": DocumentField("The same as `depends_on`.", DEPENDENCIES),
    "config": DocumentField(
        "The arguments of the handler, with {{ references }} anywhere in its strings.", OBJECT
    ),
    "condition": DocumentField(
        "A CEL expression; if it is false, the node is skipped.", {"type": ["string", "boolean"]}
    ),
    "trigger_rule": DocumentField(
        "When the node starts, depending on how its dependencies ended. Default: all_success.",
        {"enum": list(TRIGGER_RULES)},
    ),
    "finally": DocumentField(
        "The trigger rule all_done; without dependencies, after all other nodes.",
        {"type": "boolean"},
    ),
    "switch": DocumentField(
        "Instead of a handler: a CEL expression whose value chooses one of the cases.",
        {"type": "string", "pattern": "\\S"},
    ),
    "cases": DocumentField(
        "For each value of the switch, and for default, the nodes that run then.", CASES
    ),
    "catches": DocumentField(
        "Nodes whose failures it handles: it starts when one of them has failed, and if it"
        " completes, those failures count no more.",
        CATCHES,
    ),
    "retry": RETRY_FIELD,
    "retry_policy": RETRY_ALIAS,
    "retry_config": RETRY_ALIAS,
    "timeout_seconds": TIMEOUT_FIELD,
    "timeout": TIMEOUT_ALIAS,
    "queue": QUEUE,
    "queue_timeout_seconds": QUEUE_TIMEOUT,
    "optional": DocumentField("The node's failure fails nothing else.", {"type": "boolean"}),
    "dead_letter": DocumentField(
        "Whether the node's failure is stored as a dead letter."
        " Default: true, but false for an optional node.",
        {"type": "boolean"},
    ),
    "on_dependency_failure": DocumentField(
        "The node's state after a dependency failed. Default: skip.", {"enum": ["skip", "fail"]}
    ),
    "for_each": DocumentField(
        "A reference to a list, or a list: the node, or its nodes, run once for each item.",
        {"anyOf": [{"type": "string", "pattern": "\\{\\{"}, {"type": "array"}]},
    ),
    "nodes": DocumentField("The nodes that run for each item or in each round.", NODES),
    "as": DocumentField(
        "The name of the item in references. Default: item; its index is then index.", NAME
    ),
    "key": DocumentField("A template over the item: what it is recognised by in a retry.", TEXT),
    "max_parallel": DocumentField(
        "How many items run at once. Default: 1000.",
        {"type": "integer", "minimum": 1, "maximum": PARALLEL_MAX},
    ),
    "on_item_failure": DocumentField(
        "What the failure of an item means for the others and for the map. Default: fail_fast.",
        {"enum": [*ITEM_FAILURE_POLICIES, "fail"]},
    ),
    "max_failures": DocumentField(
        'How many items may fail, or which part of them, as "5%"; more fail the map.',
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": PERCENT}]},
    ),
    "collect": DocumentField("A template over the nodes of an item: its output.", ANY),
    "output": DocumentField(
        "What the output is: a list of the items' outputs, only counts, or nothing. Default: list.",
        {"enum": list(REGION_OUTPUTS)},
    ),
    "item_timeout_seconds": DocumentField("How long one item may take.", SECONDS),
    "repeat": DocumentField("The node, or its nodes, run in rounds.", {"$ref": "#/$defs/repeat"}),
    "wait": DocumentField(
        "Of a workflow node: whether it ends with its child, or as soon as that is started."
        " Default: true.",
        {"type": "boolean"},
    ),
    "on_parent_end": DocumentField(
        "Of a workflow node: what becomes of its child when this execution ends first."
        " Default: cancel.",
        {"enum": ["cancel", "leave"]},
    ),
    "max_depth": DocumentField(
        "Of a workflow node: how deep children of children may go."
        f" Default: {CHILD_DEPTH}; with a number, workflows may run each other in a circle.",
        {"type": "integer", "minimum": 1, "maximum": CHILD_DEPTH_MAX},
    ),
    "labels": _kept("Labels."),
    "metadata": _kept("Anything."),
    "description": _kept("What it is for."),
    "created_by": _kept("Who wrote it."),
    "name": _kept("A name for people."),
}
REPEAT_FIELDS: dict[str, DocumentField] = {
    "until": DocumentField(
        "A CEL expression over the round's nodes; the loop ends when it is true.", TEXT
    ),
    "max_rounds": DocumentField(
        "How many rounds there may be.",
        {"type": "integer", "minimum": 1, "maximum": ROUNDS_MAX},
    ),
    "every_seconds": DocumentField("The pause between two rounds. Default: none.", DELAY),
    "multiplier": DocumentField("By how much each pause is longer than the last.", MULTIPLIER),
    "most_every_seconds": DocumentField("How far pauses grow.", DELAY),
    "initial": DocumentField("What {{ previous }} is in the first round.", ANY),
    "carry": DocumentField(
        "A template over the round's nodes: what {{ previous }} is in the next round.", ANY
    ),
    "keep_rounds": DocumentField(
        "Of how many rounds before the current one outputs are kept. Default: 10.",
        {"type": "integer", "minimum": 1, "maximum": ROUNDS_MAX},
    ),
    "on_exhausted": DocumentField(
        "The loop's end after max_rounds: fail or continue. Default: fail.",
        {"enum": ["fail", "continue"]},
    ),
    "on_round_failure": DocumentField(
        "Whether a round that fails fails the loop. Default: fail.",
        {"enum": ["fail", "continue"]},
    ),
}
ATTEMPTS: Schema = {"type": "integer", "minimum": 1, "maximum": ATTEMPTS_MAX}
RETRIES: Schema = {"type": "integer", "minimum": 0, "maximum": ATTEMPTS_MAX - 1}
JITTER: Schema = {"anyOf": [DELAY, {"type": "boolean"}]}
RETRY_FIELDS: dict[str, DocumentField] = {
    "max_attempts": DocumentField("All attempts: the first one and the retries.", ATTEMPTS),
    "max_retries": DocumentField("Retries only: one less than max_attempts.", RETRIES),
    "initial_delay_seconds": DocumentField("The delay before the first retry.", DELAY),
    "delay_seconds": DocumentField("A delay that doesn't grow.", DELAY),
    "initial_backoff_seconds": DocumentField("The same as `initial_delay_seconds`.", DELAY),
    "initial_delay": DocumentField("The same as `initial_delay_seconds`.", DELAY),
    "multiplier": DocumentField("By how much each delay is longer than the last.", MULTIPLIER),
    "backoff_multiplier": DocumentField("The same as `multiplier`.", MULTIPLIER),
    "exponential_base": DocumentField("The same as `multiplier`.", MULTIPLIER),
    "max_delay_seconds": DocumentField("How far delays grow.", DELAY),
    "max_backoff_seconds": DocumentField("The same as `max_delay_seconds`.", DELAY),
    "max_delay": DocumentField("The same as `max_delay_seconds`.", DELAY),
    "jitter_seconds": DocumentField("Up to so much is added to each delay.", JITTER),
    "jitter": DocumentField("The same as `jitter_seconds`.", JITTER),
    "on": DocumentField(
        "Which errors are retried: categories, http:503, http:5xx, names of exceptions."
        " Default: all that can be.",
        PATTERNS,
    ),
    "not_on": DocumentField("Which errors aren't retried; it wins over `on`.", PATTERNS),
}
