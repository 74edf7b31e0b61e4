"""Penstock over HTTP: the calls of `penstock.Engine`, made to a server.

- `asynchronous`: `Client`.
- `blocking`: `SyncClient`: the same on a thread of its own.
- `execution`: the handle of one execution.
- `transport`: one call: JSON there and back; what is repeated when the answer is lost.
- `answers`: from a problem document to an exception.
- `following`: a stream of events that goes on where it broke off.
- `sse`: Server-Sent Events, parsed.

Nothing here knows about stores or engines. The package is imported at the first use of
`penstock.Client`, because importing aiohttp takes 0.2 s.
"""

from penstock.client.asynchronous import Client
from penstock.client.blocking import SyncClient, SyncExecution
from penstock.client.execution import Execution

__all__ = ["Client", "Execution", "SyncClient", "SyncExecution"]
