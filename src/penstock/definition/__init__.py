"""WHAT a workflow is: from the text a user wrote to a `Plan` that the engine can run. Pure.

    text --parse--> document --read--> Definition --check--> Plan

- `parse` turns JSON, commented JSON or YAML into plain values and refuses what can't be a document
  at all (too deep, too large, NaN, duplicate keys).
- `read` gives every accepted spelling its one name (`type` -> `handler`, `max_retries` ->
  `max_attempts`, ...) and checks each field on its own.
- `graph` looks at the nodes together: unknown dependencies, cycles (Kahn, iterative), who is whose
  ancestor.
- `template` and `condition` compile the two small languages inside a document once, so that running
  a node is dictionary look-ups.
- `plan` puts it together. Every problem is collected; a document is either refused with all of them
  or accepted.

Nothing here does I/O or knows of executions.
"""

from penstock.definition.model import Definition, Node, Retry
from penstock.definition.parse import parse
from penstock.definition.plan import Plan, PlanNode, compile_document
from penstock.definition.problems import Problem

__all__ = [
    "Definition",
    "Node",
    "Plan",
    "PlanNode",
    "Problem",
    "Retry",
    "compile_document",
    "parse",
]
