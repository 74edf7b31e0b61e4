"""The connection to Redis: one server, the master that Sentinels name, or a cluster.

Why it isn't redis-py's connection pool, retry and cluster client. redis-py stays in use for the
rate limit and for `penstock doctor` (`clients`), whose calls are few, and for reading URLs.

- **Speed.** redis-py's client spends more time on a call than Redis does. Here a call is one packed
  write and one future. All calls of a process to one server share a connection and don't wait for
  each other's replies, which makes a pipeline of them without anybody collecting calls.
- **Blocking reads have a connection of their own** (`Server.blocking`). Redis answers the calls of
  a connection in order, so everything else would wait behind a blocking read. A connection on which
  such a read was cancelled is dropped (`Server.drop`): the next call would wait behind it.
- **A cancelled call takes its own reply**, so the connection that it shares with others stays.
  redis-py has to disconnect, or the reply would be taken for that of the next call.
- **Only calls that change nothing are made again** when their connection breaks before the reply
  (`Link.ask`, `Link.pipeline`, `Script.ask`), on a new connection, five times at most. A call that
  changes something may have been carried out; its caller reads the store again and decides. A
  general retry can't tell the two apart.
- **A silent server is noticed.** A reply that is late ends its connection, so that nobody waits for
  a server that is there and says nothing. Once a second `Server` asks for the time, the memory in
  use and whether writes are accepted. `check_open` thus knows without a call whether Redis is away,
  silent, full or read-only, so that nothing new is accepted that can't be stored.
- **Redis's clock**: leases and timers go by it. `Server.now` estimates it from the same question.
- **A cluster** is found through any of the nodes that the URL names, as long as one answers. The
  node of each partition is asked once a second. A node that is cut off from the others says so, and
  is believed only if no other answers.
- **Sentinels** are all asked, and the newest answer counts. The server itself is asked too whether
  it is the master, and a master that was replaced is left at once: it may still accept writes on
  its side of a split network.
- **Errors are ours**: a fenced commit, a server that can't serve anybody now, and a refused call
  are three exceptions, which callers treat differently.

Of the rest of the store it knows only the names of keys, which say where in a cluster a partition
is, and the periods (`stores.redis.timing`). The rest of the store imports only the names in
`__all__`.

- `address`: from a URL to where and how to connect.
- `sentinels`: where the master is, as Sentinels know it.
- `errors`: error replies and broken connections as exceptions.
- `wire`: one connection.
- `link`: a connection that is made again after it broke.
- `server`: the connections of a store, its clock, whether it is there.
- `scripts`: the `.lua` files; they check first, write after and decide nothing.
- `clients`: redis-py's clients, for what isn't worth a connection of our own kind.
"""

from penstock.stores.redis.connection.clients import async_client, close_client, open_client
from penstock.stores.redis.connection.errors import Refused
from penstock.stores.redis.connection.link import Link
from penstock.stores.redis.connection.scripts import Script, script
from penstock.stores.redis.connection.server import Server

__all__ = [
    "Link",
    "Refused",
    "Script",
    "Server",
    "async_client",
    "close_client",
    "open_client",
    "script",
]
