"""The programs of fine-tuning on each kind of task, whose kernels `ernie-gram gpu-check` looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import paddle

from ernie_gram.distributed.world import World
from ernie_gram.gpu_checks.programs import LAYERS, SIZES, Case, training_cases
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import OptimizerConfig
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.registry import TASKS
from tasks.training.job import rate_scale
from tasks.training.network import TaskNetwork, build_prediction

# A task of each kind, with the settings of its head. Settings that lead to other operations have a row of their own.
HEADS = {
    "classification, pooled": ("mnli", HeadSettings("pooled")),
    "classification, cls": ("mnli", HeadSettings("cls")),
    "classification, mean": ("mnli", HeadSettings("mean")),
    "regression": ("stsb", HeadSettings()),
    "multiple choice": ("race", HeadSettings(option_loss_weight=0.5)),
    "span": ("squad1", HeadSettings(lm_transform=True)),
    "tagging": ("conll2003", HeadSettings(lm_transform=False)),
}
MODEL = ModelConfig(
    hidden_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, out_emb_size=16, use_sentence_embedding=True
)


def task_cases(head: str, precision: str, place: paddle.base.core.Place) -> Iterator[Case]:
    """Yield the programs that fine-tune on a task with one of HEADS, and predict."""
    task, settings = HEADS[head]
    network = TaskNetwork(kind_of(TASKS[task], KindSettings(head=settings)), MODEL, SIZES.tokens, True)
    scale = partial(rate_scale, num_layers=LAYERS, decay=0.9)
    optimizer = OptimizerConfig(precision=precision)  # type: ignore[arg-type]
    yield from training_cases(head, network, optimizer, "plain", World(0, 1, place), rate_scale=scale)
    yield Case(f"{head}, {precision}: scores", build_prediction(network, precision).main)


def all_cases(precisions: Iterable[str], place: paddle.base.core.Place) -> list[Case]:
    """Return the programs of all HEADS that compute a step, or scores, in each precision."""
    cases = (case for precision in precisions for head in HEADS for case in task_cases(head, precision, place))
    return [case for case in cases if case.is_step]
