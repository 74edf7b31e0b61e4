"""WHAT a workflow is: from the text a user wrote to a `Plan` that the engine can run. Pure.

    text --parse--> document --read--> Definition --check--> Plan

- `parse`: JSON, commented JSON or YAML to plain values; refuses what can't be a document at all.
- `yaml`: YAML as a way to write JSON.
- `model`: the document after reading: `Definition`, `Node`, `Retry`.
- `document_fields`: every field and spelling of a document, and which values it takes.
- `document_schema`: the JSON Schema of the document, made of these tables.
- `read_regions`: the fields of maps and loops.
- `children`: the fields of nodes that run another workflow.
- `read`: one name for every accepted spelling; each field is checked on its own.
- `sugar`: `switch` and `finally`, which are read as conditions and as a trigger rule.
- `fields`: reads the fields of one object, and says what is wrong with each.
- `problems`: what is wrong with a document, where, and what to do.
- `positions`: line and column of a problem in the text.
- `graph`: the nodes together: order, cycles (Kahn, iterative), ancestors.
- `template`: `{{ node.field }}`, compiled once.
- `computed`: `{{ size(node.list) > 3 }}`: expressions in templates.
- `functions`: what conditions and expressions can call, and arithmetic of mixed numbers.
- `cel`: CEL programs: compiled once, evaluated, and how costly they are.
- `condition`: CEL conditions, compiled once and bounded.
- `expression`: the CEL of a `transform`: what it names, and the variables that hold it.
- `error_patterns`: which failures are retried or caught.
- `handler_configs`: the configs of the built-in handlers, and what is wrong with a literal one.
- `value_faults`: what is wrong inside the values of a config.
- `llm_messages`: messages and tools of `llm_service`: what is wrong with them.
- `moments`: times in a document, as text or as a number.
- `waits`: what the configs of nodes that wait mean.
- `config`: a node's config: what is fixed, what are references, where secrets go.
- `schema`: JSON Schema for inputs and replies.
- `schema_cost`: how much work a schema can make.
- `plan`: puts it together. A document is either refused with all of its problems or accepted.
- `region_settings`: what of a map or a loop is a template or a condition, compiled.
- `addresses`: what `each[3].parse` means in a plan.
- `builder`: `Workflow`: the same document, built in Python.

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
