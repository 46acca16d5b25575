"""Measure the share of a device's peak that a training step reaches, with a shorter model on random batches.

What is not a matrix product (softmax, dropout, LayerNorm, the update) takes a share of a step that depends on the width
of the model, the length of the sequences, the objective and the device. So it is measured rather than assumed.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.world import World
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
from ernie_gram.training.config import skips_updates
from ernie_gram.training.program import Program, build_training
from reader.batches import fields
from reader.batches.fields import Batch

LAYERS = 4
# The number of sequences is limited by the seconds that a step may take at ASSUMED of the peak, and by MOST_SEQUENCES,
# so that the trial does not run out of memory before the prediction is printed.
STEP_SECONDS, ASSUMED, MOST_SEQUENCES = 2.0, 0.4, 16
# The first steps prepare the program.
FIRST_STEPS, STEPS = 2, 4


def measured_utilisation(
    config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, peak: float, world: World
) -> float:
    """Return the share of `peak` (operations per second) that a training step of one process reaches.

    The model has at most LAYERS layers and proportionally fewer classes, so that layers and heads keep their shares of
    the operations. A batch has at most MOST_SEQUENCES of the sequences of `shape`. Every trial step includes an update,
    whose time does not depend on the batch: for a step with many more sequences per update the share is too low.

    All processes must call this together, with the same peak.
    """
    config, sizes = shortened(config, sizes)
    # The length of sequences is checked against the start model only if there is a corpus.
    positions = max(config.model.max_position_embeddings, shape.slots)
    config = replace(config, model=replace(config.model, max_position_embeddings=positions))
    single = _flops(config, sizes, replace(shape, sequences=1))
    sequences = min(max(1, int(STEP_SECONDS * ASSUMED * peak / single)), shape.sequences, MOST_SEQUENCES)
    shape = replace(shape, sequences=sequences)
    config = replace(config, data=replace(config.data, batch_size=sequences))
    seconds = _step_seconds(config, sizes, random_batch(config, sizes, shape), world)
    return min(1.0, _flops(config, sizes, shape) / (seconds * peak))


def shortened(config: PretrainConfig, sizes: CorpusSizes) -> tuple[PretrainConfig, CorpusSizes]:
    """Return a model of at most LAYERS layers, and a vocabulary and a lexicon that are smaller in the same ratio."""
    layers = min(LAYERS, config.model.num_hidden_layers)
    ratio = layers / config.model.num_hidden_layers
    own = config.generator.num_hidden_layers
    generator = replace(config.generator, num_hidden_layers=own and max(1, round(ratio * own)))
    model = replace(config.model, num_hidden_layers=layers, vocab_size=None)
    config = replace(config, model=model, generator=generator, trainer=replace(config.trainer, micro_batch=None))
    return config, CorpusSizes(max(1, round(ratio * sizes.tokens)), round(ratio * sizes.ngrams))


def random_batch(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> Batch:
    """Return random sequences of equal length, without padding, with the fields that the objective reads."""
    random = np.random.default_rng(0)
    rows, width, predicted = shape.sequences, shape.slots, max(1, round(shape.predicted))
    slots = np.sort(np.argsort(random.random((rows, width - 2)))[:, :predicted] + 1)
    label_field = fields.COARSE_LABELS if config.objective.is_explicit else fields.TOKEN_LABELS
    batch = {
        fields.INPUT_IDS: random.integers(0, sizes.tokens, (rows, width)),
        fields.LENGTHS: np.full(rows, width),
        fields.SLOTS: (slots + np.arange(rows)[:, None] * width).flatten(),
        label_field: random.integers(0, sizes.classes(config), slots.size),
    }
    if config.objective.has_queries:
        queries, ranks = max(1, shape.queries), min(2, config.model.max_ngram_tokens)
        fine = np.arange(rows)[:, None] * queries + np.arange(max(1, min(round(shape.fine), queries)))
        batch |= {
            fields.QUERY_SLOTS: np.sort(np.resize(slots, (rows, queries))),
            fields.QUERY_RANKS: random.integers(0, ranks, (rows, queries)),
            fields.FINE_ROWS: fine.flatten(),
            fields.FINE_LABELS: random.integers(0, sizes.tokens, fine.size),
        }
    return {field.name: values for field, values in batch.items()}


def _flops(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> float:
    return sum(step_flops(config, sizes, shape).values()) + recomputed_flops(config, shape)


def step_program(config: PretrainConfig, sizes: CorpusSizes, world: World) -> Program:
    """Return the program of a training step of one process, without accumulation."""
    settings, network = config.optimizer, PretrainNetwork(config, sizes, world.size)
    skips = skips_updates(settings, config.trainer)
    return build_training(network, settings, world, recompute=config.trainer.recompute, skips=skips)


def _step_seconds(config: PretrainConfig, sizes: CorpusSizes, batch: Batch, world: World) -> float:
    """Return the seconds of the fastest step, in which nothing is exchanged."""
    program = step_program(config, sizes, World(0, 1, world.place))
    executor, found = paddle.static.Executor(world.place), []
    with paddle.static.scope_guard(paddle.static.Scope()):
        executor.run(program.startup)
        for _ in range(FIRST_STEPS):
            program.run(executor, batch)
        sum_array(executor, np.zeros(1), world)  # waits for the other processes, which share the cores of a machine
        for _ in range(STEPS):
            began = time.perf_counter()
            program.run(executor, batch)  # it fetches the loss, so that a device has finished
            found.append(time.perf_counter() - began)
    return min(found)
