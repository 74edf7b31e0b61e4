"""WHAT HAPPENS NEXT: the only place that decides. Pure.

Two rules. First: every change of state goes through the table in `states`; what isn't in it raises.
Second: the core takes values (an event, the time) and returns commands; it performs nothing,
fetches nothing, never looks at a clock.

`handle(execution, event, now)` changes the execution in memory and collects `Commands`: records to
write, tasks to enqueue, a timer to set, history lines. The orchestrator commits them in one atomic
step; only then do they have an effect. If the commit fails, the execution is thrown away and loaded
again, so a half-done decision can't leak.

Why it may mutate: copying 10,000 node records for every completion would make the cost of one
completion grow with the size of the DAG. Fan-in is an integer here: each settled parent counts its
children down by one (`readiness`), and since one owner handles all events of an execution in order,
there is nothing to race with. `docs/design.md` is the specification.

Data:

- `states`: the states, and the table of what may follow what.
- `events`: what has happened, in past tense.
- `commands`: what was decided: records, tasks, stops, dead letters, collected in `Commands`.
- `reasons`: reasons of transitions and categories of errors, each with its text.
- `state`: `Execution`: the fields of one execution in memory, and how it is loaded.

The way of an event:

- `handling`: `handle`: calls the event's function, then follows every consequence.
- `event_handlers`: the registry of these functions, filled by `@on`.
- `on_execution`: it began, it goes on, it broke.
- `on_task`: what workers report, and what became of tasks whose worker can't.
- `on_control`: cancel, pause, resume.
- `on_signal`: a signal was received.
- `on_child`: a child has ended.
- `on_timer`: a deadline has come.

What follows from it:

- `transitions`: the only writers of a state.
- `readiness`: trigger rules, and the counts of settled dependencies.
- `settling`: a node completes or is skipped, and its children count it.
- `outcomes`: how nodes and the execution have ended, for templates and conditions.
- `catching`: nodes that handle the failures of others.
- `failing`: a node fails: its next attempt or its end, and what that means for the execution.
- `failures`: what is kept of failed attempts and their logs.
- `losses`: what a task that is lost with its worker costs its node.
- `retry`: the delay before the next attempt.
- `starting`: condition and config of a node that may start, then its task.
- `mailbox`: signals that were received, and the nodes that wait for one.
- `waiting`: nodes that wait for a time or for a signal, and how that ends.
- `children`: nodes that run another workflow: what starts the child, and what it is asked.
- `parents`: what the end of an execution means for its parent.
- `preparing`: what starting a node takes, where that is too much for the owner's loop.
- `data`: data nodes: `input`, `output`, `decision`, `terminate`.
- `terminating`: what a `terminate` node does to the execution.
- `reused_outputs`: nodes that an earlier execution of a chain of retries has completed.
- `deadlines`: retries, backstops and timeouts, as one heap and one stored timer.
- `regions`: a map or a loop begins, opens its items, and ends with the last of them.
- `loops`: the rounds of a loop: its condition, its pauses, what is carried on.
- `items`: what is known in memory of a region and of its open items.
- `identities`: what an item is recognised by, wherever it stands in the list.
- `outputs`: where a node's references look.
- `deciding`: conditions: at once where that is cheap, else in the sandbox.
- `stopping`: failing fast, in an execution or in one item.
- `ending`: an execution ends early, after its clean-up, or with its last node.
"""
