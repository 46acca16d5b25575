"""The sections of the configuration that give the encoders their shape."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from reader.errors import InputError


def require_finite(config: Any, section: str) -> None:
    """Refuse infinities and NaN in any field of a section."""
    for key, value in vars(config).items():
        require(not isinstance(value, float) or math.isfinite(value), f"{section}.{key}", f"{value} is not finite")


def require(condition: bool, key: str, message: str) -> None:
    """Refuse a config whose `key` is impossible."""
    if not condition:
        raise InputError(f"{key}: {message}")


@dataclass(frozen=True)
class ModelConfig:
    """The encoder and its heads; the keys are those of upstream's ernie_config.json (paper, section 4.1).

    Attributes:
        vocab_size: rows of the token embedding; null takes as many as the corpus's vocabulary has tokens.
        hidden_size: H, width of the encoder.
        emb_size: width of the embeddings; null means hidden_size, another number adds a mapping between the two.
        out_emb_size: width of the output tables; 0 ties them to the embeddings instead.
        num_hidden_layers: encoder layers.
        num_attention_heads: A; must divide hidden_size.
        max_position_embeddings: rows of the position table, the longest sequence the model can read.
        sent_type_vocab_size: rows of the sentence table.
        hidden_act: activation of the feed-forward layers and of the prediction transform.
        hidden_dropout_prob: dropout after the embeddings and after every sub-layer.
        attention_probs_dropout_prob: dropout of the attention weights.
        initializer_range: standard deviation of the truncated normal that weights start from.
        use_relative_position: add a learned bias for the distance between query and key to the attention scores.
        use_sentence_embedding: add sentence embeddings. Off in pre-training on single segments, and in upstream's
            released static English models.
        max_ngram_tokens: rows of the table of query embeddings [M1], [M2], ..: the most tokens an n-gram may have.
    """

    vocab_size: int | None = None
    hidden_size: int = 768
    emb_size: int | None = None
    out_emb_size: int = 128
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 512
    sent_type_vocab_size: int = 2
    hidden_act: Literal["gelu", "relu"] = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    use_relative_position: bool = True
    use_sentence_embedding: bool = False
    max_ngram_tokens: int = 8

    def __post_init__(self) -> None:
        require_finite(self, "model")
        for key in (
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "max_position_embeddings",
            "max_ngram_tokens",
        ):
            require(getattr(self, key) > 0, f"model.{key}", "must be positive")
        require(
            self.hidden_size % self.num_attention_heads == 0,
            "model.num_attention_heads",
            f"{self.num_attention_heads} heads do not divide model.hidden_size {self.hidden_size}",
        )
        require(self.vocab_size is None or self.vocab_size > 0, "model.vocab_size", "must be positive or null")
        require(self.emb_size is None or self.emb_size > 0, "model.emb_size", "must be positive or null")
        require(self.out_emb_size >= 0, "model.out_emb_size", "must be positive, or 0 to tie the output")
        require(self.sent_type_vocab_size > 0, "model.sent_type_vocab_size", "must be positive")
        require(self.initializer_range > 0, "model.initializer_range", "must be positive")
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            require(0 <= getattr(self, key) < 1, f"model.{key}", "must lie in [0, 1)")

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings."""
        return self.emb_size or self.hidden_size


@dataclass(frozen=True)
class GeneratorConfig:
    """The small encoder that proposes replacements (paper, section 3.4); what is not set here is the main model's.

    Attributes:
        num_hidden_layers: its layers; null takes as many as the main model has.
        num_attention_heads: its heads, as wide as the main model's; null takes a third of them, at least one.
        share_embeddings: read the main model's token embeddings through a projection, and predict with its
            output table; otherwise it has tables of its own.
    """

    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    share_embeddings: bool = True

    def __post_init__(self) -> None:
        for key in ("num_hidden_layers", "num_attention_heads"):
            value = getattr(self, key)
            require(value is None or value > 0, f"generator.{key}", "must be positive or null")

    def model(self, main: ModelConfig) -> ModelConfig:
        """The generator's encoder, beside a given main model."""
        heads = self.num_attention_heads or max(1, main.num_attention_heads // 3)
        width = main.hidden_size // main.num_attention_heads
        layers = self.num_hidden_layers or main.num_hidden_layers
        return replace(
            main, hidden_size=heads * width, emb_size=None, num_attention_heads=heads, num_hidden_layers=layers
        )
