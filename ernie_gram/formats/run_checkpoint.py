"""Checkpoints of our own training: a run's folder, or one checkpoint.

In the folder of a pre-training run, the newest valid `step_N` is read; in the folder of a fine-tuning,
the best model.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import PREDICTION_SECTIONS, is_explicit, read_own_parameters
from ernie_gram.formats.model import Format, Model, TrainingRecord
from ernie_gram.formats.parameters import model_config
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import RESULT
from ernie_gram.run.run_log import Record, last_evaluation
from reader.corpus.memmap import LEXICON
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import kept_vocabulary

NAME = "run"
NO_VALID = "there is no valid checkpoint beside it: train again, or copy the run's folder again"
# Sections of the settings that say how the model was trained. Those of prediction heads are in Model.pretraining.
TRAINING_SECTIONS = ("seed", "optimizer")
LOOKS_FOR = f"{checkpoint.STATE} of a checkpoint, or folders step_N or {checkpoint.BEST}"


def detect(folder: Path) -> bool:
    """Return whether a folder is a checkpoint, or has folders of checkpoints."""
    return any(map(_is_checkpoint, (folder, folder / checkpoint.BEST))) or bool(checkpoint.checkpoints(folder))


def read(folder: Path) -> Model:
    """Return the model in a checkpoint.

    Raises InputError if one of its files is damaged or missing, or if the vocabulary or the lexicon beside it belongs
    to another run.
    """
    path, notes = checkpoint_in(folder)
    state = checkpoint.load_state(path)
    run = path.resolve().parent
    vocabulary, lexicon = _load_units(run, state.identity)
    settings = _section(state.config, "model", path)
    # A fine-tuned model has no prediction heads.
    pretraining = state.config if "objective" in state.config else None
    for section in PREDICTION_SECTIONS if pretraining else ():
        _section(state.config, section, path)
    rows = settings.get("vocab_size") or len(vocabulary)
    config = model_config({**settings, "vocab_size": rows}, str(path))
    classes = len(vocabulary) + (len(lexicon) if lexicon and is_explicit(state.config) else 0)
    stored = read_own_parameters(path / checkpoint.MODEL, config, pretraining, classes)
    # Later evaluations are of other parameters.
    training = _training(run, state.config, path, last_evaluation(run, state.step))
    notes = (*notes, *stored.notes)
    return Model(path, NAME, config, stored.arrays, vocabulary, lexicon, pretraining, notes, training)


def checkpoint_in(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return `path` if it is a checkpoint; for a run's folder, its best model, or else its newest valid checkpoint.

    The second value has one line for each newer checkpoint that is damaged. Raises InputError if there is no
    checkpoint, or if all are damaged; then it names the file and the damage.
    """
    best = path / checkpoint.BEST
    if best.is_dir() or _is_checkpoint(path):
        return _verified(best if best.is_dir() else path), ()
    found, damage = checkpoint.newest_and_damage(path, checkpoint.MODEL_FILES)
    if found is None:
        reason = f"{damage[0]}; {NO_VALID}" if damage else f"{path}: not a checkpoint, and has no step_N"
        raise InputError(reason)
    return found, tuple(checkpoint.passed_over(error, found) for error in damage)


def _verified(path: Path) -> Path:
    """Return a checkpoint; raises InputError, with the file and the damage, if its model is damaged."""
    try:
        checkpoint.verify(path, checkpoint.MODEL_FILES)
    except InputError as error:
        valid = checkpoint.newest_valid(path.resolve().parent, checkpoint.MODEL_FILES)
        advice = f"give {valid} instead, which is not damaged" if valid else NO_VALID
        raise InputError(f"{error}; {advice}") from error
    return path


def _is_checkpoint(folder: Path) -> bool:
    """Return whether a folder has the state of a checkpoint, or checksums that list it."""
    sums = folder / checkpoint.CHECKSUMS
    is_listed = sums.is_file() and checkpoint.STATE in sums.read_text(encoding="utf-8", errors="replace")
    return is_listed or (folder / checkpoint.STATE).is_file()


def _section(config: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = config.get(name)
    if not isinstance(section, dict):
        raise InputError(f"{path / checkpoint.STATE}: damaged: config has no section {name}")
    return section


def _load_units(folder: Path, identity: dict[str, Any]) -> tuple[Vocabulary, Lexicon | None]:
    """Load the vocabulary and the lexicon in a run's folder; raise InputError if they belong to another run."""
    vocabulary = kept_vocabulary(folder, identity.get("vocabulary", ""), "the model was trained with")
    lexicon = Lexicon.load(folder / LEXICON) if identity.get("lexicon") else None
    if lexicon is not None and lexicon.fingerprint != identity["lexicon"]:
        raise InputError(f"{folder / LEXICON}: not the lexicon the model was trained with")
    return vocabulary, lexicon


def _training(run: Path, config: dict[str, Any], path: Path, evaluation: Record | None) -> TrainingRecord:
    """Return what the card says about the run of the checkpoint at `path`, which has these settings."""
    paths, trainer = (_section({name: {}} | config, name, path) for name in ("paths", "trainer"))
    settings = {key: config[key] for key in TRAINING_SECTIONS if key in config}
    if "max_steps" in trainer:
        settings["trainer"] = {"max_steps": trainer["max_steps"]}
    # JSON has no infinite numbers, which a diverged run has logged.
    numbers = {key: value for key, value in (evaluation or {}).items() if type(value) in (int, float)}
    scores = {key: value for key, value in numbers.items() if math.isfinite(value)}
    task = Path(str(config.get("task") or "")).stem
    if task and "score" in scores:
        scores = {_name_of_score(run): scores.pop("score"), **scores}
    corpus, start = (Path(str(paths.get(key) or "")).name for key in ("corpus", "model" if task else "start"))
    return TrainingRecord(corpus, start, settings, scores, task)


def _name_of_score(run: Path) -> str:
    """Return the split and the metric of a fine-tuning's score, such as "dev_accuracy"; "score" until it has ended."""
    result = read_json(run / RESULT) if (run / RESULT).is_file() else {}
    splits, metric = result.get("scores"), result.get("metric")
    chooses = metric.get("chooses") if isinstance(metric, dict) else None
    return f"{next(iter(splits))}_{chooses}" if isinstance(splits, dict) and splits and chooses else "score"


FORMAT = Format(NAME, LOOKS_FOR, detect, read)
