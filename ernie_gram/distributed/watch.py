"""Watch the processes ("ranks") that a launcher has started on this machine, and end all of them if one fails."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ernie_gram.run.heartbeat import STACK_SIGNAL, read_beat
from ernie_gram.run.lost_peer import LOST_PEER_STATUS
from ernie_gram.run.termination import REPEAT_SECONDS, SIGNALS
from reader.errors import last_error_in

POLL_SECONDS = 0.5
# From the first failure to the report: other ranks fail because of it, and may be seen earlier.
SETTLE_SECONDS = 2.0
# From SIGTERM to SIGKILL for the ranks that are left after a failure: time to finish a checkpoint.
KILL_SECONDS = 20.0
# From a second signal to the launcher to SIGKILL.
SECOND_SIGNAL_SECONDS = 3.0
# The exit status of a job with a rank that hangs; the same as that of `timeout`.
HANG_STATUS = 124
# The statuses of ranks that a signal has asked to end; negative if the rank had not yet set its own handlers.
ENDED_BY_SIGNAL = tuple(status for number in SIGNALS for status in (128 + number, -number))
REASONS = {
    signal.SIGKILL: "perhaps by the system, because memory ran out",
    signal.SIGBUS: "a file that it was reading became shorter, or a disk or memory is full",
}
_LOG_BYTES = 1 << 16


@dataclass
class Rank:
    """A process of the job.

    Attributes:
        number: its rank.
        process: of this machine; it leads a process group.
        log: its output; log_start: length of the output of earlier jobs in it.
        heartbeat: see run/heartbeat.py.
        silent_seconds: time without progress, as far as this watcher was running itself.
    """

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int
    heartbeat: Path
    silent_seconds: float = 0.0
    _last_beat: float = field(default=0.0, repr=False)

    @property
    def status(self) -> int | None:
        """Exit status, -N if signal N has killed it, None while it runs."""
        return self.process.poll()

    def send(self, number: int) -> None:
        """Send a signal to the process and its children, unless it has ended."""
        with suppress(ProcessLookupError):
            if self.status is None:
                os.killpg(self.process.pid, number)

    def is_hanging(self, seconds: float) -> bool:
        """Whether it has made no progress for as long as it allows; `seconds` have passed since the last call."""
        beat = read_beat(self.heartbeat)
        if beat is None or beat.limit == 0 or self.status is not None or beat.seconds != self._last_beat:
            self.silent_seconds = 0.0
            self._last_beat = beat.seconds if beat else 0.0
            return False
        # At most twice the poll: if the whole job was stopped for a while, that time does not count.
        self.silent_seconds += min(seconds, 2 * POLL_SECONDS)
        return self.silent_seconds >= beat.limit

    def last_line(self) -> str:
        """Return the last error that it has printed, or else its last line, or ""."""
        with suppress(OSError), self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.log_start, size - _LOG_BYTES))
            return last_error_in(file.read().decode(errors="replace"))
        return ""

    def failure(self) -> str:
        """Return how it ended, with its name and the reason, for the console."""
        status, name = self.status or 0, f"rank {self.number} (process {self.process.pid})"
        if status < 0:
            number = signal.Signals(-status)
            reason = f" ({REASONS[number]})" if number in REASONS else ""
            return f"{name} was killed by {number.name}{reason}; its output: {self.log}"
        return f"{name} ended with status {status}: {self.last_line() or 'no output'} ({self.log})"


def watch(
    ranks: Sequence[Rank],
    signals: list[int],
    show: Callable[[], None],
    say: Callable[[str], None],
    elsewhere: Callable[[], str] = str,
) -> int:
    """Wait until all ranks have ended; return the exit status of the job.

    If a rank fails or hangs, the others get SIGTERM, and SIGKILL KILL_SECONDS later.

    Args:
        ranks: those of this machine.
        signals: those that the launcher has received, appended by its handler; they are passed on to the ranks.
        show: called often, to print the ranks' output.
        say: prints a line.
        elsewhere: returns why other machines end the job, or "".
    """
    then = time.monotonic()
    first_signal_at = failed_at = kill_at = float("inf")
    seen = 0
    while True:
        show()
        now = time.monotonic()
        statuses = [rank.status for rank in ranks]
        if all(status is not None for status in statuses):
            break
        if len(signals) > seen:
            seen = len(signals)
            is_second = now - first_signal_at > REPEAT_SECONDS
            if first_signal_at == float("inf") or is_second:
                for rank in ranks:
                    rank.send(signals[-1])
            first_signal_at = min(first_signal_at, now)
            kill_at = now + SECOND_SIGNAL_SECONDS if is_second else kill_at
        if any(rank.is_hanging(now - then) for rank in ranks):
            say(f"error: {_end_hanging(ranks)}")
            return HANG_STATUS
        failed = [status for status in statuses if status and not (status in ENDED_BY_SIGNAL and signals)]
        if failed and failed_at == float("inf"):
            # If a signal has ended ranks, all ranks end at the same step, so the others follow.
            follow = all(status in ENDED_BY_SIGNAL for status in failed)
            failed_at = now + (KILL_SECONDS if follow else SETTLE_SECONDS)
        if reason := elsewhere():
            say(f"error: {reason}")
            _end(ranks, show)
            return LOST_PEER_STATUS
        if now >= failed_at:
            cause = _cause(ranks)
            say(f"error: {cause.failure()}")
            _end(ranks, show)
            return _status(cause)
        if now >= kill_at:
            _kill(ranks)
            show()
            return 128 + signals[-1]
        then = now
        time.sleep(POLL_SECONDS)
    show()
    cause = _cause(ranks)
    if cause.status and not (signals and cause.status in ENDED_BY_SIGNAL):
        say(f"error: {cause.failure()}")
    return _status(cause)


def _cause(ranks: Sequence[Rank]) -> Rank:
    """Return the rank that failed first, as far as its status tells, or else any rank."""

    def order(rank: Rank) -> int:
        status = rank.status
        if status is None or status == 0:
            return 4
        if status == LOST_PEER_STATUS:
            return 3
        if status in ENDED_BY_SIGNAL:
            return 2
        return int(status > 0)

    return min(ranks, key=order)


def _status(rank: Rank) -> int:
    status = rank.status or 0
    return 128 - status if status < 0 else status


def _end_hanging(ranks: Sequence[Rank]) -> str:
    """Print the stacks of all ranks into their logs, and end them; return which rank hangs, and what each one did."""
    message = _hanging(ranks)
    for rank in ranks:
        if rank.heartbeat.exists():
            rank.send(STACK_SIGNAL)
    time.sleep(1)
    _kill(ranks)
    return message


def _hanging(ranks: Sequence[Rank]) -> str:
    found = ((rank, read_beat(rank.heartbeat)) for rank in ranks if rank.status is None)
    beats = {rank.number: beat for rank, beat in found if beat and beat.limit}
    stopped = [rank.number for rank in ranks if _is_stopped(rank)]
    # The others soon wait for the rank that hangs, so it is the one whose last progress is the oldest.
    first = stopped[0] if stopped else min(beats, key=lambda number: beats[number].seconds)
    did = [
        f"rank {number} {beat.activity}{' (stopped by a signal)' * (number in stopped)}"
        for number, beat in beats.items()
    ]
    limit = min(beat.limit for beat in beats.values())
    return (
        f"rank {first} hangs: no progress for {limit} s (trainer.hang_seconds): {', '.join(did)}; "
        f"the stacks of all ranks are in {ranks[0].log.parent}"
    )


def _is_stopped(rank: Rank) -> bool:
    """Whether a process was stopped by SIGSTOP, or by a debugger."""
    try:
        stat = Path(f"/proc/{rank.process.pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")


def _end(ranks: Sequence[Rank], show: Callable[[], None]) -> None:
    """End all ranks: SIGTERM, and SIGKILL KILL_SECONDS later."""
    for rank in ranks:
        rank.send(signal.SIGTERM)
    until = time.monotonic() + KILL_SECONDS
    while any(rank.status is None for rank in ranks) and time.monotonic() < until:
        show()
        time.sleep(0.1)
    _kill(ranks)
    show()


def _kill(ranks: Sequence[Rank]) -> None:
    for rank in ranks:
        rank.send(signal.SIGKILL)
    for rank in ranks:
        rank.process.wait()
