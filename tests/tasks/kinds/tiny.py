"""A tiny vocabulary and model, gold scores of spans, and the training of a task's examples in the test's process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import OptimizerConfig
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.kinds.base import Kind, Predictions
from tasks.kinds.features import Features
from tasks.kinds.span import SpanFeatures
from tasks.kinds.span_answers import SpanExample, answer_tokens
from tasks.layouts.rows import Place
from tests.support.static_programs import fresh_scope

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PLACE = Place(Path("examples"), 1)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Words of several letters are several tokens.
TOKENS = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *"0123456789.,?_", *"一二三四五六七八九十"]
MODEL = ModelConfig(
    vocab_size=len(TOKENS),
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=4,
    max_position_embeddings=64,
    out_emb_size=8,
    hidden_dropout_prob=0,
    attention_probs_dropout_prob=0,
    initializer_range=0.2,
    use_sentence_embedding=True,
)


def tokenizer() -> Tokenizer:
    return Tokenizer(WordPieceVocabulary(TOKENS, True, "tiny"))


def tokens_of_input(features: Features, row: int) -> list[str]:
    """Return the tokens of an input."""
    inputs = features.inputs
    return [TOKENS[i] for i in inputs.tokens[inputs.offsets[row] : inputs.offsets[row + 1]]]


def gold_scores(features: SpanFeatures, examples: Sequence[SpanExample]) -> np.ndarray:
    """Return scores that are 1 at the first and the last token of each example's first answer, and 0 elsewhere.

    For an unanswerable question they are 1 at [CLS]. The features are encoded with training=False.
    """
    scores = np.zeros((features.num_units, 2), np.float32)
    for sample, index in enumerate(features.example_of.tolist()):
        unit = features.unit_offsets[sample]
        if examples[index].is_impossible:
            scores[unit] = 1
            continue
        first, stop = answer_tokens(examples[index], features.context(index))
        start, length, _, _ = features.windows[sample]
        for column, token in ((0, first), (1, stop - 1)):
            if start <= token < start + length:
                scores[unit + 1 + token - start, column] = 1
    return scores


def overfit(
    kind: Kind[Any, Any],
    examples: Sequence[Any],
    steps: int = 60,
    rate: float = 4e-3,
    has_lm_transform: bool = False,
) -> tuple[Predictions, list[float], list[str]]:
    """Train on all examples in every step; return their predictions, the losses of the steps, and the parameters.

    The training ends at a loss below 0.05. Predictions are made in batches of one and of three samples, as uneven ranks
    would.
    """
    from ernie_gram.distributed.world import World
    from ernie_gram.training.optimization import set_learning_rate
    from ernie_gram.training.program import build_training
    from tasks.training.network import SCORES, TaskNetwork, build_prediction

    # As processes get them from the check of their launcher.
    kind, features = pickle.loads(pickle.dumps((kind, kind.encode(examples, tokenizer(), training=True))))
    network = TaskNetwork(kind, MODEL, has_lm_transform)
    settings = OptimizerConfig(learning_rate=rate, warmup_steps=0, weight_decay=0.0)
    with fresh_scope() as executor:
        import paddle

        program = build_training(network, settings, World(0, 1, executor.place))
        prediction = build_prediction(network)
        paddle.seed(1)
        executor.run(program.startup)
        losses = []
        batch = features.batch(np.arange(len(features)))
        for _ in range(steps):
            set_learning_rate(rate)
            losses.append(float(program.run(executor, batch)["loss"]))
            if losses[-1] < 0.05:
                break
        features = kind.encode(examples, tokenizer(), training=False)
        scores = np.full((features.num_units, kind.width), np.nan, np.float32)
        for samples in np.split(np.arange(len(features)), [1, 4, 7]):
            if len(samples):
                scores[features.unit_rows(samples)] = prediction.run(executor, features.batch(samples))[SCORES]
        assert np.isfinite(scores).all()
    return kind.decode(scores, features, examples), losses, program.parameters
