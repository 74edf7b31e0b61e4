"""Every order in which things can happen, for a world small enough to try them all.

Two orchestrators and two workers run one execution of `a, b -> join`. The decisions are the real
pure code (`definition`, `engine`, the stores' `codec`); the store is a small immutable model of the
rules in `stores/base.py` and of the `.lua` headers. A state is bytes. From each state every step is
taken that an actor may take, and every fault that the budget still has; a state that was seen
before isn't looked at again, so an exploration ends. What it shows holds for all orders of these
steps, not for a sample of them as in the simulator; but of a model of the stores.

- `world` what a state is, and which guards and faults there are; `cases` what is explored
- `deciding` the real code, from bytes to bytes; `guards` takes guards out of it
- `store` what the store does: one function per call, each all or nothing
- `orchestrators`, `workers`, `faults` the steps
- `judge` what must be true after each step, and where nothing goes on
- `search` breadth first, so that a counterexample is a shortest one
"""
