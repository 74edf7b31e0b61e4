"""How the cost of a task grows.

With the size of the DAG, the number of active and finished executions, and the size of values.
"""
