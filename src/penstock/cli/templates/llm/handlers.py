"""The handlers of workflow.json: functions that do the work of its nodes.

The two calls of a language model need no code. Their handler, `llm_service`, is built in.
"""

from dataclasses import dataclass

import penstock

STARS_MAX = 5


@dataclass
class Review:
    stars: int
    text: str


@penstock.handler("make_card")
def make_card(review: Review) -> dict[str, str]:
    stars = "★" * review.stars + "☆" * (STARS_MAX - review.stars)
    return {"text": f"{stars} {review.text}"}
