"""Runs handlers: fetches tasks, calls the handler with a resolved config, reports what came of it.

A worker knows nothing of DAGs. It claims as many tasks as it has slots; async handlers run on the
loop, sync ones in threads, `runs_in="process"` in child processes. Whatever a handler does (raise,
hang, print, return nonsense, call `sys.exit`), its node fails and the worker goes on.

- `runtime`: `Worker`: keeps its slots busy, stops what must stop, sends heartbeats.
- `attempt`: one attempt: a task, the handler's call, and the event that comes of it.
- `context`: what a handler is told about its task, and how it talks back.
- `item_outputs`: the outputs of a map's items, one by one.
- `registry`: which handlers there are.
- `signature`: what a handler's function wants to be called with.
- `config_types`: typed configs, and what of a literal config doesn't fit.
- `loading`: modules with handlers, by name or by path.
- `handlers`: the handlers that every worker has.
- `outcome`: from what a handler returned or raised to the event that is reported.
- `threads`: threads for sync handlers.
- `processes`: child processes for `runs_in="process"`.
- `child`: what runs in each of these.
- `protocol`: the messages between the two.
- `room`: memory for large values, shared by attempts.
- `secrets`: secrets, looked up by name when a task starts.
- `redaction`: takes the values of secrets out of what is reported.
- `logs`: an attempt's log.
- `live_logs`: publishes the logs of running attempts.
- `loop_watch`: notices a handler that blocks the loop.
- `heartbeats`: keeps a process that sends heartbeats while the loop can't.
- `heartbeat_process`: that process.
- `timing`: how long the parts wait, and how often they look.
"""
