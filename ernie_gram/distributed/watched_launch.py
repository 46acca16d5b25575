"""Paddle's launcher with our watch over the ranks (see watch.py), for collective jobs."""

from __future__ import annotations

import os
import platform
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from paddle.distributed.launch import controllers
from paddle.distributed.launch.main import launch

from ernie_gram.distributed.other_machines import OtherMachines
from ernie_gram.distributed.watch import Rank, watch
from ernie_gram.paddle_private import process_of, replace_collective_controller
from reader.commands import INTERRUPTED
from reader.errors import InputError, InUseError, exit_status, print_error
from reader.system.console import write_or_drop
from reader.system.lock_files import lock_file

# Not the lock of a run: its folder may be LOG_DIR.
LAUNCHER_LOCK = ".launcher.lock"


class WatchedController(controllers.CollectiveController):
    """Starts the ranks of this machine as Paddle does, and watches them until all have ended."""

    def __init__(self, ctx: Any) -> None:
        self._signals: list[int] = []
        self._status = 1
        self._log_starts: list[int] = []
        super().__init__(ctx)

    def build_pod(self) -> bool:
        """Describe the ranks; with fewer GPUs than ranks, none is assigned.

        Paddle would index beyond the list of GPUs. The ranks of a job on CPUs need none, and others refuse to start
        (see device.py). Raises InputError for a GPU of --devices that is not there, and for too few of them, and
        InUseError if another job has the same folder of logs.
        """
        device, arguments = self.ctx.node.device, self.ctx.args
        self._lock_logs(Path(arguments.log_dir))
        try:
            gpus = device.get_selected_devices(arguments.devices)
        except ValueError as error:
            there = ",".join(device.labels) or "none"
            raise InputError(f"--devices: {arguments.devices}: not all are visible GPUs, which are: {there}") from error
        if len(gpus) < self.pod_replicas():
            if arguments.devices:
                named = f"--devices names {arguments.devices}"
                raise InputError(f"NPROC: {self.pod_replicas()} processes, but {named}; each process needs a GPU")
            device.labels, arguments.devices = [], None
        return bool(super().build_pod())

    def _lock_logs(self, folder: Path) -> None:
        """Lock the folder of logs until this process ends: two jobs would mix up their outputs and heartbeats."""
        # Some network storage has no locks.
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = lock_file(folder / LAUNCHER_LOCK, f"LOG_DIR: {folder} is in use")
            except InUseError as error:
                raise InUseError(f"{error}; set LOG_DIR to another folder") from error

    def add_container(self, container: Any = None, envs: dict[str, str] | None = None, **options: Any) -> None:
        """Add a rank, which is told its heartbeat file and its parent."""
        folder = os.path.abspath(self.ctx.args.log_dir)
        # With the name of the machine, because some network storage has no locks that keep other jobs away.
        path = Path(folder) / f"heartbeat.{(envs or {}).get('PADDLE_TRAINER_ID', 'init')}.{platform.node()}"
        path.unlink(missing_ok=True)
        ours = {"ERNIE_GRAM_HEARTBEAT": str(path), "ERNIE_GRAM_LAUNCHER": str(os.getpid())}
        super().add_container(container, envs={**(envs or {}), **ours}, **options)

    def deploy_pod(self) -> None:
        """Start the ranks. There are none if a signal has ended the wait for other machines; then exit."""
        if not self.pod.containers:
            self._exit(128 + self._signals[0])
        logs = [Path(container.outfile) for container in self.pod.containers]
        self._log_starts = [
            log.stat().st_size if log.is_file() and not self.ctx.args.log_overwrite else 0 for log in logs
        ]
        super().deploy_pod()

    def signal_handler(self, sigint: int, frame: Any) -> None:
        """Note the signal for `watch`, or end the wait for other machines."""
        self._signals.append(signal.SIGTERM if sigint == signal.SIGABRT else sigint)
        self.ctx.status.done()

    def watch(self) -> bool:
        """Watch the ranks until all have ended."""
        ranks = [
            Rank(
                int(container.env["PADDLE_TRAINER_ID"]),
                process_of(container),
                Path(container.outfile),
                start,
                Path(container.env["ERNIE_GRAM_HEARTBEAT"]),
            )
            for container, start in zip(self.pod.containers, self._log_starts, strict=True)
        ]
        # There is no store if the launchers did not find each other through one.
        client = getattr(self.master, "client", None) if self.job.replicas > 1 else None
        name = f"{self.pod.rank}-{platform.node()}"
        others = OtherMachines(client, self.job.id, name) if client else None

        def say(line: str) -> None:
            write_or_drop(sys.stderr, f"{line}\n")
            if others and not others.failure:
                others.fail(line.removeprefix("error: "))

        try:
            elsewhere = (lambda: others.failure) if others else str
            self._status = watch(ranks, self._signals, self._show, say, elsewhere)
        finally:
            for rank in ranks:
                rank.send(signal.SIGKILL)
        if others:
            others.end()
        return True

    def _show(self) -> None:
        """Print what the first rank of this machine has printed since the last call."""
        while self.pod.containers[0].logs():
            pass
        write_or_drop(sys.stdout)

    def finalize(self, exit: bool = True) -> None:
        """End with the status of the job."""
        self._exit(self._status)

    def _exit(self, status: int) -> NoReturn:
        self.master.stop()
        sys.exit(status)


def launch_watched() -> None:
    """Run Paddle's launcher, and end this process; `sys.argv` has the launcher's options."""
    # The launchers of several machines reach each other directly. With a proxy, they would wait for ever.
    os.environ["no_proxy"] = "*"
    replace_collective_controller(WatchedController)
    status: object = 1
    try:
        launch()
    except SystemExit as ended:
        status = 0 if ended.code is None else ended.code
    except InputError as error:
        print_error(str(error))
        status = exit_status(error)
    except KeyboardInterrupt:
        # Before Paddle's launcher handles signals.
        print_error("interrupted")
        status = INTERRUPTED
    except BaseException:
        # For example BrokenPipeError, if nobody reads the console any more.
        with suppress(OSError):
            traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        # After an error, the thread of the store would keep this process alive for ever.
        os._exit(status if isinstance(status, int) else 1)
