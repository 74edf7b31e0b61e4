"""WHEN executions start by themselves: schedules and their slots. Pure.

- `times`: cron expressions, intervals and single times, and the moments at which they fire.
- `model`: what a user says about a schedule.
- `slots`: what a slot is called, the id of its execution, and its jitter.
- `deciding`: which of the slots that are due start, wait or are skipped, and why.
- `inputs`: `{{ slot.local_date }}` in the input of a schedule.
"""
