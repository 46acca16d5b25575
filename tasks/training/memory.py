"""The memory of one process of a fine-tuning, predicted as for pre-training (see planning/encoder_memory.py)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.planning.encoder_memory import ACCUMULATED, FLOAT, EncoderMemory, Ledger, Memory
from reader.batches.sampler import accumulation_steps
from reader.system.arrays import Int64s
from tasks.data.features import Features
from tasks.training.config import FinetuneConfig


def finetuning_memory(
    config: FinetuneConfig,
    encoder: ModelConfig,
    features: Features,
    parts: Sequence[Int64s],
    processes: int,
    cpu: bool,
    reads_first_slots: bool,
) -> Memory:
    """Return the predicted memory of one process in the step that needs most, without the small output layers.

    Args:
        encoder: the settings of the fine-tuned model, with its dropout rates.
        parts: the samples that the process holds at a time, for each micro-batch.
        cpu: whether it computes on a CPU.
        reads_first_slots: whether the head reads only the first slot of each input (see Kind.reads_first_slots).
    """
    num_inputs, lengths = np.diff(features.input_offsets), features.lengths
    held = set[tuple[int, int, int]]()
    for part in parts:
        inputs, slots = int(num_inputs[part].sum()), int(lengths[part].max())
        # On a CPU, nothing is computed for padding.
        held.add((inputs, slots, int(num_inputs[part] @ lengths[part]) if cpu else inputs * slots))
    declared = [parameters.encoder(encoder, encoder.vocab_size or 0)]
    shapes = parameters.shapes_of(*declared, parameters.pooler(encoder) if encoder.use_pooler else None)
    steps = accumulation_steps(config.optimizer.batch_size, processes, config.trainer.micro_batch)

    precision = config.optimizer.precision

    def memory(inputs: int, slots: int, rows: int) -> Memory:
        ledger = Ledger(parameters.count(shapes))
        if steps > 1:
            ledger.change(ACCUMULATED, ledger.numbers * FLOAT)
        wanted = inputs if reads_first_slots else rows
        network = EncoderMemory(encoder, rows, wanted, slots, precision, config.trainer.recompute, cpu)
        network.forward(ledger)
        ledger.moment = "backward"
        network.backward(ledger)
        ledger.update([prod(shape) for shape in shapes.values()], processes)
        return ledger.memory

    return max((memory(*each) for each in held), key=lambda found: found.total)
