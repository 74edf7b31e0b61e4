"""What the stores on SQL share. How their databases differ is passed in.

- `statements`: statements from the `.sql` file beside a module.
- `conditions`: conditions of a statement, and their values.
- `searching`: which parts of which indexes a search of executions reads.
- `intents`: intents as columns of a row.
- `schedules`: slots of schedules as rows, and the search for them.
- `dead_letters`: dead letters as rows, and conditions of a search.
- `audit_log`: audit lines as rows, and conditions of a search.
"""
