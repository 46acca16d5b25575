"""Every program that runs on a GPU, built with small models under a pretended GPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from ernie_gram.distributed.world import World  # before Paddle: it sets the number of threads

import paddle  # isort: skip

from ernie_gram.distributed import collectives
from ernie_gram.inference.export import build_encoder
from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.ablation_plan import CONFIGS
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.programs import build_evaluation, build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import sparse_parameters
from ernie_gram.training.accumulation import build_accumulation
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from ernie_gram.training.job import Job, Network
from ernie_gram.training.program import build_training
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.registry import TASKS
from tasks.training.job import rate_scale
from tasks.training.network import TaskNetwork
from tasks.training.network import build_prediction as build_scores
from tests.support.configs import load

Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
# So many classes, and sequences, that the softmax over them is computed in chunks, and that the gradient of the n-gram
# embedding is exchanged by row. Building a program allocates nothing of this size.
SIZES = CorpusSizes(30_522, 300_000)
SEQUENCES = 64
MODES = ("plain", "recompute", "accumulation", "two ranks")
# A task of each kind, with the settings of its head; those that give other operations have a row of their own.
HEADS = {
    "classification, pooled": ("mnli", HeadSettings("pooled")),
    "classification, cls": ("mnli", HeadSettings("cls")),
    "classification, mean": ("mnli", HeadSettings("mean")),
    "regression": ("stsb", HeadSettings()),
    "multiple choice": ("race", HeadSettings(option_loss_weight=0.5)),
    "span": ("squad1", HeadSettings(lm_transform=True)),
    "tagging": ("conll2003", HeadSettings(lm_transform=False)),
}
LAYERS = 2
MODEL = ModelConfig(
    hidden_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, out_emb_size=16, use_sentence_embedding=True
)


@dataclass(frozen=True)
class Case:
    """A program of Paddle's.

    Attributes:
        name: what it computes, and how, for errors.
        program: as built.
        is_step: whether it is run again and again, rather than once at the start.
    """

    name: str
    program: paddle.static.Program
    is_step: bool = True


def optimizer_of(precision: Precision) -> OptimizerConfig:
    """Return the settings with which a program in this precision is built."""
    return OptimizerConfig(warmup_steps=0, precision=precision)


def pretraining_config(rung: str, precision: Precision) -> PretrainConfig:
    """Return the configuration of a rung of the ablation, with dropout."""
    config = load("--config", str(CONFIGS / f"{rung}.yaml"), f"--data.batch_size={SEQUENCES}")
    model = replace(config.model, num_hidden_layers=LAYERS, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    return replace(config, model=model, optimizer=optimizer_of(precision))


def training_cases(
    name: str,
    network: Network,
    precision: Precision,
    mode: str,
    world: World,
    sparse: frozenset[str] = frozenset(),
    scale: Callable[[str], float] | None = None,
) -> Iterator[Case]:
    """Yield the programs of a training in one of MODES. In float16, updates can be skipped."""
    settings = optimizer_of(precision)
    job = Job(
        folder=Path(),
        seed=1,
        identity={},
        config={},
        network=network,
        batch_size=SEQUENCES,
        batches=lambda consumed, world: (_ for _ in ()),
        learning_rate=lambda step: 1e-4,
        rate_scale=scale,
        sparse_parameters=sparse,
        optimizer=settings,
        trainer=TrainerConfig(recompute=mode == "recompute"),
    )
    skips = settings.first_loss_scale is not None
    if mode == "accumulation":
        parts = dict(zip(("gradients", "update", "rows"), build_accumulation(job, world, skips), strict=True))
    else:
        built = build_training(
            network, settings, job.learning_rate, world, scale, sparse, job.trainer.recompute, skips=skips
        )
        parts = {"training": built}
    for part, program in parts.items():
        yield Case(f"{name}, {precision}, {mode}: {part}", program.main)
        yield Case(f"{name}, {precision}, {mode}: start of {part}", program.startup, is_step=False)


def pretraining_cases(rung: str, precision: Precision, place: paddle.base.core.Place) -> Iterator[Case]:
    """Yield the programs that pre-train and evaluate a rung of the ablation."""
    config = pretraining_config(rung, precision)
    for mode in MODES:
        world = World(0, 2 if mode == "two ranks" else 1, place)
        network = PretrainNetwork(config, SIZES, world.size)
        yield from training_cases(rung, network, precision, mode, world, sparse_parameters(config))
    yield Case(f"{rung}, {precision}: evaluation", build_evaluation(config, SIZES, 1).main)


def task_cases(head: str, precision: Precision, place: paddle.base.core.Place) -> Iterator[Case]:
    """Yield the programs that fine-tune on a task with one of HEADS, and predict."""
    task, settings = HEADS[head]
    network = TaskNetwork(kind_of(TASKS[task], KindSettings(head=settings)), MODEL, SIZES.tokens, True)
    scale = partial(rate_scale, num_layers=LAYERS, decay=0.9)
    yield from training_cases(head, network, precision, "plain", World(0, 1, place), scale=scale)
    yield Case(f"{head}, {precision}: scores", build_scores(network, precision).main)


def other_cases(rungs: Collection[str]) -> Iterator[Case]:
    """Yield the programs of exports and of the commands that use a model, and sums over ranks outside of a step."""
    for rung in rungs:
        program = build_prediction(pretraining_config(rung, "float32"), SIZES).main
        yield Case(f"{rung}: masked units (fill_mask and its export)", program)
    for uses_pooler in (False, True):
        program = build_encoder(replace(MODEL, use_pooler=uses_pooler), SIZES.tokens).main
        yield Case(f"encoder{', pooled' * uses_pooler} (export)", program)
    for dtype in ("float32", "float64"):
        yield Case(f"sum of {dtype} over ranks", collectives._sum_program((3,), dtype)[0])
