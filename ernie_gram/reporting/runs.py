"""Read the settings and records of runs for a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from ernie_gram.config.loading import flatten
from ernie_gram.run.run_folder import CONFIG, HELD_OUT, RESULT
from ernie_gram.run.run_log import LOG, STARTS, Record, is_record, read_json_lines
from reader.errors import InputError
from reader.system.atomic_files import sha256_of
from reader.system.untrusted_text import read_json, read_yaml
from reader.tokenization.vocabulary_file import vocabulary_in

# JSON has larger whole numbers, which are no floats.
LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """The folder of a run.

    Attributes:
        name: for the reader, different for each run of a report.
        settings: flat `section.key: value`.
        records: of the log, with those of their values that are numbers.
        result: of result.json; empty for pre-training, and until a fine-tuning has ended.
        held_out: the description of the held-out corpus; empty without one.
        starts: see run_log.record_start; empty for a run of an earlier version.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    records: list[Record]
    result: dict[str, Any]
    held_out: dict[str, Any]
    starts: Sequence[dict[str, Any]]

    @property
    def task(self) -> str:
        """The name of the task of a fine-tuning; "" for pre-training."""
        return str(self.settings.get("task") or "")

    @property
    def step(self) -> int:
        """The step of the newest record."""
        return max(record["step"] for record in self.records)

    @property
    def chosen(self) -> Any:
        """The step of the model that a fine-tuning has chosen; None until it has ended, and for pre-training."""
        return inner(self.result, "steps").get("chosen")

    @property
    def evaluations(self) -> list[Record]:
        """The records of evaluations."""
        return [record for record in self.records if record["kind"] == "eval"]

    def values(self, kind: str, name: str) -> list[tuple[int, float]]:
        """Return the steps and the values of one quantity, oldest first."""
        return [(record["step"], record[name]) for record in self.records if record["kind"] == kind and name in record]


def explicit_first(runs: Sequence[ReportedRun]) -> ReportedRun | None:
    """Return the first run with n-grams, because the corpora of others may have no lexicon; or else the first run."""
    return max(runs, key=lambda run: run.settings.get("objective.masking") == "explicit", default=None)


def names_in(runs: Sequence[ReportedRun], kind: str) -> list[str]:
    """Return the names of the quantities in the records of a kind."""
    found = dict.fromkeys(name for run in runs for each in run.records if each["kind"] == kind for name in each)
    return [name for name in found if name not in ("kind", "step")]


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number that fits into a float."""
    return isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)


def inner(found: Any, *keys: str) -> dict[str, Any]:
    """Return the object at a path of keys in a JSON value; an empty one if there is none."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one without the file."""
    return read_json(path) if path.is_file() else {}


def run_folders(path: Path) -> list[Path]:
    """Return a run's folder, or the folders of the runs of an experiment; raises InputError for any other folder."""
    folders = [path, *sorted(path.iterdir())] if path.is_dir() else []
    found = [folder for folder in folders if (folder / LOG).is_file() and (folder / CONFIG).is_file()]
    if not found:
        raise InputError(f"{path}: not the folder of a run ({LOG}, {CONFIG}), nor one with the runs of an experiment")
    return found[:1] if path in found else found


def read_runs(folders: Sequence[Path], notes: list[str]) -> list[ReportedRun]:
    """Return the runs of some folders; adds notes on what is left out. Raises InputError for a damaged file."""
    folders = list({folder.resolve(): folder for folder in folders}.values())
    names = [folder.resolve().name for folder in folders]
    runs = []
    for folder, name in zip(folders, names, strict=True):
        run = ReportedRun(
            name=name if names.count(name) == 1 else str(folder),
            folder=folder,
            settings=flatten(read_yaml(folder / CONFIG)),
            records=[
                {key: value for key, value in each.items() if is_number(value) or key == "kind"}
                for each in read_json_lines(folder / LOG)
                if is_record(each) and is_number(each["step"])
            ],
            result=read_object(folder / RESULT),
            held_out=read_object(folder / HELD_OUT),
            starts=read_json_lines(folder / STARTS),
        )
        if not run.evaluations:
            notes.append(f"{folder}: {'no evaluations in its log' if run.records else 'no records yet; left out'}")
        runs += [run] if run.records else []
    return runs


def comparability(runs: Sequence[ReportedRun]) -> list[str]:
    """Return a note for each reason why the perplexities of pre-training runs do not compare, settings apart."""
    pretrained = [run for run in runs if not run.task]
    values: dict[str, list[Any]] = {}
    values["the vocabulary"] = [sha256_of(file) for run in pretrained if (file := vocabulary_in(run.folder))]
    for key in ("text", "lexicon"):
        values[f"the {key} of the held-out corpora"] = [run.held_out.get(key) for run in pretrained if run.held_out]
    return [f"perplexities do not compare: {what} differs" for what, found in values.items() if len({*found}) > 1]
