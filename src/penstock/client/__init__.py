"""Penstock over HTTP: the calls of `penstock.Engine`, made to a server.

    transport    one call: JSON there and back, what is repeated when the answer is lost, errors as our exceptions
    answers      from a problem document to an exception, from an execution's JSON to a `Result`
    sse          Server-Sent Events, parsed
    following    a stream of events that goes on where it broke off
    execution    the handle of one execution
    asynchronous `Client`
    blocking     `SyncClient`: the same on a thread of its own

Nothing here knows of stores or engines. It is imported with the first use of `penstock.Client`:
aiohttp takes 0.2 s.
"""

from penstock.client.asynchronous import Client
from penstock.client.blocking import SyncClient, SyncExecution
from penstock.client.execution import Execution

__all__ = ["Client", "Execution", "SyncClient", "SyncExecution"]
