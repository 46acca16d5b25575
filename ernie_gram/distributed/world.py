"""The processes of a job, and the device of this one.

Our launcher, or `paddle.distributed.launch`, starts several processes ("ranks"), each of which computes its share of
every batch; without it the world has one process. No other package reads its environment or chooses a device.

This file is for commands, which import it before Paddle: it sets the environment that Paddle reads when it is loaded,
and makes a rank end with its launcher. Modules for other programs must not import it, even indirectly; they use
device.py.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from ernie_gram.config import require
from ernie_gram.distributed.device import World as World
from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.loading import PROCESSES_ON_THIS_MACHINE as PROCESSES_ON_THIS_MACHINE
from ernie_gram.distributed.loading import load_paddle, prepare_environment, quiet
from ernie_gram.run.termination import beat
from reader.errors import SystemRefusedError
from reader.system.processes import signal_at_parent_death
from reader.system.progress import show_progress

# The environment variable with the process of our launcher.
LAUNCHER = "ERNIE_GRAM_LAUNCHER"
IS_RANK = "PADDLE_TRAINER_ID" in os.environ
WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))

# The store of the second group. It is needed as long as the process runs.
_second_store: object = None
_SIZE_KEYS = "number of processes of rank 0", "number of processes of others"
_PORT_KEY = "port of the second store"
STORE_SECONDS = 900  # Paddle's own limit for its first store

prepare_environment()
if RANK:
    show_progress(False)
if IS_RANK:
    # A process of a job ends with its launcher, even if that is killed. SIGTERM lets it save (see run/termination.py).
    signal_at_parent_death(signal.SIGTERM)
    try:
        os.kill(int(os.environ.get(LAUNCHER) or os.getppid()), 0)
    except ProcessLookupError:
        sys.exit(128 + signal.SIGTERM)  # the launcher has ended already


def start_world(device: str, precision: str = "float32") -> World:
    """Choose the device ("auto", "cpu" or "gpu"), connect to the other processes, and switch to static graphs.

    Raises InputError as `check_device` does.
    """
    beat()
    paddle = load_paddle()
    from ernie_gram.paddle_private import RUN_IN_ORDER

    use_gpu = check_device(device, precision)
    place = use_device(use_gpu)
    paddle.set_flags(RUN_IN_ORDER)
    if WORLD_SIZE > 1:
        from paddle.distributed import fleet

        beat()
        # fleet has to be initialised before static mode is switched on.
        with quiet():
            _meet()
            if not use_gpu:
                os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
                _connect_first_group()
            # It would warn that the first group is there already.
            fleet.init(is_collective=True, log_level="ERROR")
    paddle.enable_static()
    return World(RANK, WORLD_SIZE, place)


def _meet() -> None:
    """Wait for all processes; raise InputError if not all come, or if their machines differ about their number.

    Otherwise groups of processes would wait for ever, or fail with a message about their addresses.
    """
    from ernie_gram.paddle_private import first_store

    try:
        store = first_store()
        store.set(_SIZE_KEYS[RANK > 0], str(WORLD_SIZE))
        other = int(store.get(_SIZE_KEYS[RANK == 0]))
    except (RuntimeError, OSError, SystemError) as error:
        message = f"not all {WORLD_SIZE} processes have met at {os.environ['PADDLE_MASTER']}; were all machines started"
        raise SystemRefusedError(f"{message}, with the same --master, --nnodes and NPROC? ({error})") from error
    message = f"{WORLD_SIZE} processes by this machine, {other} by another; NPROC and --nnodes must agree"
    require(other == WORLD_SIZE, "NPROC", message)


def _connect_first_group() -> None:
    """Connect this process, which computes on a CPU, to all others, and give the groups that follow a new store.

    Call it before `fleet.init`. Paddle 3.3.1 makes two groups of all processes: its default one, and one for data
    parallelism. In each, gloo reads the addresses of the other processes from a store, and some of the keys do not
    contain the group. So a process that connects in the second group can read an address of the first one, where nobody
    listens any more; the job then ends with "Connection refused", or after 150 seconds with "TIMEOUT". Two of three
    starts of four processes failed like that. Here the second group gets a store of its own. Rank 0 serves it on a free
    port of the machine whose address all processes know.
    """
    global _second_store
    import paddle

    from ernie_gram.paddle_private import first_store, use_new_store

    paddle.distributed.init_parallel_env()
    store = first_store()
    host = os.environ["PADDLE_MASTER"].rpartition(":")[0]
    if RANK == 0:
        store.set(_PORT_KEY, str(free_port()))
    port = int(store.get(_PORT_KEY))
    _second_store = use_new_store(host, port, RANK == 0, WORLD_SIZE, STORE_SECONDS)


def free_port() -> int:
    """Return the number of a port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        port: int = listener.getsockname()[1]
        return port
