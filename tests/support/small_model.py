"""A small model for tests of the encoder and of the objective, and random batches for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, GeneratorConfig, PretrainConfig
from ernie_gram.training.config import OptimizerConfig
from reader.batches.fields import Batch
from tests.support.objectives import OBJECTIVES

TOKENS, NGRAMS = 40, 12
MODEL = ModelConfig(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=6,
    max_position_embeddings=64,
    out_emb_size=10,
    hidden_dropout_prob=0,
    attention_probs_dropout_prob=0,
    max_ngram_tokens=4,
)
# "token" differs from "contiguous" only by its corpus, "full" from "both" only by relative position.
RUNGS = ("contiguous", "explicit", "cnp", "enrm", "both")


def config_of(rung: str, model: ModelConfig = MODEL, **generator: Any) -> PretrainConfig:
    """Return the config of a rung of the ablation; `generator` holds fields of GeneratorConfig."""
    return PretrainConfig(
        model=model,
        data=DataConfig(max_seq_len=32, batch_size=8),
        objective=OBJECTIVES[rung],
        generator=GeneratorConfig(**generator),
        optimizer=OptimizerConfig(learning_rate=5e-3, warmup_steps=5),
    )


def random_batch(rung: str, seed: int = 0) -> Batch:
    """Return three sequences of random tokens with three masked slots each.

    Under CNP the sequences have 6, 3 and 4 query rows, with random slots and ranks in random order.
    """
    random = np.random.default_rng(seed)
    lengths, width = np.array([20, 7, 12]), 20
    ids = random.integers(5, TOKENS, (3, width))
    slots = np.sort(
        np.concatenate([b * width + random.choice(np.arange(1, n - 1), 3, False) for b, n in enumerate(lengths)])
    )
    ids.reshape(-1)[slots] = 4
    batch: Batch = {"input_ids": ids, "lengths": lengths, "slots": slots}
    if rung == "contiguous":
        return batch | {"token_labels": random.integers(5, TOKENS, 9)}
    batch["coarse_labels"] = random.integers(5, TOKENS + NGRAMS, 9)
    if rung in ("cnp", "both"):
        batch["query_slots"], batch["query_ranks"] = np.zeros((3, 6), int), np.zeros((3, 6), int)
        rows = []
        for b, count in enumerate((6, 3, 4)):
            batch["query_slots"][b, :count] = random.integers(1, lengths[b] - 1, count)
            batch["query_ranks"][b, :count] = random.integers(0, 4, count)
            rows += [b * 6 + k for k in range(count)]
        batch["fine_rows"], batch["fine_labels"] = np.array(rows), random.integers(5, TOKENS, len(rows))
    return batch
