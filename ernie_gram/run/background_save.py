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
        self._best: Write | None = None
        self._refused: dict[str, Exception] = {}

    def save(self, state: State, model: Arrays, optimizer: Arrays) -> None:
        """Start to write a checkpoint. The arrays must not change any more; waits for the write before this one."""

        def write() -> None:
            if self._check:
                self._check()
            checkpoint.save(self._folder, state, model, optimizer, self._keep)

        self._start((f"step_{state.step}", write))

    def save_best(self, state: State, model: Arrays) -> None:
        """Start to write the best model, as `save`."""
        self.wait()
        self._refused.pop("best", None)
        self._best = lambda: checkpoint.save_best(self._folder, state, model)
        self._start()

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
        if self._best:
            self._start()
            self.wait()
        for error in self._refused.values():
            raise SystemRefusedError(f"{error}; make room, and run the same command again to resume") from error

    def _start(self, save: tuple[str, Write] | None = None) -> None:
        """Start to write the best model, if it is not yet written, and then `save`, a checkpoint's name and write."""
        self.wait()
        self._writing = self._thread.submit(self._write, save)

    def _write(self, save: tuple[str, Write] | None) -> None:
        if self._best and self._attempt("best", checkpoint.BEST, self._best):
            self._best = None
        if save and self._attempt("newest", *save):
            self._say(f"saved {self._folder / save[0]}")

    def _attempt(self, kind: str, name: str, write: Write) -> bool:
        """Write, and return False if the system refused it. A later success of the same kind clears the refusal."""
        try:
            write()
            self._refused.pop(kind, None)
        except (SystemRefusedError, OSError) as error:
            # The best model is tried again before each checkpoint; the same refusal is reported once.
            if str(error) != str(self._refused.get(kind)):
                print_warning(f"{name} is not saved: {error}; training goes on")
            self._refused[kind] = error
            return False
        finally:
            beat()
        return True
