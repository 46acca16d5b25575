"""The processes of a job: how many the environment asks for, and their start on this machine.

Ranks get the environment variables of `paddle.distributed.launch`, which may start them as well, but watches them less
than watch.py does. Paddle is imported only to count the GPUs of its package for GPUs.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ernie_gram.config import require
from ernie_gram.distributed.device import visible_gpus
from ernie_gram.distributed.loading import environment_of_ranks
from ernie_gram.distributed.watch import Rank, start, watch
from ernie_gram.distributed.world import IS_RANK, LAUNCHER, PROCESSES_ON_THIS_MACHINE, RANK, WORLD_SIZE, free_port
from ernie_gram.run.termination import HANG_SECONDS, noted_signals
from reader.errors import InputError, OneLineParser, located, write_or_drop
from reader.system.atomic_files import check_writable
from reader.system.lock_files import lock_file

ENVIRONMENT = """Environment variables:
  NPROC        number of processes on this machine (default: one per GPU that Paddle sees, or 1 without a GPU)
  LAUNCH_ARGS  of several machines: "--master HOST:PORT --nnodes 4 --rank 0", where HOST is the first machine, and RANK
               the number of this one
  LOG_DIR      folder for the output of each process, for one job at a time (default: log); with --nnodes, each
               machine writes into the subfolder machine_RANK
  GLOG_minloglevel  0 shows the messages of Paddle's C++ code as well"""
# Not the lock of a run: its folder may be LOG_DIR.
LAUNCHER_LOCK = ".launcher.lock"


@dataclass(frozen=True)
class Processes:
    """The processes of a job.

    Attributes:
        here: their number on this machine, and on every other one; size: on all machines.
        rank: the number of this process, or of the first one that it starts.
        master: HOST:PORT where rank 0 serves the store through which all find each other, or "" for one machine.
        is_launcher: whether this process starts them, and is none of them.
    """

    here: int
    size: int
    rank: int
    master: str = ""
    is_launcher: bool = True


def processes_of_job() -> Processes:
    """Return the processes of the job to which this one belongs, or which it is to start, see ENVIRONMENT.

    Raises InputError if a variable of ENVIRONMENT is wrong.
    """
    if IS_RANK:
        return Processes(PROCESSES_ON_THIS_MACHINE, WORLD_SIZE, RANK, is_launcher=False)
    given, here = _launch_arguments(), _processes()
    return Processes(here, here * given.nnodes, here * given.rank, given.master, here > 1 or bool(given.master))


def start_ranks(command: Sequence[str], processes: Processes, hang_seconds: int) -> NoReturn:
    """Run Python with the arguments `command` in several processes, and end this process with their status.

    The first one is a script: with `-m`, modules in the current folder would come before ours (Python 3.10). A process
    that makes no progress for `hang_seconds` ends, and the job with it; 0 for never.

    Raises InputError if LOG_DIR cannot be used, and InUseError if another job uses it.
    """
    folder = _log_folder(processes)
    # Two jobs would mix up their outputs. The lock is held until this process ends.
    _lock = lock_file(folder / LAUNCHER_LOCK, f"LOG_DIR: choose another folder, {folder} is in use")
    here, size, first = processes.here, processes.size, processes.rank
    if master := processes.master:
        write_or_drop(sys.stdout, f"ranks    {here} of {size}, from rank {first}; all meet at {master}\n")
    has_gpus = here <= visible_gpus()
    # Processes meet at the master; of these names, Paddle takes only how many there are, and on how many machines.
    names = [f"machine_{rank // here}:{rank}" for rank in range(size)]
    environment = environment_of_ranks() | {
        LAUNCHER: str(os.getpid()),
        "PADDLE_MASTER": master or f"127.0.0.1:{free_port()}",
        "PADDLE_TRAINERS_NUM": str(size),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(names),
        "PADDLE_LOCAL_SIZE": str(here),
        HANG_SECONDS: str(hang_seconds),
    }
    ranks: list[Rank] = []
    with noted_signals() as signals:
        for i in range(here):
            own = {"PADDLE_TRAINER_ID": str(first + i), "PADDLE_CURRENT_ENDPOINT": names[first + i]}
            own |= {"PADDLE_LOCAL_RANK": str(i), "PADDLE_RANK_IN_NODE": str(i)}
            # There may be more ranks than GPUs if they compute on CPUs.
            own |= {"FLAGS_selected_gpus": str(i)} if has_gpus else {}
            log = folder / f"workerlog.{i}"
            ranks.append(start(first + i, [sys.executable, "-u", *command], environment | own, log))
        with ranks[0].log.open(encoding="utf-8", errors="replace") as shown:
            shown.seek(ranks[0].log_start)
            sys.exit(watch(ranks, signals, lambda: write_or_drop(sys.stdout, shown.read())))


def _launch_arguments() -> argparse.Namespace:
    """Return the options in LAUNCH_ARGS; raises InputError for others."""
    parser = OneLineParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master", default="")
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("--rank", type=int)
    with located("LAUNCH_ARGS"):
        try:
            words = shlex.split(os.environ.get("LAUNCH_ARGS", ""))
        except ValueError as error:
            raise InputError(str(error)) from error
        given, others = parser.parse_known_args(words)
        known = "--master, --nnodes and --rank; choose GPUs with CUDA_VISIBLE_DEVICES"
        require(not others, " ".join(others), f"not supported here; the options are {known}")
        count, is_complete = given.nnodes, bool(given.master) and given.rank is not None
        rank = given.rank = given.rank or 0
        require(count > 0, "--nnodes", f"{count}: must be positive")
        require(0 <= rank < count, "--rank", f"{rank}: with --nnodes {count}, ranks are 0 to {count - 1}")
        require(count == 1 or is_complete, "--nnodes", f"{count}: needs --master HOST:PORT and --rank")
        if given.master:
            host, colon, port = given.master.rpartition(":")
            is_valid = bool(colon) and port.isdecimal() and 0 < int(port) < 1 << 16
            require(is_valid, f"--master {given.master}", "must be HOST:PORT")
            try:
                socket.getaddrinfo(host, None, socket.AF_INET)
            except OSError as error:
                raise InputError(f"--master {given.master}: no address is known for {host}") from error
    return given


def _processes() -> int:
    """Return the number of processes on this machine."""
    if text := os.environ.get("NPROC", "").strip():
        require(re.fullmatch("[1-9][0-9]*", text) is not None, "NPROC", f"{text} is not a number of processes")
        return int(text)
    return max(1, visible_gpus())


def _log_folder(processes: Processes) -> Path:
    """Return the folder for the output of each process; LOG_DIR is created."""
    folder = Path(os.environ.get("LOG_DIR") or "log")
    # The machines share storage, and each numbers its logs from 0.
    own = folder / f"machine_{processes.rank // processes.here}" if processes.size > processes.here else folder
    with located("LOG_DIR"):
        check_writable(own)
    own.mkdir(parents=True, exist_ok=True)  # another machine may create it at the same time
    return own
