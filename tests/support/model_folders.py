"""Small models of random numbers, and the forward pass of an encoder with given parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.heads import token_head_settings
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes, head_shapes
from ernie_gram.model.config import ModelConfig
from reader.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

WORDS = ("the", "cat", "sat", "on", "a", "mat", "##s", "dog", "ran", "home", "now", "then", ".", ",", "it")
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])
CONFIG = ModelConfig(
    vocab_size=len(VOCABULARY),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=24,
    sent_type_vocab_size=2,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
# Of a model as a warm start is given.
H, POSITIONS = 16, 40
BERT = ModelConfig(
    hidden_size=H,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=POSITIONS,
    layer_norm_eps=1e-12,
    out_emb_size=0,
    use_relative_position=False,
    use_sentence_embedding=True,
    use_pooler=True,
)
Arrays = dict[str, np.ndarray]


def random_arrays(shapes: dict[str, tuple[int, ...]], seed: int = 0, scale: float = 0.3) -> Arrays:
    """Return float32 arrays of the given shapes, with numbers that make every parameter matter."""
    random = np.random.default_rng(seed)
    arrays = {name: (scale * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    return {name: values + np.float32(name.endswith("scale")) for name, values in arrays.items()}


def random_model(
    with_head: bool = False,
    vocabulary: WordPieceVocabulary = VOCABULARY,
    **changes: Any,
) -> ModelRecord:
    """Return a model; `changes` are fields of its ModelConfig. The head is over tokens, tied to the embedding."""
    config = replace(CONFIG, **changes, **({"out_emb_size": 0} if with_head else {}))
    shapes = encoder_shapes(config)
    if with_head:
        shapes |= head_shapes(config, len(vocabulary))
    settings = token_head_settings(config) if with_head else None
    return ModelRecord(Path("made"), "test", config, random_arrays(shapes), vocabulary, None, settings)


def given_bert(vocabulary: Vocabulary, with_head: bool = False, seed: int = 0, **more: Any) -> ModelRecord:
    """Return a BERT with this vocabulary; `more` replaces fields of ModelRecord."""
    shapes = encoder_shapes(replace(BERT, vocab_size=len(vocabulary)))
    if with_head:
        shapes |= head_shapes(BERT, len(vocabulary))
    parameters = random_arrays(shapes, seed, scale=0.2)
    fields: dict[str, Any] = {"config": BERT, "parameters": parameters, "vocabulary": vocabulary, **more}
    return ModelRecord(Path("given"), "bert", **fields)


def random_ids(rows: int = 3, length: int = 12, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return token IDs [rows, length], lengths without padding [rows], and sentence IDs of pairs, as BERT has them."""
    random = np.random.default_rng(seed)
    ids = random.integers(5, len(VOCABULARY), (rows, length))
    lengths = np.array([length, length - 5, 4][:rows])
    sentences = np.zeros((rows, length), int)
    for b in range(rows):
        ids[b, lengths[b] :] = 0
        sentences[b, lengths[b] // 2 : lengths[b]] = 1
    return ids, lengths, sentences


def encoder_output(config: ModelConfig, parameters: Arrays) -> list[np.ndarray]:
    """Return our encoder's output for `random_ids`, float32 [length, H] for each row, and the pooled vectors if any."""
    ids, lengths, sentences = random_ids()
    hidden, *pooled = encoder_output_for(config, parameters, ids, lengths, sentences)
    return [*(row[:length] for row, length in zip(hidden, lengths, strict=True)), *pooled]


def encoder_output_for(
    config: ModelConfig, parameters: Arrays, ids: np.ndarray, lengths: np.ndarray, sentences: np.ndarray
) -> list[np.ndarray]:
    """Return our encoder's output, float32 [B, L, H], and the pooled vectors [B, H] if there is a pooler.

    Args:
        ids, sentences: int64 [B, L]; lengths: int64 [B], the slots that are no padding.
    """
    # They load Paddle; the fixtures of all tests import this file.
    from ernie_gram.inference.forward import build_encoder
    from ernie_gram.training.variables import set_parameters
    from tests.support.static_programs import fresh_scope

    with fresh_scope() as executor:
        program = build_encoder(config, config.vocab_size or len(VOCABULARY))
        set_parameters(program.main, parameters, "test", executor.place)
        found = program.run(executor, {"input_ids": ids, "lengths": lengths, "sentence_ids": sentences})
    return [found[name] for name in ("hidden", "pooled") if name in found]
