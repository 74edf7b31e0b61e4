"""Fences and refusals of the Redis scripts, and of the modules around them."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "a commit to Redis needs the lease's token", "stores/redis/lua/commit.lua",
        "if now[1] ~= ARGV[1] then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "a commit to Redis expects the current commit number", "stores/redis/lua/commit.lua",
        "if (now[2] or '0') ~= ARGV[2] then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "a live owner's partition in Redis is refused to others", "stores/redis/lua/acquire.lua",
        "if lease[2] and lease[1] ~= ARGV[1] and left > 0 and left <= tonumber(lease[7] or '0') then", "if false then",
        "tests/contract/test_leases.py -k redis",
    ),
    Guard(
        "keys of something else in Redis are refused", "stores/redis/lua/acquire.lua",
        "if found ~= 'none' and found ~= wanted then", "if false then",
        "tests/redis/test_server.py",
    ),
    Guard(
        "only the holder of a lease in Redis renews, releases, archives or rebuilds", "stores/redis/lua/lease.lua",
        "if redis.call('HGET', lease, 'token') ~= ARGV[1] then", "if false then",
        "tests/contract/test_leases.py tests/redis/test_sides.py",
    ),
    Guard(
        "a reaper in Redis whose lease has moved on takes nothing", "stores/redis/lua/report.lua",
        "if ARGV[1] ~= '' and redis.call('HGET', lease, 'token') ~= ARGV[1] then", "if false then",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "only the worker on whose list in Redis a task is reports it", "stores/redis/lua/report.lua",
        "if not mine.err and #mine > 0 and not", "if not",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a task is reported once, also twice in one call", "stores/redis/lua/report.lua",
        " and not (is_over and seen[stream .. id])", "",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "a worker is told which of its tasks in Redis are gone", "stores/redis/lua/list.lua",
        "    if not is_mine(ARGV[i], ARGV[i + 1]) then\n      answer", "    if false then\n      answer",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "only what a worker has in Redis does it hand back", "stores/redis/lua/list.lua",
        "local entry = is_mine(stream, id) and redis.call", "local entry = redis.call",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a worker that holds tasks is not forgotten", "stores/redis/lua/list.lua",
        "if #pending(stream, '-', '+', 1, worker) == 0 then", "if true then",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "tasks of a paused execution are set aside", "stores/redis/lua/fetch.lua",
        "if not (some_held and set_aside(key, stream, entry)) and", "if",
        "tests/contract/test_task_queue.py -k redis",
    ),
    Guard(
        "a worker gets no task of a handler that it doesn't have", "stores/redis/lua/fetch.lua",
        " and not (has and divert(key, stream, entry)) then", " then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "a worker gets the tasks of the handlers that it has", "stores/redis/lua/fetch.lua",
        "if not fine or has[handler] then", "if not fine then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "a task whose handler can't be read is not passed over", "stores/redis/lua/fetch.lua",
        "if not fine or has[handler] then", "if has[handler] then",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "what was passed over goes by priority", "stores/redis/lua/fetch.lua",
        "if a[1] ~= b[1] then", "if false then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "nobody is woken when nothing was passed over", "stores/redis/lua/fetch.lua",
        "if diverted > 0 then", "if true then",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "a task that was passed over is found after a pause", "stores/redis/lua/commit.lua",
        " or string.find(stream, '\\31', 1, true) then", " then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "nothing is written where nothing is taken back", "stores/redis/lua/recall.lua",
        "if #ids > 0 then", "if true then",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "a stream of one handler is read only by workers that have it", "stores/redis/lua/fetch.lua",
        "if handler == '' or not has or has[handler] then", "if true then",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "a stream of one handler that has tasks stays", "stores/redis/lua/fetch.lua",
        " and redis.call('XLEN', base .. 'tasks:' .. stream) == 0 then", " then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "one fetch passes over a bounded number of tasks", "stores/redis/lua/fetch.lua",
        " and diverted < divertible do", " do",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "a stop follows a task that was passed over", "stores/redis/lua/commit.lua",
        "    if diverted then\n", "    if false then\n",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "an owner whose lease has moved on takes no waiting task back", "stores/redis/lua/recall.lua",
        "if redis.call('HGET', lease, 'token') ~= ARGV[1] then", "if false then",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "what a worker has in Redis is not taken back as waiting", "stores/redis/lua/recall.lua",
        "#pending == 0 and ", "",
        'tests/contract/test_handlers.py -k "redis and not cluster"',
    ),
    Guard(
        "what is gone is not taken back as waiting", "stores/redis/lua/recall.lua",
        " and #redis.call('XRANGE', key, id, id) == 1", "",
        "tests/redis/test_passing.py",
    ),
    Guard(
        "a stop follows a task that was handed back", "stores/redis/lua/commit.lua",
        "id = is_gone and redis.call('GET', base .. 'moved:' .. name)", "id = nil",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a Redis of another store is refused", "stores/scaled.py",
        "if store_id != self.cold.store_id:", "if False:",
        "tests/redis/test_scaled.py",
    ),
    Guard(
        "a Redis of another layout is refused", "stores/scaled.py",
        "if layout != str(keys.LAYOUT):", "if False:",
        "tests/redis/test_scaled.py",
    ),
    Guard(
        "a Redis that throws data away is refused", "stores/redis/server.py",
        'if found and found[1] != b"noeviction":', "if False:",
        "tests/redis/test_server.py",
    ),
    Guard(
        "a wake-up that crosses an empty fetch is not lost", "stores/redis/waking.py",
        " and self._wakeups[partition] == wakeups", "",
        "tests/redis/test_waking.py",
    ),
    Guard(
        "a cursor of the commit feed behind which something was trimmed is refused", "stores/redis/commit_feed.py",
        "if after > 0 and _before(entries[0]) > after:", "if False:",
        "tests/redis/test_commit_feed.py",
    ),
    Guard(
        "a task that a fetch took and nobody waited for goes back", "stores/redis/queue.py",
        "            taking.add_done_callback(lambda done: self._give_back(partition, worker_id, done))\n", "",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "calls leave the window in time", "api/window.lua",
        "while oldest < now - window do", "while false do",
        "tests/api/test_redis_rate_limit.py",
    ),
    Guard(
        "no more calls than the limit are let in", "api/window.lua",
        "if count + amount > limit then", "if false then",
        "tests/api/test_redis_rate_limit.py",
    ),
    Guard(
        "a window from before the clock went back is emptied", "api/window.lua",
        "if newest > now + window then", "if false then",
        "tests/api/test_redis_rate_limit.py",
    ),
    Guard(
        "after a clock went back a little nobody waits for longer than a window", "api/window.lua",
        "elseif newest > now then", "elseif false then",
        "tests/api/test_redis_rate_limit.py",
    ),
    Guard(
        "an orchestrator that ran out is not there", "stores/redis/lua/attend.lua",
        "if left > 0 and left", "if left",
        "tests/redis/test_server.py",
    ),
    Guard(
        "an orchestrator from before the clock went back is not there", "stores/redis/lua/attend.lua",
        " and left <= tonumber(term) then", " then",
        "tests/redis/test_server.py",
    ),
    Guard(
        "what an orchestrator never said is dropped", "stores/redis/lua/attend.lua",
        "expires and expires - now or 0", "expires - now",
        "tests/redis/test_server.py",
    ),
    Guard(
        "a commit sets aside only tasks of what is paused", "stores/redis/lua/commit.lua",
        "if execution and redis.call('SISMEMBER', base .. 'held', execution) == 1 then", "if execution then",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "a commit without history is not in the commit feed", "stores/redis/lua/commit.lua",
        "if ARGV[at] ~= '' then", "if true then",
        'tests/redis/test_commit_feed.py tests/contract/test_feed.py -k "redis and not cluster"',
    ),
    Guard(
        "a pause sets aside only its own tasks", "stores/redis/lua/fetch.lua",
        " or redis.call('SISMEMBER', base .. 'held', execution) == 0 then", " then",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "a fetch takes no more than was asked for", "stores/redis/lua/fetch.lua",
        "while left > 0 and ", "while ",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "a renewal that comes too late is told so", "stores/redis/lua/lease.lua",
        "if what == 'renew' or what == 'release' then", "if what == 'release' then",
        'tests/contract/test_leases.py -k "redis and not cluster"',
    ),
    Guard(
        "a release that comes too late does nothing", "stores/redis/lua/lease.lua",
        "if what == 'renew' or what == 'release' then", "if what == 'renew' then",
        'tests/contract/test_leases.py -k "redis and not cluster"',
    ),
    Guard(
        "a task that is gone is not shown", "stores/redis/lua/list.lua",
        "if entry and #entry[2][2] <= room then", "if #entry[2][2] <= room then",
        "tests/redis/test_fleet.py",
    ),
    Guard(
        "a task that is too large is not shown", "stores/redis/lua/list.lua",
        "if entry and #entry[2][2] <= room then", "if entry then",
        "tests/redis/test_fleet.py",
    ),
    Guard(
        "what isn't there is not handed back", "stores/redis/lua/list.lua",
        "    if entry then\n      local new", "    if true then\n      local new",
        "tests/redis/test_tasks.py",
    ),
    Guard(
        "a task is on one worker's list", "stores/redis/lua/list.lua",
        "return not mine.err and #mine > 0", "return true",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "a report that says nothing writes nothing", "stores/redis/lua/report.lua",
        "if #events == 0 then", "if false then",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "a task that has started stays on the list", "stores/redis/lua/report.lua",
        "if is_over then", "if true then",
        'tests/contract/test_task_queue.py -k "redis and not cluster"',
    ),
    Guard(
        "the same owner may take its lease in Redis again", "stores/redis/lua/acquire.lua",
        " and lease[1] ~= ARGV[1] and", " and",
        'tests/contract/test_leases.py -k "redis and not cluster" tests/redis/test_server.py',
    ),
    Guard(
        "a lease in Redis that ran out is free", "stores/redis/lua/acquire.lua",
        " and left > 0 and left <=", " and left <=",
        'tests/contract/test_leases.py -k "redis and not cluster"',
    ),
    Guard(
        "a lease in Redis from before the clock went back is free", "stores/redis/lua/acquire.lua",
        " and left <= tonumber(lease[7] or '0') then", " then",
        "tests/redis/test_server.py",
    ),
    Guard(
        "commits that were trimmed are missed aloud", "stores/redis/commit_feed.py",
        "if _before(entries[0]) > _end(numbers[partition]):", "if False:",
        "tests/redis/test_commit_feed.py",
    ),
    Guard(
        "changes without a beginning are refused", "stores/redis/hot.py",
        "if stored.record is nothing:", "if False:",
        "tests/redis/test_executions.py",
    ),
    Guard(
        "a message of another schema is not read as ours", "stores/redis/inbox.py",
        "if schema != SCHEMA:", "if False:",
        "tests/redis/test_inbox.py",
    ),
    Guard(
        "a worker is forgotten when nobody has a task of its", "stores/redis/queue.py",
        "if worker_id not in await self._holders():", "if True:",
        "tests/redis/test_forgetting.py",
    ),
    Guard(
        "a script that changes something isn't run again by itself", "stores/redis/scripts.py",
        "self._make(link.call,", "self._make(link.ask,",
        "tests/redis/test_server.py",
    ),
    Guard(
        "a Redis that is too old is refused", "stores/redis/server.py",
        "        check_version(_fields(server))\n", "",
        "tests/redis/test_server.py",
    ),
    Guard(
        "a server that isn't the master any more is not used as one", "stores/redis/wire.py",
        "                    await _check_master(wire)\n", "                    pass\n",
        "tests/redis/test_topologies.py -k demoted",
    ),
    Guard(
        "the settings of a Redis are looked at", "stores/redis/server.py",
        "        await self._check_settings()\n", "",
        "tests/redis/test_server.py",
    ),
    Guard(
        "without Redis only what has ended is shown", "stores/scaled.py",
        "if stored is not None and stored.record.state in EXECUTION_ENDS:", "if stored is not None:",
        "tests/redis/test_scaled.py",
    ),
    Guard(
        "an end that Redis has isn't controlled", "stores/scaled.py",
        "        if newest is not None and newest.state in EXECUTION_ENDS:\n"
        "            check_controllable(execution_id, newest.state, request, waits=False)\n", "",
        "tests/contract/test_cold.py",
    ),
]  # fmt: skip
