"""Paddle's launcher with our watch over the ranks (see watch.py), for collective jobs."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

from paddle.distributed.launch.context import Context
from paddle.distributed.launch.controllers import CollectiveController

from ernie_gram.distributed.watch import Rank, watch
from ernie_gram.paddle_private import ENVIRONMENT_OF_RANK, process_of
from ernie_gram.run.termination import REPEAT_SECONDS
from reader.system.console import write_or_drop


class WatchedController(CollectiveController):
    """Starts the ranks of this machine as Paddle does, and watches them until all have ended.

    It differs from Paddle's in four ways: a rank that dies or hangs ends the job, with its name and the reason on the
    console; a signal reaches each rank once, which is given the time that it needs to save; there may be more ranks
    than GPUs, for a job on CPUs; and the environment, which may have secrets, is in no file that others can read.

    Attributes:
        status: the exit status of the job.
    """

    def __init__(self, ctx: Any) -> None:
        self.status, self._signals, self._last_signal = 1, list[int](), 0.0
        self._log_starts: list[int] = []
        # Paddle would index beyond the list of GPUs. The ranks of other jobs refuse to start (see device.py).
        if len(ctx.node.device.labels) < int(ctx.args.nproc_per_node):
            ctx.node.device.labels = []
        super().__init__(ctx)

    def add_container(self, container: Any = None, envs: dict[str, str] | None = None, **options: Any) -> None:
        """Add a rank. Paddle writes its environment into a file, for the rank to read."""
        path = Path(self.ctx.args.log_dir, ENVIRONMENT_OF_RANK.format((envs or {}).get("PADDLE_TRAINER_ID", "init")))
        path.unlink(missing_ok=True)
        path.touch(0o600)
        super().add_container(container, envs=envs, **options)

    def save_pod_env(self) -> None:
        """Write no environment into the folder of logs."""

    def save_pod_log(self, info: object) -> None:
        """Write no environment, as `save_pod_env`."""

    def deploy_pod(self) -> None:
        """Start the ranks. There are none if a signal has ended the wait for other machines; then exit."""
        if not self.pod.containers:
            sys.exit(128 + self._signals[0])
        logs = [Path(container.outfile) for container in self.pod.containers]
        self._log_starts = [log.stat().st_size if log.is_file() else 0 for log in logs]
        super().deploy_pod()

    def signal_handler(self, number: int, frame: Any) -> None:
        """Note the signal for `watch`, or end the wait for other machines."""
        # See REPEAT_SECONDS.
        if not self._signals or time.monotonic() - self._last_signal > REPEAT_SECONDS:
            self._signals.append(signal.SIGTERM if number == signal.SIGABRT else number)
            self._last_signal = time.monotonic()
        self.ctx.status.done()

    def watch(self) -> bool:
        """Watch the ranks until all have ended."""
        ranks = [
            Rank(int(container.env["PADDLE_TRAINER_ID"]), process_of(container), Path(container.outfile), start)
            for container, start in zip(self.pod.containers, self._log_starts, strict=True)
        ]
        try:
            self.status = watch(ranks, self._signals, self._show)
        finally:
            for rank in ranks:
                rank.send(signal.SIGKILL)
        return True

    def _show(self) -> None:
        """Print what the first rank of this machine has printed since the last call."""
        while self.pod.containers[0].logs():
            pass
        write_or_drop(sys.stdout)


def launch_watched() -> int:
    """Start the ranks that `sys.argv` describes by options of Paddle's launcher; return the status of the job."""
    controller = WatchedController(Context())
    try:
        controller.run()
    finally:
        # The thread of the store would keep this process alive for ever.
        controller.master.stop()
    return controller.status
