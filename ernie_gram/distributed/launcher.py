"""The processes of a job: how many the environment asks for, and their start by Paddle's launcher.

Nothing here imports Paddle, except for a job that is started, or to count the GPUs of its package for GPUs.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ernie_gram.config.checks import require
from ernie_gram.distributed.device import is_gpu_package, visible_gpus
from ernie_gram.distributed.loading import IS_VERBOSE, forget_own_threads, load_paddle, quiet
from ernie_gram.distributed.world import PROCESSES_ON_THIS_MACHINE, RANK, WORLD_SIZE
from ernie_gram.run.heartbeat import FOLDER, heartbeat_file
from reader.errors import InputError, InUseError, OneLineParser, located, print_note
from reader.system.console import write_or_drop
from reader.system.installation import child_environment
from reader.system.lock_files import lock_file

ENVIRONMENT = """Environment variables:
  NPROC        number of processes on this machine (default: one per GPU that Paddle sees, or 1 without a GPU)
  LAUNCH_ARGS  of several machines: "--master HOST:PORT --nnodes 4 --rank 0", where RANK is the number of this one, and
               --host is its own address, if Paddle's launcher does not find it; in a job step of Slurm (srun) with
               several tasks, all are set from Slurm's variables
  LOG_DIR      folder for the output of each process, for one job at a time (default: log); with --nnodes, each
               machine writes into the subfolder machine_RANK
  PADDLE_VERBOSE=1  show Paddle's own messages as well"""
# Not the lock of a run: its folder may be LOG_DIR.
LAUNCHER_LOCK = ".launcher.lock"
# Where the system shows the GPUs of NVIDIA's driver.
DEVICES = Path("/dev")


@dataclass(frozen=True)
class Processes:
    """The processes of a job.

    Attributes:
        here: their number on this machine; size: on all machines.
        rank: the number of this process, or of the first one that it starts.
        machines: number of machines; machine: the number of this one; master: HOST:PORT on the first one, or "".
        host: the address of this machine, or "" for the one that Paddle's launcher finds.
        is_launcher: whether this process starts them, and is none of them.
    """

    here: int
    size: int
    rank: int
    machines: int = 1
    machine: int = 0
    master: str = ""
    host: str = ""
    is_launcher: bool = True


def processes_of_job() -> Processes:
    """Return the processes of the job to which this one belongs, or which it is to start, see ENVIRONMENT.

    Raises InputError if a variable of ENVIRONMENT is wrong.
    """
    if "PADDLE_TRAINER_ID" in os.environ:
        return Processes(PROCESSES_ON_THIS_MACHINE, WORLD_SIZE, RANK, is_launcher=False)
    given = _launch_arguments()
    here = _processes()
    master, machines, machine = given.master, given.nnodes, given.rank
    if master is None:
        master, machines, machine = _machines_of_slurm(here)
    address = _with_address(master) if master else ""
    # Otherwise Paddle's launcher on the first machine may not see that it is the master, and all wait for ever.
    host = given.host or (address.partition(":")[0] if machine == 0 else "")
    is_alone = here == 1 and not master
    return Processes(here, here * machines, here * machine, machines, machine, address, host, not is_alone)


def start_ranks(script: str, arguments: Sequence[str], processes: Processes) -> NoReturn:
    """Run a script in several processes with Paddle's launcher, and end this process with their status.

    Raises InputError if LOG_DIR cannot be used, and InUseError if another job uses it.
    """
    folder = _log_folder(processes)
    # Two jobs would mix up their outputs and heartbeats. The lock is held until this process ends. Some network storage
    # has no locks.
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        try:
            _lock = lock_file(folder / LAUNCHER_LOCK, f"LOG_DIR: {folder} is in use")
        except InUseError as error:
            raise InUseError(f"{error}; set LOG_DIR to another folder") from error
    for rank in range(processes.rank, processes.rank + processes.here):
        heartbeat_file(folder, rank).unlink(missing_ok=True)
    load_paddle()
    forget_own_threads()
    # The launchers of several machines reach each other directly. With a proxy, they would wait for ever.
    ours = {FOLDER: str(folder.absolute()), "ERNIE_GRAM_LAUNCHER": str(os.getpid()), "no_proxy": "*"}
    os.environ.update(child_environment(**ours))
    options = {
        "--nproc_per_node": processes.here,
        "--log_dir": folder,
        # The launcher prints its settings in 36 lines; the errors of the processes are still shown.
        "--log_level": "INFO" if IS_VERBOSE else "ERROR",
        "--host": processes.host,
    }
    if processes.master:
        options |= {"--master": processes.master, "--nnodes": processes.machines, "--rank": processes.machine}
    given = [word for name, value in options.items() if value != "" for word in (name, str(value))]
    sys.argv = [sys.argv[0], *given, script, *arguments]
    with quiet():
        from ernie_gram.distributed.watched_launch import launch_watched
    status = launch_watched()
    write_or_drop(sys.stdout)
    # Python would take a second to end Paddle.
    os._exit(status)


def _launch_arguments() -> argparse.Namespace:
    """Return the options in LAUNCH_ARGS; raises InputError for others: Paddle starts an old launcher for them."""
    parser = OneLineParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master")
    parser.add_argument("--host")
    parser.add_argument("--nnodes", type=int, default=1)
    parser.add_argument("--rank", type=int)
    with located("LAUNCH_ARGS"):
        try:
            words = shlex.split(os.environ.get("LAUNCH_ARGS", ""))
        except ValueError as error:
            raise InputError(str(error)) from error
        given, others = parser.parse_known_args(words)
        known = "--master, --nnodes, --rank and --host; choose GPUs with CUDA_VISIBLE_DEVICES"
        require(not others, " ".join(others), f"not supported here; the options are {known}")
        count, is_complete = given.nnodes, None not in (given.master, given.rank)
        rank = given.rank = given.rank or 0
        require(count > 0, "--nnodes", f"{count}: must be positive")
        require(0 <= rank < count, "--rank", f"{rank}: with --nnodes {count}, ranks are 0 to {count - 1}")
        # Otherwise Paddle would wait for ever, and print a command that starts its own launcher.
        require(count == 1 or is_complete, "--nnodes", f"{count}: needs --master HOST:PORT and --rank")
    return given


def _processes() -> int:
    """Return the number of processes on this machine."""
    if text := os.environ.get("NPROC", "").strip():
        require(re.fullmatch("[1-9][0-9]*", text) is not None, "NPROC", f"{text} is not a number of processes")
        return int(text)
    listed = len([*DEVICES.glob("nvidia[0-9]*")])
    if listed and not is_gpu_package() and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1"):
        gpus = f"{listed} GPU{'s' * (listed > 1)}"
        print_note(f"this machine has {gpus}, but this Paddle is the package for CPUs; paddlepaddle-gpu would use them")
    return max(1, visible_gpus())


def _machines_of_slurm(here: int) -> tuple[str, int, int]:
    """Return the master, the number of machines and that of this one in a job step of Slurm with several tasks.

    Each task is one machine for Paddle's launcher. The port depends on the job, so that jobs on the same machine use
    different ports. Without several tasks, there is one machine, and no master.
    """
    slurm = {key[6:]: value for key, value in os.environ.items() if key.startswith("SLURM_") and value}
    for name in ("STEP_NUM_TASKS", "JOB_NUM_NODES", "STEP_NUM_NODES", "JOB_ID", "STEP_ID"):
        require(slurm.get(name, "0").isdecimal(), f"SLURM_{name}", f"{slurm.get(name)} is not a number")
    tasks, machines = int(slurm.get("STEP_NUM_TASKS", 1)), int(slurm.get("JOB_NUM_NODES", 1))
    if "STEP_NUM_TASKS" not in slurm and machines > 1:
        print_note(f"the Slurm job has {machines} machines, but only this one is used; start the command with srun")
    if tasks == 1:
        return "", 1, 0
    if here > 1 and tasks > int(slurm.get("STEP_NUM_NODES", tasks)):
        message = f"{here} processes in each of several Slurm tasks per machine"
        raise InputError(f"NPROC: {message}; use srun --ntasks-per-node=1, or NPROC=1")
    for name in ("STEP_NODELIST", "JOB_ID", "PROCID"):
        require(name in slurm, f"SLURM_{name}", "is not set, but SLURM_STEP_NUM_TASKS is; start the command with srun")
    nodes, hosts = slurm["STEP_NODELIST"], ""
    with suppress(OSError):
        command = ["scontrol", "show", "hostnames", nodes]
        hosts = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    if not hosts.strip():
        raise InputError(f"SLURM_STEP_NODELIST: scontrol cannot read {nodes}; set LAUNCH_ARGS instead")
    port = 20000 + (int(slurm["JOB_ID"]) + int(slurm.get("STEP_ID", 0))) % 10000
    return f"{hosts.split()[0]}:{port}", tasks, int(slurm["PROCID"])


def _with_address(master: str) -> str:
    """Return HOST:PORT with the address of HOST, by which Paddle's launcher recognises the master."""
    host, colon, port = master.rpartition(":")
    with located(f"LAUNCH_ARGS: --master {master}"):
        if not (colon and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise InputError("must be HOST:PORT")
        try:
            address = str(socket.getaddrinfo(host, None, socket.AF_INET)[0][4][0])
        except OSError as error:
            raise InputError(f"no address is known for {host}") from error
        if address.startswith("127.") and host not in ("localhost", address):
            raise InputError(f"{host} is {address} on this machine, which others cannot reach; give its address")
    return f"{address}:{port}"


def _log_folder(processes: Processes) -> Path:
    """Return the folder for the output of each process; LOG_DIR is created."""
    text = os.environ.get("LOG_DIR") or "log"
    folder = Path(text)
    with suppress(OSError):
        # As for other outputs, only a relative path may create more than its last level. Another machine may create
        # it at the same time.
        folder.mkdir(parents=not folder.is_absolute() and ".." not in text, exist_ok=True)
    message = f"cannot write to the folder {text}, or it cannot be created"
    require(folder.is_dir() and os.access(folder, os.W_OK), "LOG_DIR", message)
    # The machines share storage, and each numbers its processes from 0.
    return folder / f"machine_{processes.machine}" if processes.machines > 1 else folder
