"""WHEN executions start by themselves: schedules and their slots. Pure.

- `times`: cron expressions, intervals and single times, and the moments at which they fire.
- `slots`: what a slot is called, the id of its execution, and its jitter.
"""
