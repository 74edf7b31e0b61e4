"""What users SEE: the shapes of executions, and how they are made from records. Pure.

- `executions`: an execution with its nodes and its history.
- `result`: `penstock.Result`, the same as a Python object.
"""
