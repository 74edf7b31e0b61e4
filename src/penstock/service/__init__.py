"""What may be asked of a store, without HTTP: the engine in a process and the API both stand on this.

workflows    definitions, versions, aliases
submissions  starting executions; `backlog` refuses more than a store should hold
executions   looking at them, control requests, waiting for their end; `nodes`, at one node of them
failures     which nodes failed, and why
retries      running again what didn't complete; `dead_letters`, the dead letters, use it too
feed         live events
statistics   how all of it does, for charts
keys         who may ask
news         of what orchestrators in other processes do
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.orchestrator.owner import Ended
from penstock.orchestrator.plans import Plans
from penstock.sandbox import Sandbox, request_sandbox_of
from penstock.service.backlog import Backlog
from penstock.service.dead_letters import DeadLetters
from penstock.service.executions import Executions
from penstock.service.failures import Failures
from penstock.service.feed import Feed
from penstock.service.keys import Keys
from penstock.service.news import News
from penstock.service.nodes import Nodes
from penstock.service.retries import Retries
from penstock.service.statistics import Statistics
from penstock.service.submissions import Submissions
from penstock.service.workflows import Workflows
from penstock.stores.base import NewsSource, Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.records import FeedPart


class Service:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        plans: Plans,
        settings: Settings,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
        news: NewsSource | None = None,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Without `news`, somebody calls `committed`: the orchestrator of this process."""
        self.stores, self.plans, self.settings = stores, plans, settings
        self.sandbox: Sandbox = sandbox or request_sandbox_of(settings)
        """Where bodies and inputs of requests are looked at, if that may take long."""
        self.news = News(news, self._hear, self.look_again) if news else None
        listening = self.news.listening if self.news else nullcontext
        self.workflows = Workflows(stores, plans, settings, handlers)
        self.backlog = Backlog(
            stores,
            waiting_tasks_max=settings.waiting_tasks_max,
            workflow_unfinished_max=settings.workflow_unfinished_max,
        )
        self.submissions = Submissions(
            stores, self.workflows, self.backlog, self.sandbox, hears_of_ends=news is None
        )
        self.executions = Executions(stores, plans, listening, settings.worker_dead_seconds)
        self.nodes = Nodes(stores, self.executions)
        self.retries = Retries(stores, plans, self.submissions)
        self.dead_letters = DeadLetters(stores, self.retries)
        self.failures = Failures(stores.cold)
        self.feed = Feed(stores.cold, listening=listening)
        self.statistics = Statistics(stores.cold, stores.hot.now, self.workflows, plans)
        self.keys = Keys(stores.cold)

    def committed(self, plan: CommitPlan, ended: Sequence[Ended]) -> None:
        """Told by the engine after each commit."""
        self.feed.publish(plan.feed)
        for execution in ended:
            self.submissions.unfinished.discard(execution.record.execution_id)
            self.executions.ended(execution)

    def _hear(self, parts: Sequence[FeedPart]) -> None:
        """What orchestrators elsewhere have committed."""
        self.feed.hear(parts)
        self.executions.hear(parts)

    async def look_again(self) -> None:
        """A new owner has begun: whoever waits for news may have missed some."""
        self.submissions.unfinished.clear()  # one of them may have ended without our knowing
        await self.executions.look_again()
        self.feed.look_again()

    async def close(self) -> None:
        await self.sandbox.close()
        self.backlog.close()
        self.feed.close()
        self.statistics.close()
        self.executions.give_up()
        if self.news is not None:
            self.news.close()
