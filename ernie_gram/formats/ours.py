"""Our own model folder, and checkpoints of our training. The folder holds all, prediction heads and lexicon included:

ernie_config.json   the settings: upstream's keys, and ours where upstream has none; in `pretraining`, those of the
                    prediction heads
model.safetensors   the parameters, float32, under the names of upstream's static model
vocab.txt           the vocabulary (or spm.model), with vocab.txt.json
lexicon.tsv         the n-grams, where there are any, with lexicon.tsv.json
README.md           the model card

In the folder of a pre-training run, the newest valid `step_N` is read; in that of a fine-tuning, the best model.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import PREDICTION_SECTIONS, TASK_PREFIX, is_explicit
from ernie_gram.formats.model import Format, ModelRecord, TrainingRecord
from ernie_gram.formats.model_card import FILE_NAME, model_card
from ernie_gram.formats.parameters import (
    HEAD_TRANSFORM,
    LOWERCASE,
    check_numbers,
    check_shapes,
    encoder_shapes,
    head_shapes,
    model_config,
    write_settings,
)
from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.formats.vocabularies import check_vocabulary, read_vocabulary
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import Record, last_evaluation
from reader.corpus.memmap import LEXICON
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, info_path
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import kept_vocabulary, save_vocabulary

NAME = "ernie_gram"
CONFIG, WEIGHTS = "ernie_config.json", "model.safetensors"
PRETRAINING = "pretraining"
RUN_NAME = "run"
NO_VALID = "there is no valid checkpoint beside it: train again, or copy the run's folder again"
# The tables of n-grams and of query rows, and the beginning of the names of the head of query rows.
PRETRAINING_ONLY = ("ngram_embedding", "query_embedding", "fine_lm_")
# Sections of the settings of a run: beside those of prediction heads, and of them what the card of a model shows.
RUN_SECTIONS = ("model", "paths")
TRAINING_SECTIONS = ("seed", "optimizer", "trainer")


def detect(folder: Path) -> bool:
    """Return whether a folder has the files of this format."""
    return (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()


def read(folder: Path) -> ModelRecord:
    """Return the model in a folder; raises InputError if a file is damaged, or if the files do not fit together."""
    source = str(folder / CONFIG)
    settings = read_json(folder / CONFIG)
    config = model_config(settings, source)
    if config.vocab_size is None:
        raise InputError(f"{source}: vocab_size: missing, the number of rows of the token embedding")
    pretraining = settings.get(PRETRAINING)
    if pretraining is not None:  # the values of its sections are checked where they are used
        pretraining = _sections(pretraining, PREDICTION_SECTIONS, f"{source}: {PRETRAINING}")
    vocabulary = read_vocabulary(folder, settings, source)
    check_vocabulary(vocabulary, config.vocab_size, folder)
    path = folder / LEXICON
    lexicon = Lexicon.load(path, vocabulary) if path.is_file() or info_path(path).is_file() else None
    arrays = read_arrays(folder / WEIGHTS)
    record = ModelRecord(folder, NAME, config, arrays, vocabulary, lexicon, pretraining)
    return _checked(record, str(folder / WEIGHTS))


def write(model: ModelRecord, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    settings = asdict(model.config) | {LOWERCASE: model.vocabulary.lowercase}
    if model.pretraining is not None:
        settings[PRETRAINING] = model.pretraining
    write_settings(folder / CONFIG, settings)
    checkpoint.save_safetensors(folder / WEIGHTS, model.parameters)
    save_vocabulary(model.vocabulary, folder / model.vocabulary.file_name)
    if model.lexicon is not None:
        model.lexicon.save(folder / LEXICON)
    card = model_card(model, name, NAME, model.parameters)
    (folder / FILE_NAME).write_text(card, encoding="utf-8")


def _checked(model: ModelRecord, source: str) -> ModelRecord:
    """Return a model; raises InputError, which names `source`, unless its parameters fit its settings and are finite.

    Of the parameters of heads, only those of "mask_lm" are checked here: the networks of pre-training and of the tasks,
    which ask for the others by name and shape, are unknown to this package. Without prediction heads, there may still
    be the transform of a head "mask_lm", which heads for fine-tuning read, and the output layer of a task.
    """
    config, heads, lexicon = model.config, model.pretraining, model.lexicon
    check_numbers(model.parameters, source)
    expected, unchecked = encoder_shapes(config), [TASK_PREFIX]
    if heads is not None:
        num_ngrams = len(lexicon) if lexicon is not None and is_explicit(heads) else 0
        expected |= head_shapes(config, len(model.vocabulary) + num_ngrams)
        # The names of a term's parameters begin with its own, and its weight is among the settings.
        weights = (key for key in heads.get("objective", {}) if key.endswith("_weight"))
        unchecked = [*PRETRAINING_ONLY, *(key.removesuffix("weight") for key in weights)]
    elif HEAD_TRANSFORM[0] in model.parameters:
        expected |= head_shapes(config)
    found = {name: each.shape for name, each in model.parameters.items() if not name.startswith(tuple(unchecked))}
    check_shapes(found, expected, source)
    return model


def _sections(found: Any, names: tuple[str, ...], source: str) -> dict[str, dict[str, Any]]:
    """Return sections of settings, empty where they are missing."""
    sections = {name: found.get(name, {}) for name in names} if isinstance(found, dict) else {"": found}
    if wrong := [name for name, section in sections.items() if not isinstance(section, dict)]:
        raise InputError(f"{source}: {wrong[0] or 'it'} is no section of settings")
    return sections


def detect_run(folder: Path) -> bool:
    """Return whether a folder is a checkpoint, or has folders of checkpoints."""
    return any(map(_is_checkpoint, (folder, folder / checkpoint.BEST))) or bool(checkpoint.checkpoints(folder))


def read_run(folder: Path) -> ModelRecord:
    """Return the model in a checkpoint.

    Raises InputError if one of its files is damaged or missing, or if the vocabulary or the lexicon beside it belongs
    to another run.
    """
    path, notes = checkpoint_in(folder)
    state, run = checkpoint.load_state(path), path.resolve().parent
    sections = _sections(state.config, (*RUN_SECTIONS, *PREDICTION_SECTIONS), f"{path / checkpoint.STATE}: config")
    vocabulary, lexicon = _load_units(run, state.identity)
    rows = sections["model"].get("vocab_size") or len(vocabulary)
    config = model_config(sections["model"] | {"vocab_size": rows}, str(path))
    # A fine-tuned model has no prediction heads.
    pretraining = {key: sections[key] for key in PREDICTION_SECTIONS} if "objective" in state.config else None
    arrays = read_arrays(path / checkpoint.MODEL)
    # Later evaluations are of other parameters.
    training = _training_of(state.config, sections, last_evaluation(run, state.step))
    record = ModelRecord(path, RUN_NAME, config, arrays, vocabulary, lexicon, pretraining, notes, training)
    return _checked(record, str(path / checkpoint.MODEL))


def checkpoint_in(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return `path` if it is a checkpoint; for a run's folder, its best model, or else its newest valid checkpoint.

    The second value has one line for each newer checkpoint that is damaged. Raises InputError if all are damaged; it
    names the file and the damage.
    """
    best = path / checkpoint.BEST
    if not (best.is_dir() or _is_checkpoint(path)):
        found, damage = checkpoint.newest_and_damage(path, checkpoint.MODEL_FILES)
        if found is None:
            raise InputError(f"{damage[0]}; {NO_VALID}")
        return found, tuple(checkpoint.passed_over(error, found) for error in damage)
    chosen = best if best.is_dir() else path
    try:
        checkpoint.verify(chosen, checkpoint.MODEL_FILES)
    except InputError as error:
        valid = checkpoint.newest_valid(chosen.resolve().parent, checkpoint.MODEL_FILES)
        advice = f"give {valid} instead, which is not damaged" if valid else NO_VALID
        raise InputError(f"{error}; {advice}") from error
    return chosen, ()


def _is_checkpoint(folder: Path) -> bool:
    """Return whether a folder has the state of a checkpoint."""
    return (folder / checkpoint.STATE).is_file()


def _load_units(folder: Path, identity: dict[str, Any]) -> tuple[Vocabulary, Lexicon | None]:
    """Load the vocabulary and the lexicon in a run's folder; raise InputError if they belong to another run."""
    vocabulary = kept_vocabulary(folder, identity.get("vocabulary", ""), "the model was trained with")
    lexicon = Lexicon.load(folder / LEXICON) if identity.get("lexicon") else None
    if lexicon is not None and lexicon.fingerprint != identity["lexicon"]:
        raise InputError(f"{folder / LEXICON}: not the lexicon the model was trained with")
    return vocabulary, lexicon


def _training_of(
    config: dict[str, Any], sections: dict[str, dict[str, Any]], evaluation: Record | None
) -> TrainingRecord:
    """Return what the card says about the run of a checkpoint with these settings."""
    settings = {key: config[key] for key in TRAINING_SECTIONS if key in config}
    scores = {key: value for key, value in (evaluation or {}).items() if type(value) in (int, float)}
    task = Path(str(config.get("task") or "")).stem
    paths = [sections["paths"].get(key) for key in ("corpus", "model" if task else "start")]
    corpus, start = (Path(str(path or "")).name for path in paths)
    return TrainingRecord(corpus, start, settings, scores, task)


RUN = Format(
    RUN_NAME, f"{checkpoint.STATE} of a checkpoint, or folders step_N or {checkpoint.BEST}", detect_run, read_run
)
FORMAT = Format(NAME, f"{CONFIG} and {WEIGHTS}", detect, read, write=write)
