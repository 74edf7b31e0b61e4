"""The handlers of workflow.json: functions that do the work of its nodes.

The two HTTP calls need no code. Their handler, `call_external_service`, is built in.
"""

from dataclasses import dataclass

import penstock


@dataclass
class Repository:
    owner: str | None
    name: str
    about: str | None


@penstock.handler("summarise")
def summarise(repository: Repository) -> dict[str, str]:
    owner = repository.owner or "somebody"
    about = repository.about or "no description"
    return {"text": f"{repository.name} by {owner}: {about}"}
