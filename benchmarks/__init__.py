"""How fast, measured the same way each time: `make bench`.

Every workload runs in a process of its own.
"""
