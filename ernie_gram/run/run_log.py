"""The log of a run: lines on the console, records in log.jsonl, curves for VisualDL."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from reader import __version__
from reader.errors import print_warning, write_or_drop
from reader.system.atomic_files import write_atomically
from reader.system.installation import commit
from reader.system.processes import available_cores
from reader.system.untrusted_text import json_value

# STARTS has an object for each start of the run: where its results come from.
LOG, STARTS = "log.jsonl", "starts.jsonl"
# Of a sweep: a record for each finished run.
RESULTS = "results.jsonl"
# Names of the meters in training records, see training/meters.py.
RATE, UTILISATION, WAIT, CPU = "sequences_per_second", "mfu", "feed_wait_share", "cpu_seconds_per_step"
TOKENS, SLOTS, MEMORY, ALLOCATED = "tokens_per_second", "slots_per_second", "peak_memory_gb", "peak_allocated_gb"
# In training records: the number of steps whose mean the loss and its terms are. Other values are of the last step.
LOSS_STEPS = "loss_steps"
# Lines that a full disk has refused are kept in memory, as many as this.
BUFFER_BYTES = 1 << 24
METERS = (RATE, TOKENS, SLOTS, UTILISATION, WAIT, CPU, MEMORY, ALLOCATED)

Record = dict[str, Any]


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a file of JSON lines; none without a file.

    Other lines are skipped: the last one may be cut short because the process was killed.
    """
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []:
        with suppress(ValueError):
            found.append(json_value(line))
    return [value for value in found if isinstance(value, dict)]


def read_log(output: Path) -> list[Record]:
    """Return the records of a run, oldest first; other lines are skipped."""
    return [record for record in read_json_lines(output / LOG) if is_record(record)]


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records by the name of the run, the last one of each."""
    found = read_json_lines(folder / RESULTS)
    return {str(record["run"]): record for record in found if isinstance(record.get("result"), dict)}


def append_result(folder: Path, record: dict[str, Any]) -> None:
    """Append a record; half a line of a killed command, which may end within a character, is ended first."""
    path = folder / RESULTS
    before = path.read_bytes() if path.is_file() else b""
    beginning = "" if not before or before.endswith(b"\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{beginning}{json.dumps(record, ensure_ascii=False)}\n")


def is_record(value: dict[str, Any]) -> bool:
    """Return whether a JSON object is a record of a log."""
    return isinstance(value.get("step"), int) and "kind" in value


def last_evaluation(output: Path, max_step: int | None = None) -> Record | None:
    """Return the newest evaluation of a run, at or before `max_step` if it is given; None if there is none yet."""
    found = (record for record in reversed(read_log(output)) if record["kind"] == "eval")
    return next((record for record in found if max_step is None or record["step"] <= max_step), None)


def record_start(output: Path, step: int, paddle: str, device: str) -> None:
    """Append to STARTS when, where, by which versions and with which command a run is started, from a step on."""
    started = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "step": step,
        "command": f"{sys.argv[0]} {shlex.join(sys.argv[1:])}",
        "version": __version__,
        "commit": commit(),
        "paddle": paddle,
        "device": device,
        "processor": processor_name(read_cpuinfo()),
        "cores": available_cores(),
    }
    with (output / STARTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(started) + "\n")


def _visualdl_writer(output: Path) -> Any:
    """Return VisualDL's writer, or None, with one line on standard error, if it cannot write its files."""
    try:
        # Imported here, because the import creates a folder in the home directory, which may fail.
        from visualdl import LogWriter

        # Without a name, VisualDL takes the folder's path. Two runs with one name would lose the curves of one.
        return LogWriter(logdir=str(output / "visualdl"))
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print_warning(f"no curves for VisualDL, which cannot write its files: {reason}")
        return None


class RunLog:
    """The log of one process. Only rank 0 writes.

    Records have a `kind` ("train" or "eval") and a `step`. When a run resumes, records of steps after its checkpoint
    are removed from log.jsonl. The others are written again for VisualDL, which reads only the newest file of a folder.
    """

    def __init__(self, output: Path, writes: bool, visualdl: bool, start: int, max_steps: int) -> None:
        """Open the log; `start` is the step of the checkpoint that training continues from, or 0."""
        self.writes = writes
        self.start, self.max_steps = start, max_steps
        self._began = time.monotonic()
        self.evaluated: set[int] = set()
        if not writes:
            return
        kept = [record for record in read_log(output) if record["step"] <= start and start > 0]
        self.evaluated = {record["step"] for record in kept if record["kind"] == "eval"}
        write_atomically(output / LOG, "".join(json.dumps(record) + "\n" for record in kept))
        self._path = output / LOG
        # The buffer keeps what a full disk refuses.
        self._file = self._path.open("ab", buffering=BUFFER_BYTES)
        self._writer = _visualdl_writer(output) if visualdl else None
        for record in kept:
            self._draw(**record)

    def say(self, text: str) -> None:
        """Print a line on the console."""
        if self.writes:
            write_or_drop(sys.stdout, f"{text}\n")

    def record(self, kind: str, step: int, values: dict[str, float], unshown: Collection[str] = ()) -> None:
        """Write one record, and print it without the values named in `unshown`."""
        if not self.writes:
            return
        with self._kept_if_refused():
            self._file.write(json.dumps({"kind": kind, "step": step, **values}).encode() + b"\n")
            self._file.flush()
        self._draw(kind, step, **values)
        shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items() if name not in unshown)
        left = f"  left {self._time_left(step)}" if kind == "train" else ""
        self.say(f"{kind:<5} step {step:>{len(str(self.max_steps))}}/{self.max_steps}  {shown}{left}")

    @contextmanager
    def _kept_if_refused(self) -> Iterator[None]:
        """Print a warning if the system refuses a write; the file keeps the lines, and writes them with the next."""
        try:
            yield
        except OSError as error:
            print_warning(f"{self._path}: {error.strerror}; its lines are kept in memory until there is room")

    def _draw(self, kind: str, step: int, **values: float) -> None:
        """Add a record to the curves for VisualDL, if there are any."""
        if self._writer:
            try:
                for name, value in values.items():
                    self._writer.add_scalar(f"{kind}/{name}", value, step)
            except OSError as error:
                self._writer = None
                print_warning(f"no more curves for VisualDL: {error}")

    def _time_left(self, step: int) -> str:
        seconds = (time.monotonic() - self._began) / max(1, step - self.start) * (self.max_steps - step)
        minutes, seconds = divmod(round(seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"

    def close(self) -> None:
        """Close the files."""
        if self.writes:
            with self._kept_if_refused():
                self._file.close()
            if self._writer:
                self._writer.close()
