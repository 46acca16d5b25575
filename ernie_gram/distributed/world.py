"""The processes of a job, and the device of this one.

`paddle.distributed.launch` starts several processes ("ranks"), each of which computes its share of every batch; without
it the world has one process. No other package reads the launcher's environment or chooses a device.

This file is for commands, which import it before Paddle: it sets the environment that Paddle reads when it is loaded,
and ties a rank to its launcher. What other programs may import imports it not even indirectly (see `ranks.World`).
"""

from __future__ import annotations

import os
import signal
import sys

from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.gloo import connect_first_group
from ernie_gram.distributed.loading import PROCESSES_ON_THIS_MACHINE as PROCESSES_ON_THIS_MACHINE
from ernie_gram.distributed.loading import load_paddle, prepare_environment, quiet
from ernie_gram.distributed.ranks import World as World
from reader.system.processes import signal_at_parent_death
from reader.system.progress import hide_progress

WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
# Set by our launcher: the file for this process's heartbeat (see run/heartbeat.py), and the launcher's process.
HEARTBEAT = os.environ.get("ERNIE_GRAM_HEARTBEAT")
_LAUNCHER = os.environ.get("ERNIE_GRAM_LAUNCHER")

prepare_environment()
if RANK:
    hide_progress()
if "PADDLE_TRAINER_ID" in os.environ:
    # A process of a job ends with its launcher, even if that is killed. SIGTERM lets it save (see run/termination.py).
    signal_at_parent_death(signal.SIGTERM)
    try:
        os.kill(int(_LAUNCHER or os.getppid()), 0)
    except ProcessLookupError:
        sys.exit(128 + signal.SIGTERM)  # it has ended already


def start_world(device: str, precision: str = "float32", attention: str = "plain") -> World:
    """Choose the device ("auto", "cpu" or "gpu"), connect to the other processes, and switch to static graphs.

    Raises InputError as `check_device` does.
    """
    paddle = load_paddle()
    use_gpu = check_device(device, precision, attention=attention)
    place = use_device(use_gpu)
    # Run operations one by one, in the order of the program. Otherwise operations that draw random numbers would run
    # in a varying order, so that no run could be repeated; and the chunks of a computation that is split to save memory
    # would be computed at the same time. (FLAGS_new_executor_serial_run is not enough: it uses a single thread, but
    # visits the operations breadth first.)
    paddle.set_flags({"FLAGS_enable_pir_in_executor_trace_run": True})
    if WORLD_SIZE > 1:
        from paddle.distributed import fleet

        # fleet has to be initialised before static mode is switched on.
        with quiet():
            if not use_gpu:
                os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
                connect_first_group(RANK, WORLD_SIZE)
            # It would warn that the first group is there already.
            fleet.init(is_collective=True, log_level="ERROR")
    paddle.enable_static()
    return World(RANK, WORLD_SIZE, place)
