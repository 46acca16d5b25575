"""The folder of a tiny fine-tuned model of any kind of task, with random parameters instead of training."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import State, save_best
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import InputSettings, KindSettings
from tasks.kinds.task import Task
from tasks.training.finetuned import TaskDescription, read_description, write_description
from tasks.training.network import TaskNetwork, build_prediction
from tests.support.model_folders import CONFIG, VOCABULARY, random_arrays
from tests.support.own_tasks import MOODS, MOODS_FILE
from tests.support.static_programs import fresh_scope

TEXTS = ["the cat sat", "a dog ran home now", "it", "then, it ran.", "on the mat the dogs ran then the cats sat home"]
PAIRS = [{"text_a": a, "text_b": b} for a in TEXTS for b in TEXTS]
# Rows of one's own for tasks of all kinds.
ROWS: dict[str, list[dict[str, Any]]] = {
    "rte": PAIRS,
    "moods": [{"text_a": text} for text in TEXTS],
    "stsb": PAIRS,
    "race": [{"context": text, "question": "it _ now", "options": TEXTS[: 2 + i % 3]} for i, text in enumerate(TEXTS)],
    "squad2": [{"context": "; ".join(TEXTS), "question": text} for text in TEXTS],
    "conll2003": [*({"text": f"{text}, it   (ran)."} for text in TEXTS), {"tokens": ["the", "cat", "."]}],
}
INPUT = InputSettings(max_seq_len=16, doc_stride=3, max_query_len=6)


def made_run(
    folder: Path, task: Task, settings: KindSettings | None = None, lm_transform: bool = False, **model: Any
) -> Path:
    """Write the folder of a run as a fine-tuning leaves it, with its best model; return it.

    Args:
        task: one of KNOWN, with known labels.
        lm_transform: whether the model has the transform of a masked language model.
        model: fields of ModelConfig.
    """
    settings = settings or KindSettings(input=INPUT)
    kind = kind_of(task, settings)
    config: ModelConfig = replace(CONFIG, use_pooler=kind.has_pooler, **model)
    with fresh_scope():
        program = build_prediction(TaskNetwork(kind, config, lm_transform))
        variables = program.main.global_block().all_parameters()
        shapes = {variable.name: tuple(variable.shape) for variable in variables}
    folder.mkdir(parents=True)
    (folder / VOCABULARY.file_name).write_bytes(VOCABULARY.content)
    write_description(
        folder, TaskDescription(task, settings, "char", "float32"), MOODS_FILE if task.name == MOODS.name else None
    )
    identity = {"vocabulary": VOCABULARY.fingerprint, "lexicon": None}
    save_best(folder, State(1, 1, 0.0, identity, {"task": task.name, "model": asdict(config)}), random_arrays(shapes))
    return folder


def set_null_threshold(run: Path, threshold: float) -> None:
    """Set the threshold for "no answer" of a run, as the end of its training does."""
    description = read_description(run)
    write_description(run, replace(description, settings=description.settings.with_null_threshold(threshold)), None)
