"""Small models for the tests of PaddleNLP folders, and folders written from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from ernie_gram.formats import paddlenlp
from ernie_gram.formats.model import Model
from ernie_gram.formats.paddlenlp_config import TaskHead
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.model.config import ModelConfig
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.model_folders import random_arrays

VOCABULARY = WordPieceVocabulary(["the", *SPECIAL_TOKENS, "a", "##b"], lowercase=False)
PLAIN = ModelConfig(
    vocab_size=10,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=12,
    use_relative_position=False,
    use_sentence_embedding=True,
    use_pooler=True,
)
RELATIVE = dataclasses.replace(PLAIN, use_relative_position=True)
# The names of PaddleNLP's ErnieGramModel with one layer.
LINEAR = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "linear1", "linear2"]
NAMES = {
    *(f"ernie_gram.embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")),
    *(
        f"ernie_gram.{layer}.{part}"
        for layer in (
            "embeddings.layer_norm",
            "pooler.dense",
            *(f"encoder.layers.0.{name}" for name in (*LINEAR, "norm1", "norm2")),
        )
        for part in ("weight", "bias")
    ),
}
TABLE = "ernie_gram.embeddings.rel_pos_embeddings.weight"
SEGMENTS = "ernie_gram.embeddings.token_type_embeddings.weight"


def model_of(config: ModelConfig = PLAIN, **changes: Any) -> Model:
    model = Model(Path("source"), "test", config, random_arrays(encoder_shapes(config)), VOCABULARY)
    return dataclasses.replace(model, **changes)


def written(folder: Path, model: Model, head: TaskHead | None = None) -> Path:
    folder.mkdir()
    paddlenlp.write(model, folder, "published", head)
    return folder


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
