"""Connections between processes that compute on CPUs.

Paddle 3.3.1 makes two groups of all processes: its default one, and one for data parallelism. In each, gloo reads the
addresses of the other processes from a store, and some of the keys do not contain the group. So a process that connects
in the second group can read an address of the first one, where nobody listens any more; the job then ends with
"Connection refused", or after 150 seconds with "TIMEOUT". Two of three starts of four processes failed like that. Here
the second group gets a store of its own.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import paddle

# The store of the second group. It is needed as long as the process runs.
_second_store: paddle.base.core.TCPStore | None = None
_PORT_KEY = "port of the second store"
STORE_SECONDS = 900  # Paddle's own limit for its first store


def connect_first_group(rank: int, size: int) -> None:
    """Connect this process to all others, and give the groups that follow a new store. Call it before `fleet.init`.

    Rank 0 serves the store on a free port of the machine whose address all processes know.
    """
    global _second_store
    import paddle
    from paddle.distributed import collective

    paddle.distributed.init_parallel_env()
    first_store = paddle.base.core.create_or_get_global_tcp_store()
    host = paddle.distributed.ParallelEnv().trainer_endpoints[0].rsplit(":", 1)[0]
    if rank == 0:
        first_store.set(_PORT_KEY, str(_free_port()))
    port = int(first_store.get(_PORT_KEY))
    _second_store = paddle.base.core.TCPStore(host, port, rank == 0, size, STORE_SECONDS)
    collective._set_default_store(_second_store)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        port: int = listener.getsockname()[1]
        return port
