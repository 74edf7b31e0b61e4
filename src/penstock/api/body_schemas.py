"""The schemas of request bodies.

They describe bodies in the OpenAPI document, and check them.
"""

from __future__ import annotations

from typing import Any

JSON_OBJECT: dict[str, Any] = {"type": "object"}
LABELS: dict[str, Any] = {"type": "object", "maxProperties": 64}
DOCUMENT: dict[str, Any] = {
    "title": "WorkflowDocument",
    "type": "object",
    "description": "A workflow: a DAG of nodes. See docs/documents.md.",
    "examples": [
        {
            "name": "hello",
            "nodes": [
                {"id": "who", "handler": "echo", "config": {"name": "Ada"}},
                {
                    "id": "greet",
                    "handler": "echo",
                    "dependencies": ["who"],
                    "config": {"text": "Hello, {{ who.name }}!"},
                },
            ],
        }
    ],
}
PRIORITY: dict[str, Any] = {"type": "integer", "minimum": -100, "maximum": 100}
START_REQUEST: dict[str, Any] = {
    "title": "StartExecution",
    "type": "object",
    "description": (
        "Either `workflow`, a stored one such as `report@stable`, or `definition`, a document."
    ),
    "properties": {
        "workflow": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "examples": ["report", "report@3"],
        },
        "definition": JSON_OBJECT,
        "input": {"type": ["object", "null"]},
        "labels": LABELS,
        "priority": PRIORITY,
    },
    "oneOf": [{"required": ["workflow"]}, {"required": ["definition"]}],
    "additionalProperties": False,
    "examples": [
        {"workflow": "report@stable", "input": {"user_id": 7}, "labels": {"team": "billing"}},
        {"definition": {"name": "one", "nodes": [{"id": "a", "handler": "noop"}]}},
    ],
}
BATCH: dict[str, Any] = {
    "title": "StartExecutions",
    "type": "object",
    "required": ["executions"],
    "properties": {
        "definition": {
            **JSON_OBJECT,
            "description": (
                "The document of all items that name no workflow of their own: sent once."
            ),
        },
        "executions": {"type": "array", "minItems": 1, "maxItems": 1000, "items": JSON_OBJECT},
    },
    "additionalProperties": False,
    "examples": [
        {"executions": [{"workflow": "report", "input": {"user_id": 7}}, {"workflow": "report"}]}
    ],
}
ALIAS: dict[str, Any] = {
    "title": "AliasTarget",
    "type": "object",
    "properties": {
        "version": {"type": "integer", "minimum": 1, "maximum": 2**53},
        "weights": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 20,
            "propertyNames": {"pattern": "^[1-9][0-9]{0,9}$"},
            "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1_000_000},
        },
    },
    "oneOf": [{"required": ["version"]}, {"required": ["weights"]}],
    "additionalProperties": False,
    "examples": [{"version": 3}, {"weights": {"3": 90, "4": 10}}],
}
RETRY: dict[str, Any] = {
    "title": "RetryExecution",
    "type": "object",
    "properties": {
        "from": {"type": ["string", "null"], "minLength": 1, "maxLength": 256},
        "version": {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"enum": ["same", "latest"]},
                {"type": "string", "pattern": "^[1-9][0-9]{0,9}$"},
            ]
        },
        "items": {
            "enum": ["failed", "all", None],
            "description": "Of maps that run again, the items that `failed` or `all`.",
        },
        "preview": {"type": "boolean"},
    },
    "additionalProperties": False,
    "examples": [{"from": "letter", "preview": True}, {}],
}
BULK: dict[str, Any] = {
    "title": "SteerExecutions",
    "type": "object",
    "required": ["action", "execution_ids"],
    "properties": {
        "action": {"enum": ["cancel", "pause", "resume", "retry"]},
        "execution_ids": {
            "type": "array",
            "minItems": 1,
            "maxItems": 500,
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1, "maxLength": 1024},
        },
        "preview": {
            "type": "boolean",
            "description": "Of a retry: only say what would run and why.",
        },
    },
    "additionalProperties": False,
    "examples": [
        {"action": "cancel", "execution_ids": ["0192", "0193"]},
        {"action": "retry", "execution_ids": ["0192"], "preview": True},
    ],
}
RETRY_DEAD_LETTERS: dict[str, Any] = {
    "title": "RetryDeadLetters",
    "type": "object",
    "description": "Which ones: by id, or all open ones that fit every filter.",
    "properties": {
        "ids": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "integer", "minimum": 1, "maximum": 2**53},
        },
        "workflow": {"type": "string"},
        "handler": {"type": "string"},
        "category": {"type": "string"},
        "execution_id": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
        "preview": {"type": "boolean"},
    },
    "additionalProperties": False,
    "examples": [{"handler": "call_external_service", "preview": True}, {"ids": [1, 2]}],
}
DROP_DEAD_LETTERS: dict[str, Any] = {
    "title": "DropDeadLetters",
    "type": "object",
    "required": ["ids"],
    "properties": {
        "ids": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "items": {"type": "integer", "minimum": 1, "maximum": 2**53},
        },
    },
    "additionalProperties": False,
    "examples": [{"ids": [1, 2]}],
}
KEY: dict[str, Any] = {
    "title": "CreateKey",
    "type": "object",
    "required": ["name", "scopes"],
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": "^[^\\u0000-\\u001f]*$",
        },
        "scopes": {
            "type": "array",
            "minItems": 1,
            "maxItems": 5,
            "items": {"enum": ["read", "submit", "approve", "operate", "admin"]},
        },
    },
    "additionalProperties": False,
    "examples": [{"name": "billing", "scopes": ["submit"]}],
}
SIGNAL_FIELDS: dict[str, Any] = {
    "payload": {"description": "Any JSON value."},
    "correlation": {
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": 512,
        "description": "Only for nodes that wait for this one, or for none.",
    },
}
SIGNAL: dict[str, Any] = {
    "title": "SendSignal",
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 128}, **SIGNAL_FIELDS},
    "additionalProperties": False,
    "examples": [{"name": "paid", "payload": {"amount": 7}}],
}
SIGNAL_PAYLOAD: dict[str, Any] = {
    "title": "SendNamedSignal",
    "type": "object",
    "properties": SIGNAL_FIELDS,
    "additionalProperties": False,
    "examples": [{"payload": {"amount": 7}}, {}],
}
POST_SIGNAL: dict[str, Any] = {
    "title": "PostSignal",
    "type": "object",
    "required": ["correlation"],
    "properties": {
        "payload": {"description": "Any JSON value."},
        "correlation": {"type": "string", "minLength": 1, "maxLength": 512},
        "ttl_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 2_592_000,
            "description": "How long it is kept for nodes that wait later. Default: a day.",
        },
        "to": {"enum": ["one", "all"], "description": "The first that waits, or everybody."},
    },
    "additionalProperties": False,
    "examples": [{"correlation": "order-7", "payload": {"amount": 7}}],
}
_SECRET_NAME = {"type": "string", "minLength": 1, "maxLength": 128}
HOOK: dict[str, Any] = {
    "title": "PutHook",
    "type": "object",
    "required": ["verify"],
    "properties": {
        "id": {"type": "string", "description": "As in the path, where it may be left out."},
        "start": {
            "type": "object",
            "required": ["workflow"],
            "properties": {
                "workflow": {"type": "string", "minLength": 1, "maxLength": 300},
                "input": {
                    "type": ["object", "string"],
                    "description": "References begin with `body`, `headers` or `query`.",
                },
                "labels": {"type": "object"},
                "priority": {"type": "integer", "minimum": -100, "maximum": 100},
            },
            "additionalProperties": False,
        },
        "signal": {
            "type": "object",
            "required": ["name", "correlation"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 128},
                "correlation": {"type": "string", "minLength": 1},
                "payload": {"description": "Default: the body."},
            },
            "additionalProperties": False,
            "description": "With `start` too: a signal if somebody waits for it, else a start.",
        },
        "verify": {
            "anyOf": [
                {"const": "none"},
                {
                    "type": "object",
                    "required": ["scheme", "secret"],
                    "properties": {
                        "scheme": {
                            "enum": ["standard", "github", "stripe", "slack", "gitlab", "hmac"]
                        },
                        "secret": {
                            "anyOf": [
                                _SECRET_NAME,
                                {"type": "array", "items": _SECRET_NAME, "minItems": 1},
                            ],
                            "description": "The name of a secret of the service's settings.",
                        },
                        "tolerance_seconds": {"type": "number"},
                        "header": {"type": "string"},
                        "prefix": {"type": "string", "maxLength": 100},
                        "encoding": {"enum": ["hex", "base64"]},
                        "signed": {"type": "string", "maxLength": 200},
                        "timestamp_header": {"type": "string"},
                    },
                    "additionalProperties": False,
                },
            ],
            "description": "`none` only where the service is bound to loopback.",
        },
        "filter": {"type": "string", "description": "CEL over `body`, `headers` and `query`."},
        "idempotency": {"type": "string", "description": "The sender's name for the message."},
        "answer": {
            "type": "object",
            "properties": {"wait_seconds": {"type": "number", "minimum": 0, "maximum": 25}},
            "additionalProperties": False,
        },
        "challenge_secret": {
            **_SECRET_NAME,
            "description": "The name of the secret that Meta asks for a challenge with.",
        },
        "rate_limit": {"type": "string", "description": "Such as `60/minute`, or `off`."},
    },
    "additionalProperties": False,
    "examples": [
        {
            "start": {"workflow": "paid@stable", "input": {"event": "{{ body }}"}},
            "verify": {"scheme": "stripe", "secret": "STRIPE_WEBHOOK"},
            "filter": "body.type == 'invoice.paid'",
            "idempotency": "{{ body.id }}",
        }
    ],
}
HOOK_TEST: dict[str, Any] = {
    "title": "TestHook",
    "type": "object",
    "properties": {
        "body": {"description": "Any JSON value."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "query": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
    "examples": [{"body": {"type": "invoice.paid"}, "headers": {"x-event": "paid"}}],
}
APPROVAL_LINK: dict[str, Any] = {
    "title": "MakeApprovalLink",
    "type": "object",
    "required": ["by"],
    "properties": {
        "by": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Who decides with it.",
        },
        "seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 2_592_000},
    },
    "additionalProperties": False,
    "examples": [{"by": "ada@example.com", "seconds": 86400}],
}
DECISION: dict[str, Any] = {
    "title": "DecideApproval",
    "type": "object",
    "required": ["decision"],
    "properties": {
        "decision": {"enum": ["approved", "rejected"]},
        "comment": {"type": ["string", "null"]},
        "form": {"description": "What the approval's form asks for."},
        "by": {
            "type": "string",
            "maxLength": 200,
            "description": "Who decides, where no API key says so.",
        },
    },
    "additionalProperties": False,
    "examples": [{"decision": "approved", "comment": "fine", "form": {"tone": "warm"}}],
}
RULE: dict[str, Any] = {
    "type": "object",
    "description": "Exactly one of `cron`, `every_seconds` and `at`.",
    "properties": {
        "cron": {
            "type": "string",
            "maxLength": 500,
            "description": "5 fields; 6 with seconds in front.",
        },
        "every_seconds": {"type": "number"},
        "offset_seconds": {"type": "number", "description": "From the epoch."},
        "at": {"type": "string", "maxLength": 64, "description": "Once, at this time."},
        "timezone": {"type": "string", "maxLength": 100, "examples": ["Europe/Berlin"]},
        "missing": {"enum": ["shift", "skip"], "description": "A wall time that doesn't exist."},
        "repeated": {
            "enum": ["first", "last", "both"],
            "description": "A wall time that comes twice.",
        },
    },
    "additionalProperties": False,
}
MOMENT: dict[str, Any] = {"type": ["string", "null"], "maxLength": 64}
SCHEDULE: dict[str, Any] = {
    "title": "PutSchedule",
    "type": "object",
    "required": ["workflow", "when"],
    "properties": {
        "name": {"type": "string", "description": "As in the path, if it is given."},
        "workflow": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "examples": ["report@stable"],
        },
        "when": {"anyOf": [RULE, {"type": "array", "minItems": 1, "maxItems": 20, "items": RULE}]},
        "input": {
            "type": ["object", "null"],
            "description": "It may refer to `{{ slot.local_date }}` and other fields of the slot.",
        },
        "overlap": {"enum": ["skip", "queue_one", "queue_all", "cancel_old", "allow"]},
        "catchup": {
            "type": "object",
            "properties": {
                "policy": {"enum": ["last", "all", "skip"]},
                "window_seconds": {"type": "number", "minimum": 0},
                "max": {"type": "integer", "minimum": 0},
            },
            "additionalProperties": False,
        },
        "jitter_seconds": {"type": "number", "minimum": 0},
        "from": MOMENT,
        "until": MOMENT,
        "pause_on_failure": {"type": "boolean"},
        "labels": LABELS,
        "priority": PRIORITY,
    },
    "additionalProperties": False,
    "examples": [
        {
            "workflow": "report@stable",
            "when": {"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"},
            "input": {"day": "{{ slot.local_date }}"},
        }
    ],
}
PAUSE_SCHEDULE: dict[str, Any] = {
    "title": "PauseSchedule",
    "type": "object",
    "properties": {"reason": {"type": ["string", "null"], "maxLength": 1000}},
    "additionalProperties": False,
}
BODIES = (
    DOCUMENT,
    START_REQUEST,
    BATCH,
    ALIAS,
    RETRY,
    BULK,
    RETRY_DEAD_LETTERS,
    DROP_DEAD_LETTERS,
    KEY,
    SIGNAL,
    SIGNAL_PAYLOAD,
    POST_SIGNAL,
    HOOK,
    HOOK_TEST,
    APPROVAL_LINK,
    DECISION,
    SCHEDULE,
    PAUSE_SCHEDULE,
)
