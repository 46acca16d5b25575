"""All programs that run on a GPU, except those of tasks (tasks/kernels.py). They have few layers; more add no kernels.

They are compared with the kernels of the installed package (kernels.py), and with the table of kernels in
tests/gpu_kernels. Building a program allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import paddle

from ernie_gram.config.loading import load_config
from ernie_gram.distributed import collectives
from ernie_gram.distributed.world import World
from ernie_gram.inference.export import build_encoder
from ernie_gram.planning.sizes import assumed_shape
from ernie_gram.planning.trial_step import random_batch, step_program
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.programs import build_evaluation, build_prediction
from ernie_gram.pretraining.rungs import CONFIGS
from ernie_gram.pretraining.rungs import RUNGS as ALL_RUNGS
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import sparse_parameters
from ernie_gram.training.accumulation import build_accumulation
from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.job import Network
from ernie_gram.training.program import Program, build_training
from reader.batches.fields import Batch

PRECISIONS = ("float32", "bfloat16", "float16")
MODES = ("plain", "recompute", "accumulation", "two ranks")
# The rungs of the ablation with different programs: "token" has the program of "contiguous".
RUNGS = tuple(rung for rung in ALL_RUNGS if rung != "token")
LAST_RUNG = RUNGS[-1]
# Large enough that the softmax over the classes is computed in chunks, and that the gradient of the n-gram embedding is
# exchanged by row.
SIZES = CorpusSizes(30_522, 300_000)
SEQUENCES = 64
LAYERS = 2
# In random batches.
TOKENS_PER_UNIT = 1.9


@dataclass(frozen=True)
class Case:
    """A Paddle program.

    Attributes:
        name: what it computes, and how.
        program: as built.
        is_step: whether it is run again and again, rather than once at the start.
    """

    name: str
    program: paddle.static.Program
    is_step: bool = True


def pretraining_config(rung: str, precision: str, *more: str) -> PretrainConfig:
    """Return the configuration of a rung of the ablation, with dropout, and with further options."""
    options = [
        f"--config={CONFIGS / f'{rung}.yaml'}",
        f"--data.batch_size={SEQUENCES}",
        f"--model.num_hidden_layers={LAYERS}",
        "--model.hidden_dropout_prob=0.1",
        "--model.attention_probs_dropout_prob=0.1",
        f"--optimizer.precision={precision}",
        *more,
    ]
    return load_config(PretrainConfig, options)[0]


def training_cases(
    name: str,
    network: Network,
    settings: OptimizerConfig,
    mode: str,
    world: World,
    sparse: frozenset[str] = frozenset(),
    rate_scale: Callable[[str], float] | None = None,
) -> Iterator[Case]:
    """Yield the programs of a training in one of MODES. In float16, updates can be skipped."""
    skips = settings.first_loss_scale is not None
    given = (network, settings, world, rate_scale, sparse, mode == "recompute", skips)
    if mode == "accumulation":
        programs = dict(zip(("gradients", "update"), build_accumulation(*given), strict=True))
    else:
        programs = {"training": build_training(*given)}
    for part, program in programs.items():
        yield Case(f"{name}, {settings.precision}, {mode}: {part}", program.main)
        yield Case(f"{name}, {settings.precision}, {mode}: start of {part}", program.startup, is_step=False)


def random_step(config: PretrainConfig, sizes: CorpusSizes, world: World) -> tuple[Program, Batch]:
    """Return the program of a training step of this process, and a random batch of full sequences for it."""
    batch = random_batch(config, sizes, assumed_shape(config, config.data.batch_size, TOKENS_PER_UNIT))
    return step_program(config, sizes, world), batch


def pretraining_cases(
    rung: str, precision: str, place: paddle.base.core.Place, modes: Collection[str] = MODES
) -> Iterator[Case]:
    """Yield the programs that pre-train and evaluate a rung of the ablation."""
    config = pretraining_config(rung, precision)
    for mode in modes:
        world = World(0, 2 if mode == "two ranks" else 1, place)
        network = PretrainNetwork(config, SIZES, world.size)
        yield from training_cases(rung, network, config.optimizer, mode, world, sparse_parameters(config))
    yield Case(f"{rung}, {precision}: evaluation", build_evaluation(config, SIZES, 1).main)


def other_cases(rungs: Collection[str]) -> Iterator[Case]:
    """Yield the programs of exports, of commands that use a model, and of sums over ranks outside of a step."""
    for rung in rungs:
        config = pretraining_config(rung, "float32")
        yield Case(f"{rung}: masked units (fill_mask and its export)", build_prediction(config, SIZES).main)
    for uses_pooler in (False, True):
        program = build_encoder(replace(config.model, use_pooler=uses_pooler), SIZES.tokens).main
        yield Case(f"encoder{', pooled' * uses_pooler} (export)", program)
    for dtype in ("float32", "float64"):
        yield Case(f"sum of {dtype} over ranks", collectives._sum_program(4, dtype)[0])
