"""The handlers of workflow.json: functions that do the work of its nodes.

A handler receives the config of its node, with all references resolved, and returns any JSON.
"""

from dataclasses import dataclass

import penstock


@dataclass
class Person:
    name: str


@penstock.handler("greet")
def greet(person: Person, ctx: penstock.Context) -> dict[str, str]:
    ctx.log.info("greeting %s", person.name)
    return {"text": f"Hello, {person.name}!"}
