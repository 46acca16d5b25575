"""Write checkpoints in a thread while training goes on. A full disk does not stop training."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from ernie_gram.run import checkpoint
from ernie_gram.run.checkpoint import Arrays, State
from ernie_gram.run.termination import beat
from reader.errors import SystemRefusedError, print_warning

Write = Callable[[], None]


class BackgroundSaver:
    """Writes checkpoints and the best model of a run, one at a time; used by rank 0.

    If the system refuses a write, for example because the disk is full, a warning is printed, and the next checkpoint
    is a new attempt. A best model that could not be written is kept in memory and written with the next checkpoint.
    Other errors (parameters that are not finite, a damaged corpus) are raised by the next call.
    """

    def __init__(self, folder: Path, keep: int, check: Callable[[], None] | None, say: Callable[[str], None]) -> None:
        """Write to `folder`, which keeps the `keep` newest checkpoints.

        Args:
            check: called before each checkpoint is written; it raises InputError if there must be none.
            say: called with a line for the console, in the thread.
        """
        self._folder, self._keep, self._check, self._say = folder, keep, check, say
        # Python waits for its thread at the end of the process, whatever ends the training.
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Future[None] | None = None
        # What is to be written, by kind: its name, and how. "best" is tried before "newest".
        self._waiting: dict[str, tuple[str, Write]] = {}
        self._refused: dict[str, Exception] = {}

    def save(self, state: State, model: Arrays, optimizer: Arrays) -> None:
        """Start to write a checkpoint. The arrays must not change any more; waits for the write before this one."""

        def write() -> None:
            if self._check:
                self._check()
            self._say(f"saved {checkpoint.save(self._folder, state, model, optimizer, self._keep)}")

        self._start("newest", f"step_{state.step}", write)

    def save_best(self, state: State, model: Arrays) -> None:
        """Start to write the best model, as `save`."""
        self._start("best", checkpoint.BEST, lambda: checkpoint.save_best(self._folder, state, model))

    def join(self) -> None:
        """Wait for the write in progress; raises nothing."""
        if self._writing:
            wait([self._writing])

    def wait(self) -> None:
        """Wait for the write in progress. Raises its error, unless the system refused the write."""
        writing, self._writing = self._writing, None
        if writing:
            writing.result()

    def finish(self) -> None:
        """Wait for the write in progress. Raises SystemRefusedError if the newest state could not be written."""
        self.wait()
        self._write()
        for error in self._refused.values():
            raise SystemRefusedError(f"{error}; make room, and run the same command again to resume") from error

    def _start(self, kind: str, name: str, write: Write) -> None:
        """Start to write what is waiting, with a new one of a kind."""
        self.wait()
        self._waiting[kind] = name, write
        self._refused.pop(kind, None)
        self._writing = self._thread.submit(self._write)

    def _write(self) -> None:
        for kind, (name, write) in sorted(self._waiting.items()):
            try:
                write()
                self._refused.pop(kind, None)
            except (SystemRefusedError, OSError) as error:
                # The same refusal of a best model is reported once.
                if str(error) != str(self._refused.get(kind)):
                    print_warning(f"{name} is not saved: {error}; training goes on")
                self._refused[kind] = error
            if kind == "newest" or kind not in self._refused:
                del self._waiting[kind]
            beat()
