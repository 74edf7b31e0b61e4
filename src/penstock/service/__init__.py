"""Use cases over a store, without HTTP: the embedded engine and the API are built on them.

- `workflows`: definitions, versions, aliases.
- `child_checks`: what of a document about its children can be judged by what is stored.
- `submissions`: starting executions: a start request is checked, and its intent recorded.
- `backlog`: refuses starts beyond what a store should hold.
- `executions`: views of executions, control requests, waiting for their end.
- `execution_logs`: the logs of all nodes of an execution.
- `nodes`: one node of an execution.
- `items`: nodes inside of items, and items as they end.
- `resolving`: the resolved config of a node, as it was given or would be given now.
- `waiting`: tasks that wait because nobody takes them, and why.
- `failures`: which nodes failed, and why.
- `value_search`: executions with a text in their input or in an output.
- `signals`: sending signals to executions.
- `approvals`: open approvals, and decisions.
- `approval_links`: links with which somebody without an API key decides.
- `why`: why a node isn't running now.
- `retries`: retry of a finished execution: a new one that runs what didn't complete.
- `retry_plan`: what a retry reuses, what it runs, and why.
- `dead_letters`: dead letters: list, retry, drop.
- `live_events`: the events that users follow, live.
- `item_events`: the same down to a depth, with counts in place of what is deeper.
- `readers`: buffers of those readers, and the batches that they share.
- `tail`: the end of the commit feed, read once for all.
- `commit_subscription`: what orchestrators in other processes commit.
- `statistics`: figures of a store and of a workflow.
- `charts`: the data of charts, made of these figures.
- `node_times`: how long a workflow's nodes take.
- `sharing`: answers that many ask for at once.
- `fleet`: workers, orchestrators and queues.
- `keys`: API keys.
- `key_files`: the keys of a store for a command line.
- `health`: health checks of a process and of the parts that it needs.
- `problems`: problem documents: what an error is, as data.
- `outages`: what is said about a store that is away.
- `timing`: how long answers are cached, and the pauses between two reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from penstock.config import Settings
from penstock.definition.handler_configs import ConfigCheck
from penstock.definition.model import HandlerDefaults
from penstock.orchestrator.owner import Ended
from penstock.sandbox import Sandbox, request_sandbox_of
from penstock.service.approvals import Approvals
from penstock.service.backlog import Backlog
from penstock.service.commit_subscription import CommitSubscription
from penstock.service.dead_letters import DeadLetters
from penstock.service.execution_logs import ExecutionLogs
from penstock.service.executions import Executions
from penstock.service.failures import Failures
from penstock.service.item_events import ItemEvents
from penstock.service.items import Items
from penstock.service.keys import Keys
from penstock.service.live_events import LiveEvents
from penstock.service.nodes import Nodes
from penstock.service.retries import Retries
from penstock.service.signals import Signals
from penstock.service.statistics import Statistics
from penstock.service.submissions import Submissions
from penstock.service.timing import ServiceTiming
from penstock.service.value_search import ValueSearch
from penstock.service.why import Explanations
from penstock.service.workflows import Workflows
from penstock.stores.base import CommitFeed, Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import FeedEntry


class Service:
    """All use cases over one set of stores."""

    def __init__(  # noqa: PLR0913 -- the parts that it is built of
        self,
        stores: Stores,
        plans: PlanCache,
        settings: Settings,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
        commit_feed: CommitFeed | None = None,
        *,
        config_checks: Callable[[], Mapping[str, ConfigCheck]] = dict,
        sandbox: Sandbox | None = None,
        timing: ServiceTiming | None = None,
    ) -> None:
        """Without a `commit_feed`, the orchestrator of this process calls `on_commit`.

        `config_checks` answers how this process can check the configs of its own handlers.
        """
        timing = timing or ServiceTiming.of(settings)
        self.stores = stores
        self.plans = plans
        self.settings = settings
        self.sandbox: Sandbox = sandbox or request_sandbox_of(settings)
        """The sandbox in which bodies and inputs are checked, if that may take long."""

        self.commit_subscription: CommitSubscription | None = None
        subscribed: Callable[[], AbstractContextManager[None]] = nullcontext
        if commit_feed:
            self.commit_subscription = CommitSubscription(
                commit_feed, self._on_remote_commit, self.look_again, timing
            )
            subscribed = self.commit_subscription.subscribed

        self.workflows = Workflows(
            stores, plans, settings, handlers, timing, config_checks=config_checks
        )
        self.backlog = Backlog(
            stores,
            waiting_tasks_max=settings.waiting_tasks_max,
            workflow_unfinished_max=settings.workflow_unfinished_max,
        )
        self.submissions = Submissions(
            stores, self.workflows, self.backlog, self.sandbox, sees_all_ends=commit_feed is None
        )
        self.executions = Executions(stores, plans, subscribed, timing)
        self.signals = Signals(stores, self.executions)
        self.approvals = Approvals(stores, self.executions, self.signals, settings.notify_secret)
        self.execution_logs = ExecutionLogs(self.executions)
        self.nodes = Nodes(stores, self.executions)
        self.explanations = Explanations(stores, self.executions)
        self.retries = Retries(stores, plans, self.submissions, self.signals)
        self.dead_letters = DeadLetters(stores, self.retries)
        self.failures = Failures(stores.cold.dead_letters)
        self.value_search = ValueSearch(stores, timing)
        self.live_events = LiveEvents(stores.cold.executions, subscribed=subscribed)
        self.item_events = ItemEvents(self.executions, self.live_events)
        self.items = Items(stores, self.executions, self.live_events)
        self.statistics = Statistics(stores.cold, stores.hot.now, self.workflows, plans)
        self.keys = Keys(stores.cold.api_keys)

    def on_commit(self, plan: CommitPlan, ended: Sequence[Ended]) -> None:
        """Called by the engine after each commit."""
        self.live_events.on_commit(plan.feed)
        for execution in ended:
            self.submissions.unfinished.discard(execution.record.execution_id)
            self.executions.ended(execution)

    def _on_remote_commit(self, feed_entries: Sequence[FeedEntry]) -> None:
        """Called with commits of orchestrators in other processes."""
        self.live_events.on_remote_commit(feed_entries)
        self.executions.on_remote_commit(feed_entries)

    async def look_again(self) -> None:
        """Called when a new owner begins: commits may have been missed."""
        self.submissions.unfinished.clear()  # any of them may have ended unseen
        await self.executions.look_again()
        self.live_events.look_again()

    async def close(self) -> None:
        await self.sandbox.close()
        self.backlog.close()
        self.live_events.close()
        self.statistics.close()
        self.executions.give_up()
        if self.commit_subscription is not None:
            self.commit_subscription.close()
