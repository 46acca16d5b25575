"""All programs of pre-training, with small sizes: neither sizes nor the number of layers change their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

# isort: off
from ernie_gram.distributed.world import World  # before Paddle: it sets the number of threads
# isort: on

from ernie_gram.config.loading import load_config
from ernie_gram.inference.export import build_encoder
from ernie_gram.pretraining.ablation_plan import CONFIGS
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.programs import build_evaluation, build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.accumulation import build_accumulation
from ernie_gram.training.job import Job
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.program import Program, build_training

SIZES = CorpusSizes(tokens=1000, ngrams=600)
# The rungs of the ablation with different programs: "token" has the program of "contiguous".
RUNGS = ("contiguous", "explicit", "cnp", "enrm", "both", "full")
LAST_RUNG = RUNGS[-1]


def small_config(rung: str, precision: str) -> PretrainConfig:
    """Return the settings of a rung with one layer, with dropout."""
    options = [
        f"--config={CONFIGS / f'{rung}.yaml'}",
        "--model.num_hidden_layers=1",
        "--model.hidden_dropout_prob=0.1",
        "--model.attention_probs_dropout_prob=0.1",
        f"--optimizer.precision={precision}",
    ]
    return load_config(PretrainConfig, options, "gpu_check", "", {})[0]


def pretraining_programs(world: World, precision: str, rungs: Sequence[str]) -> Iterator[tuple[str, Program]]:
    """Yield the programs of rungs of the ablation in a precision, with their names; LAST_RUNG is the last."""
    for rung in rungs:
        config = small_config(rung, precision)
        yield f"{rung}, training", training_program(config, world)
        yield f"{rung}, evaluation", build_evaluation(config, SIZES, world.size)
    if precision == "float32":
        # With recompute, operations of the training are repeated; sums of gradients are float32 in every precision.
        yield f"{LAST_RUNG}, recomputing", training_program(config, world, recompute=True)
        for name, program in zip(("micro-batch", "update", "row counts"), _accumulation(config, world), strict=True):
            yield f"{LAST_RUNG}, {name}", program
        # Prediction and the exported programs are always float32.
        yield f"{LAST_RUNG}, prediction", build_prediction(config, SIZES)
        yield "encoder", build_encoder(replace(config.model, use_pooler=True), SIZES.tokens)


def training_program(config: PretrainConfig, world: World, recompute: bool = False) -> Program:
    """Return the program that trains a rung."""
    skips = config.optimizer.first_loss_scale is not None
    network, rate = PretrainNetwork(config, SIZES, world.size), _rate(config)
    return build_training(network, config.optimizer, rate, world, recompute=recompute, skips=skips)


def _rate(config: PretrainConfig) -> partial[float]:
    return partial(learning_rate, settings=config.optimizer, decay_steps=config.decay_steps)


def _accumulation(config: PretrainConfig, world: World) -> tuple[Program, Program, Program]:
    job = Job(
        folder=Path(),
        seed=1,
        identity={},
        config={},
        network=PretrainNetwork(config, SIZES, world.size),
        batch_size=config.data.batch_size,
        batches=lambda consumed, world: iter(()),  # type: ignore[arg-type, return-value]  # nothing is trained
        learning_rate=_rate(config),
        optimizer=config.optimizer,
        trainer=config.trainer,
    )
    return build_accumulation(job, world, skips=True)
