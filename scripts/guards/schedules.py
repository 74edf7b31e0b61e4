"""Fences of schedules: of two who look after one, one writes; a slot starts once."""

from __future__ import annotations

from scripts.guards.guard import Guard

CONTRACT = "tests/contract/test_schedules.py"
SQL = {
    "SQLite": ("stores/sqlite/schedules.sql", "sqlite", "?"),
    "PostgreSQL": ("stores/postgres/schedules.sql", "redis and not cluster", "%s"),
}

GUARDS = [
    Guard(
        "a schedule is new only while nobody has its name (memory)",
        "stores/memory/schedules.py",
        at="MemorySchedules.write",
        pattern="schedule.revision == 0",
        without="False",
        test=f"{CONTRACT} -k memory",
    ),
    *(
        Guard(
            f"a name that is taken is no error of the store ({store})",
            file,
            at="insert_schedule",
            pattern="ON CONFLICT DO NOTHING",
            without="",
            test=f'{CONTRACT} -k "{which}"',
        )
        for store, (file, which, _) in SQL.items()
    ),
    Guard(
        "a schedule is written at its revision only (memory)",
        "stores/memory/schedules.py",
        at="MemorySchedules.write",
        pattern="stored is None or ...",
        without="stored is None",
        test=f"{CONTRACT} -k memory",
    ),
    Guard(
        "a slot that has a row is not started again (memory)",
        "stores/memory/schedules.py",
        at="MemorySchedules._write_slot",
        pattern="if known is not None and _: ...",
        without="pass",
        test=f"{CONTRACT} -k memory",
    ),
    *(
        Guard(
            f"a schedule is written at its revision only ({store})",
            file,
            at="update_schedule",
            pattern=f"AND revision = {mark}",
            without=f"AND {mark} IS NOT NULL",
            test=f'{CONTRACT} -k "{which}"',
        )
        for store, (file, which, mark) in SQL.items()
    ),
    *(
        Guard(
            f"a slot that has a row is not started again ({store})",
            file,
            at="write_slot",
            pattern="WHERE slots.outcome = 'queued'",
            without="WHERE true",
            test=f'{CONTRACT} -k "{which}"',
        )
        for store, (file, which, _) in SQL.items()
    ),
]
