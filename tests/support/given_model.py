"""A small model as a warm start is given: a BERT of random numbers, in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes, head_shapes
from ernie_gram.model.config import ModelConfig
from reader.tokenization.vocabulary import Vocabulary

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


def given_bert(vocabulary: Vocabulary, with_head: bool = False, seed: int = 0, **more: Any) -> ModelRecord:
    """Return a BERT with this vocabulary; `more` replaces fields of ModelRecord."""
    # It loads Paddle; the fixtures of all tests import this file.
    from tests.support.model_folders import random_arrays

    shapes = encoder_shapes(replace(BERT, vocab_size=len(vocabulary)))
    if with_head:
        shapes |= head_shapes(BERT, len(vocabulary))
    parameters = random_arrays(shapes, seed, scale=0.2)
    fields: dict[str, Any] = {"config": BERT, "parameters": parameters, "vocabulary": vocabulary, **more}
    return ModelRecord(Path("given"), "bert", **fields)
