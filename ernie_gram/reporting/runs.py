"""Read the settings and records of runs for a report, and group runs that differ only in the seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeGuard

from ernie_gram.config.loading import flatten
from ernie_gram.run.results_file import RESULTS, read_results
from ernie_gram.run.run_folder import CONFIG, HELD_OUT, RESULT
from ernie_gram.run.run_log import LOG, STARTS, Record, is_record, read_json_lines
from reader.errors import InputError
from reader.system.atomic_files import sha256_of
from reader.system.untrusted_text import read_json, read_yaml
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.vocabulary_file import vocabulary_in

# Settings in which the runs of a group may differ.
OWN = ("seed", "paths.output")


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """The folder of a run.

    Attributes:
        name: for the reader, different for each run of a report.
        folder: of the run.
        settings: flat `section.key: value`.
        records: of the log, with those of their values that are numbers.
        result: of result.json; empty for pre-training, and until a fine-tuning has ended.
        held_out: the description of the held-out corpus; empty without one.
        vocabulary: SHA-256 of the vocabulary's file, "" without one.
        starts: see run_log.record_start; empty for a run of an earlier version.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    records: list[Record]
    result: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=dict)
    vocabulary: str = ""
    starts: Sequence[dict[str, Any]] = ()

    @property
    def task(self) -> str:
        """The name of the task of a fine-tuning; "" for pre-training."""
        return str(self.settings.get("task") or "")

    @property
    def evaluations(self) -> list[Record]:
        """The records of evaluations."""
        return [record for record in self.records if record["kind"] == "eval"]

    @property
    def step(self) -> int:
        """The step of the newest record, 0 without any."""
        return max((record["step"] for record in self.records), default=0)

    @property
    def max_steps(self) -> int | None:
        """The number of steps of the whole training, None if the folder does not say it."""
        total = inner(self.result, "steps").get("total") if self.task else self.settings.get("trainer.max_steps")
        return total if isinstance(total, int) else None

    def values(self, kind: str, name: str) -> list[tuple[int, float]]:
        """Return the steps and the values of one quantity, oldest first."""
        return [(record["step"], record[name]) for record in self.records if record["kind"] == kind and name in record]

    def names(self, kind: str) -> list[str]:
        """Return the names of the quantities in the records of a kind."""
        found = (name for record in self.records if record["kind"] == kind for name in record)
        return [name for name in dict.fromkeys(found) if name not in ("kind", "step")]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ only in the seed, in the order in which they were given."""

    label: str
    runs: Sequence[ReportedRun]


def is_run(folder: Path) -> bool:
    """Return whether a folder is that of a run."""
    return (folder / LOG).is_file() and (folder / CONFIG).is_file()


def run_folders(path: Path) -> list[Path]:
    """Return a run's folder, or the folders of the runs of an experiment or study: those with results first.

    Raises InputError for any other folder.
    """
    if is_run(path):
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give the folders of runs or experiments")
    # Names that would lead to another folder are ignored.
    names = [name for name in read_results(path)[0] if Path(name).name == name]
    others = sorted(each.name for each in path.iterdir() if each.name not in names)
    found = [path / name for name in (*names, *others) if is_run(path / name)]
    if not found and not (path / RESULTS).is_file():
        raise InputError(f"{path}: not the folder of a run ({LOG}, {CONFIG}), nor one of an experiment ({RESULTS})")
    return found


def left_out(path: Path, lines: Sequence[int]) -> str:
    """Return the note on lines of a file, at least one, that are not JSON objects."""
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{path}: left out, because incomplete: line {lines[0]}{more}"


def read_runs(folders: Sequence[Path]) -> tuple[list[ReportedRun], list[str]]:
    """Return the runs of some folders, and notes: on lines and runs that are left out, and on runs without evaluations.

    Raises InputError for a damaged file.
    """
    notes: list[str] = []
    names = _names([folder.resolve() for folder in folders])
    runs = [_read_run(folder, name, notes) for folder, name in zip(folders, names, strict=True)]
    return [run for run in runs if run], notes


def _read_run(folder: Path, name: str, notes: list[str]) -> ReportedRun | None:
    found, others = read_json_lines(folder / LOG)
    if others:
        notes.append(left_out(folder / LOG, others))
    settings = flatten(read_yaml(folder / CONFIG))
    records = [_numbers(record) for record in found if is_record(record) and is_number(record["step"])]
    if not records:
        notes.append(f"{folder}: no records yet; left out")
        return None
    run = ReportedRun(
        name,
        folder,
        settings,
        records,
        _read_object(folder / RESULT),
        _read_object(folder / HELD_OUT),
        _digest_of_vocabulary(folder),
        read_json_lines(folder / STARTS)[0],
    )
    if not run.evaluations:
        notes.append(f"{folder}: no evaluations in its log, so only its training is shown")
    return run


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, an empty one if there is no file; raises InputError if it is damaged."""
    return read_json(path) if path.is_file() else {}


def inner(tree: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return an object inside of others, an empty one if a file does not have it."""
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, dict) else {}


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a JSON value is a number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 2**1000


def _numbers(record: Record) -> Record:
    numbers = {key: value for key, value in record.items() if is_number(value)}
    return {**numbers, "kind": str(record["kind"]), "step": record["step"]}


def _digest_of_vocabulary(folder: Path) -> str:
    file = vocabulary_in(folder)
    return sha256_of(file) if file else ""


def _names(folders: Sequence[Path]) -> list[str]:
    """Return a different name for each folder: the shortest ends of their paths that all differ."""
    for parts in range(1, max((len(folder.parts) for folder in folders), default=1) + 1):
        names = ["/".join(folder.parts[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def grouped(runs: Sequence[ReportedRun]) -> list[Group]:
    """Return runs with the same settings but different seeds as groups, in the order of their first runs."""
    groups: dict[tuple[str, int], list[ReportedRun]] = {}
    earlier = Counter[str]()
    for run in runs:
        all_but_seed = {key: value for key, value in run.settings.items() if key not in OWN}
        shared = json.dumps(all_but_seed, sort_keys=True, default=str)
        # A second run with the same seed is a repetition, and does not widen the range over seeds.
        with_seed = f"{run.settings.get('seed')} {shared}"
        groups.setdefault((shared, earlier[with_seed]), []).append(run)
        earlier[with_seed] += 1
    labels = [_label([run.name for run in members]) for members in groups.values()]
    return [
        Group(label if labels.count(label) == 1 else members[0].name, members)
        for label, members in zip(labels, groups.values(), strict=True)
    ]


def runs_of(groups: Sequence[Group]) -> list[ReportedRun]:
    """Return the runs of some groups, in order."""
    return [run for group in groups for run in group.runs]


def coloured(groups: Sequence[Group]) -> list[Group]:
    """Return the groups that have a colour each in charts; a single group is divided into its runs."""
    return list(groups) if len(groups) > 1 else [Group(run.name, [run]) for run in runs_of(groups)]


def _label(names: Sequence[str]) -> str:
    """Return what the names of the runs of a group have in common, without the seed."""
    if len(names) == 1:
        return names[0]
    equal = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    start = "".join(letters[0] for letters in equal).rstrip("0123456789").rstrip(" _-,=.:/")
    return start.removesuffix("seed").rstrip(" _-,=.:/") or f"{names[0]} …"


def check_vocabularies(runs: Sequence[ReportedRun]) -> None:
    """Raise InputError if pre-trained runs have different vocabularies: their perplexities have different classes."""
    sets = _pretrained_by([(run, run.vocabulary) for run in runs if run.vocabulary])
    if len(sets) > 1:
        folders = " and ".join(", ".join(str(run.folder) for run in members) for members in sets)
        raise InputError(
            f"{folders}: have different vocabularies, so their perplexities cannot be compared; make a report of each"
        )


def comparability(runs: Sequence[ReportedRun]) -> list[str]:
    """Return a note for each reason why the perplexities of pre-training runs cannot be compared."""
    notes = []
    for key, what in (("text", "different held-out texts"), ("lexicon", "held-out n-grams of different lexicons")):
        sets = _pretrained_by([(run, str(run.held_out.get(key))) for run in runs if run.held_out])
        if len(sets) > 1:
            groups = "; ".join(", ".join(run.name for run in members) for members in sets)
            notes.append(f"{what}, so perplexities of these sets do not compare: {groups}")
    return notes


def _pretrained_by(runs: Sequence[tuple[ReportedRun, str]]) -> list[list[ReportedRun]]:
    """Return the pre-training runs among pairs (run, key), in one list for each key."""
    sets: dict[str, list[ReportedRun]] = {}
    for run, key in runs:
        if not run.task:
            sets.setdefault(key, []).append(run)
    return list(sets.values())


def corpus_info(folder: object) -> dict[str, Any]:
    """Return the description of a corpus; empty if the corpus no longer exists."""
    return _read_object(Path(str(folder)) / CORPUS_INFO) if folder else {}
