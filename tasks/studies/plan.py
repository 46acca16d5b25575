"""The plan of a study: each pre-training, fine-tuning and count baseline, with a digest of all that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import as_argument, flatten
from ernie_gram.experiments.planned_run import FINETUNED, MODELS, PlannedRun, Result
from ernie_gram.formats.model import digest_of
from ernie_gram.formats.registry import read_model
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.planned_run import LAUNCHER as PRETRAINING_LAUNCHER
from ernie_gram.pretraining.planned_run import PretrainingRun, load_pretraining
from reader.system.atomic_files import sha256_of
from reader.system.installation import is_settings_file
from tasks.kinds.task import TRAIN
from tasks.reading.official_files import available_splits, file_digests, find_files
from tasks.registry.task_file import find_task
from tasks.studies.preparation import OPTIONS, Prepared
from tasks.studies.results_file import Record
from tasks.studies.study_file import Options, Variant
from tasks.sweeps.runs import NO_DEV_SPLIT, plan

Of = Mapping[str, str | int]
PRETRAINING, FINETUNING, CORPUS, COUNTS = "pre-training", "fine-tuning", "corpus", "counts"
# Settings of the trainer that can change a result; the others change only its cost.
TRAINER = ("max_steps", "eval_every", "eval_sequences", "eval_draws")


@dataclass(frozen=True, eq=False)
class Planned:
    """A planned result of a study.

    Attributes:
        name: the name of the run, unique in the study.
        kind: PRETRAINING, FINETUNING, CORPUS or COUNTS.
        of: the variant, seed, task or corpus to which it belongs.
        settings: the settings that can change the result and are not the defaults.
        data: digests of what it is made from.
        run: the training; for COUNTS, a pre-training on the counted corpus; None for CORPUS.
        model: the pre-training of a fine-tuned model; None if the model is given.
    """

    name: str
    kind: str
    of: Of
    settings: Mapping[str, Any]
    data: Mapping[str, str]
    run: PlannedRun | None = None
    model: Planned | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of settings and data."""
        return hashlib.sha256(json.dumps([self.settings, self.data], sort_keys=True).encode()).hexdigest()

    def record(self, result: Result) -> Record:
        """Return the record for the file of results; that of a pre-training has its evaluations as `curve`."""
        record: Record = {"run": self.name, "kind": self.kind, **self.of, "result": result, "digest": self.digest}
        if isinstance(self.run, PretrainingRun):
            record["curve"] = self.run.evaluations()
        return {**record, "settings": dict(self.settings), "data": dict(self.data)}


def check_record(where: Path, record: Record, planned: Planned) -> None:
    """Raise InputError if a record is of another text or of other settings than the planned run of the same name."""
    if record["digest"] == planned.digest:
        return
    pairs = ((record.get("data", {}), planned.data), (record.get("settings", {}), planned.settings))
    differences = [
        f"{key} {_shown(there.get(key))}, not {_shown(here.get(key))}"
        for there, here in pairs
        for key in sorted(there.keys() | here.keys())
        if there.get(key) != here.get(key)
    ]
    reason = f"has the result of {planned.name} with {'; '.join(differences[:4])}; give another --results"
    require(False, str(where), reason)


def check_texts(where: Path, records: Iterable[Record], prepared: Prepared) -> None:
    """Raise InputError if a recorded corpus of the study was made from another text than the given one."""
    study = prepared.study
    recorded = {
        study.corpora[record["corpus"]].text: record["data"]["text"]
        for record in records
        if record["kind"] == CORPUS and record.get("corpus") in study.corpora and "data" in record
    }
    for name, digest in recorded.items():
        reason = (
            f"has results of another text than {OPTIONS[name]} {' '.join(prepared.texts[name])}; give another --results"
        )
        require(prepared.digests.get(name, digest) == digest, str(where), reason)


def _shown(value: object) -> str:
    return value[:12] if isinstance(value, str) and len(value) == 64 else str(value)


def plan_study(prepared: Prepared, output: Path, data: Path | None) -> list[Planned]:
    """Return all planned results of a study, seed by seed; each pre-training is followed by its fine-tunings.

    Args:
        prepared: the prepared study; its corpora must exist.
        output: folder of the runs.
        data: folder with the official files of the tasks; None if the study has none.

    Raises InputError for unknown settings and tasks, and for corpora and files that are missing.
    """
    study = prepared.study
    found = [_corpus(prepared, name) for name in study.corpora]
    for seed in study.seeds:
        found += _counts(prepared, output, seed)
        for name, variant in study.variants.items():
            if variant.config is None and seed != study.seeds[0]:
                continue
            model = _pretraining(prepared, output, name, variant, seed) if variant.config else None
            found += [model] if model else []
            found += _finetunings(prepared, output, name, seed, model, data)
    return found


def _corpus(prepared: Prepared, name: str) -> Planned:
    info = prepared.info(name)
    data = {"text": info.text, "vocabulary": info.vocabulary, "lexicon": info.lexicon}
    return Planned(f"corpus {name}", CORPUS, {"corpus": name}, {}, data)


def _counts(prepared: Prepared, output: Path, seed: int) -> Iterator[Planned]:
    """Yield the count baselines of a seed: one for each pair of corpora with the same n-grams."""
    seen = set()
    for name, variant in prepared.study.variants.items():
        pair = variant.corpus, variant.held_out
        if variant.config is None or pair in seen or not prepared.info(variant.corpus).num_ngrams:
            continue
        if prepared.info(variant.corpus).lexicon != prepared.info(variant.held_out).lexicon:
            continue
        seen.add(pair)
        model = _pretraining(prepared, output, name, variant, seed)
        # The held-out sequences are masked alike by explicit and contiguous masking.
        keys = ("seed", "data.max_seq_len", "data.pack_documents", "objective.mask_fraction", "trainer.eval_sequences")
        settings = {key: value for key, value in model.settings.items() if key in keys}
        of: Of = {"corpus": variant.corpus, "held_out": variant.held_out, "seed": seed}
        yield Planned(f"counts {variant.corpus} {variant.held_out} {seed}", COUNTS, of, settings, model.data, model.run)


def check_settings(prepared: Prepared, output: Path, data: Path | None) -> None:
    """Check all that needs no corpus: the settings of all trainings, the given model, and the files of the tasks.

    Raises InputError as `plan_study` does.
    """
    study = prepared.study
    for variant in study.variants.values():
        if variant.config:
            load_pretraining(_pretraining_options(prepared, variant, study.seeds[0], output))
        for task, options in study.tasks.items():
            plan(task, output, output, {}, study.finetuning_seeds, _overrides({**options, **variant.finetuning}, data))
    if study.needs_start:
        _model_digest(prepared.start)
    for task in study.tasks:
        _files(task, _required(data))


def _pretraining_options(prepared: Prepared, variant: Variant, seed: int, folder: Path) -> list[str]:
    assert variant.config is not None
    options = ["--config", variant.config, *(f"--{key}={as_argument(value)}" for key, value in variant.options.items())]
    options += [f"--paths.corpus={prepared.corpus(variant.corpus)}"]
    options += [f"--paths.held_out={prepared.corpus(variant.held_out)}"]
    options += [f"--paths.start={prepared.start}"] if variant.start else []
    return [*options, f"--seed={seed}", f"--paths.output={folder}"]


def _pretraining(prepared: Prepared, output: Path, name: str, variant: Variant, seed: int) -> Planned:
    folder = output / MODELS / f"{name}_{seed}"
    options = _pretraining_options(prepared, variant, seed, folder)
    config, given = load_pretraining(options)
    corpus, held_out = prepared.info(variant.corpus), prepared.info(variant.held_out)
    data = {"text": corpus.text, "vocabulary": corpus.vocabulary, "lexicon": corpus.lexicon}
    data |= {"held_out": held_out.text, "held_out_lexicon": held_out.lexicon}
    if variant.start:
        data["start"] = _model_digest(prepared.start)
    run = PretrainingRun(folder, {"variant": name}, seed, PRETRAINING_LAUNCHER, tuple(options), config, given)
    return Planned(folder.name, PRETRAINING, {"variant": name, "seed": seed}, _settings(config), data, run)


def _finetunings(
    prepared: Prepared, output: Path, variant: str, seed: int, model: Planned | None, folder: Path | None
) -> Iterator[Planned]:
    """Yield the fine-tunings of a model, seed by seed; `model` is None for the given model."""
    study = prepared.study
    source = model.run.folder if model and model.run else prepared.start
    digest = model.digest if model else _model_digest(prepared.start) if study.tasks else ""
    for number in study.finetuning_seeds:
        for task, options in study.tasks.items():
            assert source is not None
            name = find_task(task).name
            overrides = _overrides({**options, **study.variants[variant].finetuning}, folder)
            [run] = plan(task, source, output / FINETUNED, {}, [number], overrides, f"{variant}_{seed},{name}")
            of: Of = {"variant": variant, "seed": seed, "task": name, "finetuning_seed": number}
            data = {"model": digest, **_files(task, _required(folder))}
            yield Planned(run.name, FINETUNING, of, _settings(run.config), data, run, model)


def _required(data: Path | None) -> Path:
    require(data is not None, "--data", "must be given: the folder with the files of the tasks")
    assert data is not None
    return data


def _overrides(options: Options, data: Path | None) -> tuple[str, ...]:
    """Return the options of every fine-tuning on a task."""
    return (*(f"--{key}={as_argument(value)}" for key, value in options.items()), f"--paths.data={data}")


@cache
def _files(task: str, folder: Path) -> dict[str, str]:
    """Return the digests of the files of the labelled splits, and of the file of a custom task.

    Raises InputError if a needed file is missing.
    """
    definition = find_task(task)
    evaluated = [name for name in available_splits(definition, folder) if name in definition.evaluation_splits]
    found = {}
    for split in (TRAIN, *evaluated):
        digest = hashlib.sha256()
        for inside, content in file_digests(find_files(definition, folder, split).files):
            digest.update(f"{inside} {content}".encode() if inside else content.encode())
        found[split] = digest.hexdigest()
    require(len(found) > 1, "--data", f"{task}: {NO_DEV_SPLIT}")
    if is_settings_file(task):
        found["task"] = sha256_of(Path(task))
    return found


@cache
def _model_digest(model: Path | None) -> str:
    require(model is not None, "--start", "must be given: the folder of the model that the study starts from")
    assert model is not None
    return digest_of(read_model(model).parameters)


def _settings(config: Any) -> dict[str, Any]:
    """Return the settings that can change a result and are not the defaults, as flat `section.key: value`.

    Without defaults, so that earlier results of a study remain valid when this project gets a new setting; and without
    the path of a custom task, the digest of whose file is among the data.
    """
    defaults = flatten(asdict(type(config)()))
    kept = [f"trainer.{key}" for key in TRAINER] if isinstance(config, PretrainConfig) else []
    return {
        key: value
        for key, value in flatten(asdict(config)).items()
        if value != defaults[key]
        and (key in kept or not key.startswith(("paths.", "trainer.")))
        and not (key == "task" and is_settings_file(value))
    }
