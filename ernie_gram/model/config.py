"""The section `model` of the configuration: the sizes and the options of an encoder and its heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ernie_gram.config import require, require_finite, require_positive

# Rows of the table of relative distances, rel_pos_embedding (see relative_position.py).
NUM_BUCKETS = 33


@dataclass(frozen=True)
class ModelConfig:
    """The encoder and its heads (paper, section 4.2). The keys are those of upstream's ernie_config.json.

    Attributes:
        vocab_size: rows of the token embedding; null means the size of the corpus's vocabulary.
        hidden_size: width of the encoder (H).
        emb_size: width of the embeddings; null means hidden_size. Another width adds a linear mapping to hidden_size.
        out_emb_size: width of the output tables; 0 ties the output to the embeddings instead.
        intermediate_size: width of the feed-forward networks' inner layer; null means 4 x hidden_size.
        num_hidden_layers: number of encoder layers.
        num_attention_heads: number of attention heads (A); must divide hidden_size.
        max_position_embeddings: rows of the position embedding, the maximum sequence length.
        sent_type_vocab_size: rows of the sentence embedding.
        hidden_act: activation of the feed-forward networks and of the heads' transforms.
        layer_norm_eps: number that LayerNorm adds to the variance. BERT has 1e-12.
        hidden_dropout_prob: dropout rate after the embeddings and after every sub-layer.
        attention_probs_dropout_prob: dropout rate of the attention weights.
        initializer_range: standard deviation of the truncated normal from which weights are drawn.
        use_relative_position: add a learned bias by relative distance to the attention scores.
        relative_position_start: start values of this bias: "normal", drawn like all weights (the paper's);
            "distance", a preference for near slots, to the right in half of the heads and to the left in the others (in
            a single head, on both sides), which small models on small budgets need; or "zero", no bias, for a model
            that was trained without it, whose generator starts from "distance". At a warm start from a model that has
            this bias, the value applies only to a generator with random weights. Has no effect without
            use_relative_position.
        use_sentence_embedding: add sentence embeddings. Off for pre-training on single segments, as in upstream's
            released static English models.
        use_pooler: the model has a pooler, a layer with tanh over the output of [CLS], for fine-tuning and
            inference. Pre-training refuses it: none of its losses reads the pooler, so it would never be trained.
        max_ngram_tokens: rows of the embedding of the query rows [M1], [M2], ...: the maximum number of tokens
            per n-gram.
    """

    vocab_size: int | None = None
    hidden_size: int = 768
    emb_size: int | None = None
    out_emb_size: int = 128
    intermediate_size: int | None = None
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 512
    sent_type_vocab_size: int = 2
    hidden_act: Literal["gelu", "relu"] = "gelu"
    layer_norm_eps: float = 1e-5
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    use_relative_position: bool = True
    relative_position_start: Literal["normal", "distance", "zero"] = "normal"
    use_sentence_embedding: bool = False
    use_pooler: bool = False
    max_ngram_tokens: int = 8

    def __post_init__(self) -> None:
        require_finite(self, "model")
        require_positive(self, "model", "hidden_size", "num_hidden_layers", "num_attention_heads")
        require_positive(self, "model", "max_position_embeddings", "max_ngram_tokens")
        reason = f"{self.num_attention_heads} heads do not divide model.hidden_size {self.hidden_size}"
        require(self.hidden_size % self.num_attention_heads == 0, "model.num_attention_heads", reason)
        require_positive(self, "model", "vocab_size", "emb_size", "intermediate_size")
        require(self.out_emb_size >= 0, "model.out_emb_size", "must be positive, or 0 to tie the output")
        require_positive(self, "model", "sent_type_vocab_size", "initializer_range")
        # Paddle refuses a larger one.
        require(0 < self.layer_norm_eps <= 1e-3, "model.layer_norm_eps", "must lie in (0, 1e-3]")
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            require(0 <= getattr(self, key) < 1, f"model.{key}", "must lie in [0, 1)")

    @property
    def has_sentence_types(self) -> bool:
        """Whether the model may read pairs of texts, whose second text has the sentence type 1."""
        return not self.use_sentence_embedding or self.sent_type_vocab_size > 1

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings."""
        return self.emb_size or self.hidden_size

    @property
    def feed_forward_size(self) -> int:
        """Width of the inner layer of the feed-forward networks."""
        return self.intermediate_size or 4 * self.hidden_size
