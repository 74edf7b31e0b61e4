"""The same work on other engines, each in an environment of its own: `make bench-peers`."""
