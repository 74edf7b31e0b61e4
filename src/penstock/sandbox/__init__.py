"""Work on user-given text, in child processes that have limits on time and memory.

What a document's author can make the service compute (a condition, a `transform`, a reference into
an answer of 60 MB) has no bound of its own, and Python can't stop it: a regular expression or a
JSON decoder holds the interpreter until it is done. So whatever isn't small is computed beside the
process that asks: here. A child that goes over a limit is killed by the kernel; the one who asked
gets `Overrun`, whose text is for the user.

A job is the name of a function and some bytes, and its answers are bytes: nothing is pickled. The
function is chosen by our own code, never by a document. The limits are no jail: a function does
what it likes with the files of its user.

- `pool`: the processes, and whose turn it is.
- `child`: what runs in each of them.
- `frames`: the messages between the two.
- `schemas`: checks against a JSON Schema, here if they are cheap.
- `inline`: the same calls in this process, for loops whose clock jumps: tests and simulations.
"""

from penstock.sandbox.frames import Job, JobFailed, Overrun, Sandbox, call
from penstock.sandbox.inline import InlineSandbox
from penstock.sandbox.pool import SandboxPool, request_sandbox_of, sandbox_of
from penstock.sandbox.schemas import schema_problems_in

__all__ = [
    "InlineSandbox",
    "Job",
    "JobFailed",
    "Overrun",
    "Sandbox",
    "SandboxPool",
    "call",
    "request_sandbox_of",
    "sandbox_of",
    "schema_problems_in",
]
