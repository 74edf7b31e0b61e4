"""WHAT HAPPENS NEXT: the only place that decides. Pure.

Two rules. First: every change of state goes through the table in `states`; what isn't in it raises.
Second: the core takes values (an event, the time) and returns commands; it performs nothing,
fetches nothing, never looks at a clock.

`Execution.handle(event, now)` changes the execution in memory and collects `Commands`: records to
write, tasks to enqueue, a timer to set, history lines. The orchestrator commits them in one atomic
step; only then do they have an effect. If the commit fails, the execution is thrown away and loaded
again, so a half-done decision can't leak.

Why it may mutate: copying 10,000 node records for every completion would make the cost of one
completion grow with the size of the DAG. Fan-in is an integer here: each settled parent counts its
children down by one (`readiness`), and since one owner handles all events of an execution in order,
there is nothing to race with.
"""
