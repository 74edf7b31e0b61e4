"""Runs handlers: fetches tasks, calls the handler with a resolved config, reports what came of it.

A worker knows nothing of DAGs. It holds as many tasks as it has slots; async handlers run on the
loop, sync ones in threads, `runs_in="process"` in child processes. Whatever a handler does (raise,
hang, print, return nonsense, call `sys.exit`), its node fails and the worker goes on.
"""
