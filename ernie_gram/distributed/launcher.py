"""Replace this process by a command of this project in one or several processes. Nothing here imports Paddle."""

from __future__ import annotations

import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NoReturn

from ernie_gram.config.checks import require
from ernie_gram.run.prepared import READ, WRITE
from reader.errors import InputError, print_note
from reader.system.installation import PACKAGES, child_environment
from reader.system.processes import signal_at_parent_death

ENVIRONMENT = """Environment variables:
  NPROC        number of processes on this machine (default: one per GPU that Paddle sees, or 1 without a GPU)
  LAUNCH_ARGS  additional arguments of paddle.distributed.launch, e.g. "--master HOST:PORT --nnodes 4 --rank 0"; in a
               job step of Slurm (srun) with several tasks, these three are set from Slurm's variables
  LOG_DIR      folder for the output of each process, for one job at a time (default: log); with --nnodes, each
               machine writes into the subfolder machine_RANK
  PADDLE_VERBOSE=1  show Paddle's own messages as well"""
# The supported options of Paddle's launcher; each has a value. Others do not work with watch.py, which replaces the
# launcher's own supervision of the processes, or contradict LOG_DIR or --rank.
LAUNCH_OPTIONS = ("--master", "--nnodes", "--rank", "--host", "--devices", "--gpus", "--log_level")
# The option of our commands that checks the input and trains nothing.
CHECK = "--check"
# hugetlb: large pages for large arrays reduce the time of attention on a CPU by a third. mmap_max and trim_threshold:
# freed memory is kept for the next array. Otherwise the system would take back the pages, and clear and assign them
# again in every step.
MEMORY = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"


def launch(module: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `python -m MODULE ARGUMENTS` in NPROC processes, see ENVIRONMENT.

    Before several are started, one process checks the input with --check, so that an error is one line, and ends the
    command at once. What it prepares is passed on (see run/prepared.py).

    Raises InputError if a variable of ENVIRONMENT is wrong.
    """
    if {"-h", "--help", "--print_config"} & {*arguments}:
        _replace("-m", module, *arguments)
    processes = _processes()
    options = _with_address_of_master([*_options_of_slurm(processes), *_launch_arguments()])
    is_single = processes == 1 and not options
    os.environ["GLIBC_TUNABLES"] = os.environ.get("GLIBC_TUNABLES") or MEMORY
    if is_single:
        # It reports errors in one line by itself.
        _replace("-m", module, *arguments)
    printed = _check(module, arguments, processes, options)
    if CHECK in arguments:
        print(printed, end="")
        sys.exit()
    start_ranks(str(PACKAGES / f"{module.replace('.', '/')}.py"), arguments, processes, options)


def start_ranks(script: str, arguments: Sequence[str], processes: int, options: Sequence[str] = ()) -> NoReturn:
    """Replace this process by Paddle's launcher, which runs a script in several processes.

    Args:
        options: of Paddle's launcher, see LAUNCH_OPTIONS.

    Raises InputError if LOG_DIR cannot be used.
    """
    # The launcher prints its settings in 36 lines; the errors of the processes are still shown.
    is_quiet = os.environ.get("PADDLE_VERBOSE") != "1" and _value(options, "--log_level") is None
    level = ["--log_level", "ERROR"] if is_quiet else []
    log = ["--nproc_per_node", str(processes), "--log_dir", str(_log_folder(options))]
    _replace("-m", "ernie_gram.distributed.launch", *level, *log, *options, script, *arguments)


def _launch_arguments() -> list[str]:
    """Return the words of LAUNCH_ARGS.

    Raises InputError if they are not what a shell would accept, or not LAUNCH_OPTIONS with their values: Paddle starts
    an old launcher for unknown options, which fails, and waits for ever if a rank is too large.
    """
    try:
        words = shlex.split(os.environ.get("LAUNCH_ARGS", ""))
    except ValueError as error:
        raise InputError(f"LAUNCH_ARGS: {error}") from error
    parts = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for name, value in zip_longest(parts[::2], parts[1::2], fillvalue="--"):
        require(name != "--nproc_per_node", "LAUNCH_ARGS", f"{name}: give the number of processes as NPROC")
        known = f"{name}: not supported here; the options are {' '.join(LAUNCH_OPTIONS)}"
        require(name in LAUNCH_OPTIONS, "LAUNCH_ARGS", known)
        require(not value.startswith("--"), "LAUNCH_ARGS", f"{name}: has no value")
    rank, machines = _value(words, "--rank"), _value(words, "--nnodes")
    for name, given, pattern in (("--rank", rank, "[0-9]+"), ("--nnodes", machines, "[1-9][0-9]*")):
        is_number = given is None or re.fullmatch(pattern, given) is not None
        require(is_number, "LAUNCH_ARGS", f"{name} {given}: not a number")
    count = int(machines or 1)
    reason = f"--rank {rank}: with --nnodes {count}, ranks are 0 to {count - 1}"
    require(int(rank or 0) < count, "LAUNCH_ARGS", reason)
    # Otherwise Paddle would wait for ever, and print a command that starts its own launcher.
    is_complete = count == 1 or _value(words, "--master") is not None
    require(is_complete, "LAUNCH_ARGS", f"--nnodes {count}: needs --master HOST:PORT")
    return words


def _processes() -> int:
    """Return the number of processes on this machine."""
    text = (os.environ.get("NPROC") or "").strip()
    if not text:
        text = _run("-m", "ernie_gram.distributed.count_gpus").strip()
        text = "1" if text == "0" else text
    require(re.fullmatch("[1-9][0-9]*", text) is not None, "NPROC", f"{text} is not a number of processes")
    return int(text)


def _options_of_slurm(processes: int) -> list[str]:
    """Return the machines of a job step of Slurm with several tasks as options of Paddle's launcher.

    Each task is one machine for Paddle's launcher, and the first machine is the master. The port depends on the job, so
    that jobs on the same machine use different ports.
    """
    slurm = {key[6:]: value for key, value in os.environ.items() if key.startswith("SLURM_") and value}
    for name in ("STEP_NUM_TASKS", "JOB_NUM_NODES", "STEP_NUM_NODES", "JOB_ID", "STEP_ID"):
        require(slurm.get(name, "0").isdecimal(), f"SLURM_{name}", f"{slurm.get(name)} is not a number")
    tasks, machines = int(slurm.get("STEP_NUM_TASKS", 1)), int(slurm.get("JOB_NUM_NODES", 1))
    if "STEP_NUM_TASKS" not in slurm and machines > 1:
        print_note(f"the Slurm job has {machines} machines, but only this one is used; start the command with srun")
    if tasks == 1 or "--master" in os.environ.get("LAUNCH_ARGS", ""):
        return []
    if processes > 1 and tasks > int(slurm.get("STEP_NUM_NODES", tasks)):
        message = f"{processes} processes in each of several Slurm tasks per machine"
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
    return ["--master", f"{hosts.split()[0]}:{port}", "--nnodes", str(tasks), "--rank", slurm["PROCID"]]


def _value(options: Sequence[str], name: str) -> str | None:
    """Return the value of an option of Paddle's launcher, or None if it is not given."""
    words = [part for word in options for part in word.split("=", 1)]
    return next((value for word, value in pairwise(words) if word == name), None)


def _with_address_of_master(options: list[str]) -> list[str]:
    """Return options with the master's address instead of its name; on the first machine also as --host.

    Otherwise Paddle's launcher on the first machine may not see that it is the master, and all machines wait for ever.
    """
    master = _value(options, "--master")
    if not master:
        return options
    host, colon, port = master.rpartition(":")
    is_port = port.isdecimal() and 0 < int(port) < 1 << 16
    require(bool(colon) and is_port, "LAUNCH_ARGS", f"--master {master}: must be HOST:PORT")
    try:
        address = str(socket.getaddrinfo(host, None, socket.AF_INET)[0][4][0])
    except OSError as error:
        raise InputError(f"LAUNCH_ARGS: --master {master}: no address is known for {host}") from error
    if address.startswith("127.") and host not in ("localhost", address):
        reason = f"{host} is {address} on this machine, which others cannot reach; give its address"
        raise InputError(f"LAUNCH_ARGS: --master {master}: {reason}")
    known = [word.replace(master, f"{address}:{port}") for word in options]
    return ["--host", address, *known] if _value(options, "--rank") == "0" else known


def _check(module: str, arguments: Sequence[str], processes: int, options: Sequence[str]) -> str:
    """Check the input as the first process of this machine would, and return what it prints.

    Ends with its status if the input is wrong.

    The prepared data is in an unnamed temporary file, which stays open in this process and in the one that replaces it.
    """
    with tempfile.TemporaryFile() as file:
        kept_open = os.dup(file.fileno())
    os.set_inheritable(kept_open, True)
    prepared = f"/proc/{os.getpid()}/fd/{kept_open}"
    rank = int(_value(options, "--rank") or 0)
    machines = int(_value(options, "--nnodes") or 1)
    printed = _run(
        *("-m", module, *arguments, CHECK),
        PADDLE_TRAINERS_NUM=str(processes * machines),
        PADDLE_TRAINER_ID=str(rank * processes),
        PADDLE_LOCAL_SIZE=str(processes),
        # A run that follows prints the warnings itself, and reads what was prepared.
        **({} if CHECK in arguments else {"NO_WARNINGS": "1", WRITE: prepared}),
    )
    os.environ[READ] = prepared
    return printed


def _log_folder(options: Sequence[str]) -> Path:
    """Return the folder for the output of each process, which is created."""
    text = os.environ.get("LOG_DIR") or "log"
    folder = Path(text)
    with suppress(OSError):
        # As for other outputs, only a relative path may create more than its last level. Another machine may create
        # it at the same time.
        folder.mkdir(parents=not folder.is_absolute() and ".." not in text, exist_ok=True)
    message = f"cannot write to the folder {text}, or it cannot be created"
    require(folder.is_dir() and os.access(folder, os.W_OK), "LOG_DIR", message)
    # The machines share storage, and each numbers its processes from 0.
    if (_value(options, "--nnodes") or "1") != "1":
        folder /= f"machine_{_value(options, '--rank') or platform.node()}"
    return folder


def _run(*arguments: str, **environment: str) -> str:
    """Return what Python prints; end with its status if it fails."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=child_environment(**environment),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
    )
    try:
        printed, _ = process.communicate()
    except KeyboardInterrupt:
        # The child process was interrupted too, and reports it.
        sys.exit(process.wait() or 128 + signal.SIGINT)
    if process.returncode:
        sys.exit(process.returncode if process.returncode > 0 else 128 - process.returncode)
    return printed


def _replace(*arguments: str) -> NoReturn:
    """Replace this process by Python with arguments."""
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *arguments], child_environment())
