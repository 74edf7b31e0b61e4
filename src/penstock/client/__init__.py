"""Penstock over HTTP: the calls of `penstock.Engine`, made to a server.

    transport    one call: sends and reads JSON, repeats calls, raises our exceptions
    answers      turns a problem document into an exception, an execution's JSON into a `Result`
    sse          parses Server-Sent Events
    following    a stream of live events that resumes after a broken connection
    execution    the handle of one execution
    asynchronous `Client`
    blocking     `SyncClient`: the same client in a thread of its own

Nothing here knows about stores or engines. The package is imported at the first use of
`penstock.Client`, because importing aiohttp takes 0.2 s.
"""

from penstock.client.asynchronous import Client
from penstock.client.blocking import SyncClient, SyncExecution
from penstock.client.execution import Execution

__all__ = ["Client", "Execution", "SyncClient", "SyncExecution"]
