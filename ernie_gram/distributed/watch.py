"""Start the processes ("ranks") of this machine, watch them, and end all of them if one fails.

A rank that hangs fails by itself, see `beat`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ernie_gram.run.termination import HANG_LINE, LOST_PEER_STATUS, SIGNALS
from reader.errors import last_error_in, print_error

POLL_SECONDS = 0.5
# From the first failure to the report: other ranks fail because of it, and may be seen earlier.
SETTLE_SECONDS = 2.0
# From SIGTERM to SIGKILL for the ranks that are left after a failure: time to finish a checkpoint.
KILL_SECONDS = 20.0
# From a second signal to the launcher to SIGKILL.
SECOND_SIGNAL_SECONDS = 3.0
# The statuses of ranks that a signal has asked to end, with which all others end after the same step; negative if the
# rank had not yet set its own handlers.
SAVED = {128 + number for number in SIGNALS}
ENDED_BY_SIGNAL = SAVED | {-number for number in SIGNALS}
REASONS = {
    signal.SIGKILL: "perhaps by the system, because memory ran out",
    signal.SIGABRT: "an assertion failed; rank 0 needs the port of --master, which another program may have",
    signal.SIGBUS: "a file that it was reading became shorter, or a disk or memory is full",
}


@dataclass(eq=False)
class Rank:
    """A process of the job.

    Attributes:
        number: its rank.
        process: of this machine; it leads a process group.
        log: its output; log_start: length of the output of earlier jobs in it.
    """

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int

    @property
    def status(self) -> int | None:
        """Exit status, -N if signal N has killed it, None while it runs."""
        return self.process.poll()

    def send(self, number: int) -> None:
        """Send a signal to the process and its children, unless it has ended."""
        with suppress(ProcessLookupError):
            if self.status is None:
                os.killpg(self.process.pid, number)

    def doubt(self) -> tuple[bool, ...]:
        """Return what speaks against it as the one that failed first: the least is the cause of a failed job."""
        status = self.status or 0
        return status == 0, status == LOST_PEER_STATUS, status in ENDED_BY_SIGNAL, status > 0

    def failure(self) -> str:
        """Return how it ended, with its name and the reason, for the console."""
        status, name = self.status or 0, f"rank {self.number} (process {self.process.pid})"
        if status < 0:
            number = signal.Signals(-status)
            reason = f" ({REASONS[number]})" if number in REASONS else ""
            return f"{name} was killed by {number.name}{reason}; its output: {self.log}"
        output = ""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(self.log_start)
            output = file.read().decode(errors="replace")
        if HANG_LINE.search(output):
            return f"{name} made no progress for trainer.hang_seconds; its stacks: {self.log}"
        return f"{name} ended with status {status}: {last_error_in(output) or 'no output'} ({self.log})"


def start(number: int, command: list[str], environment: Mapping[str, str], log: Path) -> Rank:
    """Start a rank, whose output is appended to its log."""
    with log.open("ab") as file:
        before = file.tell()
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
    return Rank(number, process, log, before)


def watch(ranks: Sequence[Rank], signals: list[int], show: Callable[[], None]) -> int:
    """Wait until all ranks have ended; return the exit status of the job.

    If a rank fails, a line says why, and the others get SIGTERM, and SIGKILL KILL_SECONDS later.

    Args:
        ranks: those of this machine.
        signals: those that the launcher has received, appended by its handler; they are passed on to the ranks.
        show: called often, to print the ranks' output.
    """
    seen, report_at = 0, inf
    while any(rank.status is None for rank in ranks):
        show()
        now = time.monotonic()
        if len(signals) > seen:
            seen = len(signals)
            for rank in ranks:
                rank.send(signals[-1])
            if seen > 1:
                return _end(ranks, 128 + signals[-1], SECOND_SIGNAL_SECONDS, show)
        expected = {None, 0} | (ENDED_BY_SIGNAL if signals else SAVED)
        if any(rank.status not in expected for rank in ranks):
            report_at = min(report_at, now + SETTLE_SECONDS)
        if now >= report_at:
            break
        time.sleep(POLL_SECONDS)
    show()
    cause = min(ranks, key=Rank.doubt)
    status = cause.status or 0
    if status and not (signals and status in ENDED_BY_SIGNAL):
        # If an exchange has failed although no other rank has ended, one of them was stopped, or the network fails.
        left = [f"; rank {rank.number} is running" for rank in ranks if rank.status is None]
        print_error("".join([cause.failure(), *(left if status == LOST_PEER_STATUS else [])]))
    return _end(ranks, 128 - status if status < 0 else status, KILL_SECONDS, show)


def _end(ranks: Sequence[Rank], status: int, seconds: float, show: Callable[[], None]) -> int:
    """End all ranks: SIGTERM, and SIGKILL some seconds later; return the status of the job."""
    until = time.monotonic() + seconds
    for rank in ranks:
        rank.send(signal.SIGTERM)
    while any(rank.status is None for rank in ranks) and time.monotonic() < until:
        show()
        time.sleep(0.1)
    for rank in ranks:
        rank.send(signal.SIGKILL)
        rank.process.wait()
    show()
    return status
