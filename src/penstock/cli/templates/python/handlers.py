"""The handlers of flow.py: functions that do the work of its nodes.

A handler receives the config of its node, with all references resolved, and returns any JSON.
"""

from dataclasses import dataclass

import penstock


@dataclass
class Person:
    name: str


@penstock.handler("tidy_name")
def tidy_name(person: Person, ctx: penstock.Context) -> dict[str, str]:
    ctx.log.info("attempt %d for %s", ctx.attempt, person.name)
    return {"full": " ".join(person.name.split()).title()}


@penstock.handler("find_initials")
def find_initials(person: Person) -> dict[str, str]:
    return {"initials": "".join(word[0] for word in person.name.split())}
