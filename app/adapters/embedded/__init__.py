"""Postgres and Valkey from installed packages, run for the processes that need them and no longer.

::

    client ──shared flock──> HOME/locks/postgres.lease <──waits for the exclusive flock── supervisor ──> postgres

A client (any process inside `open_servers`) holds a shared lock on the server's lease. The first one starts a
supervisor, a small detached process that starts the server and asks for the exclusive lock on the lease. The kernel
grants it when the last client is gone, however it went, and the supervisor then stops the server and exits. Locks
belong to open files, so the kernel also cleans up after `kill -9`; there are no pid files to go stale. Three files per
server:

- `NAME.lease`: shared by clients; exclusive while the supervisor shuts down, so that a client that arrives then
  waits for the next server instead of finding the last one dying.
- `NAME.supervisor`: exclusive from before the data is prepared until the supervisor exits. The client that gets it
  is the one that starts the server, and hands the locked file to the supervisor.
- `NAME.server`: exclusive while any process of the server lives, because they all inherit it. A new server waits
  here for the orphans of a killed supervisor.

A supervisor ends with its server. If it is killed, the kernel stops the server (PR_SET_PDEATHSIG). In both cases one of
the clients starts both anew, at the same address.

The servers listen on Unix sockets only: no port can be taken, and the kernel tells Postgres which user connects
(peer authentication), so there is no password to keep.
"""

from app.adapters.embedded.servers import Servers, open_servers

__all__ = ["Servers", "open_servers"]
