"""A small model as a warm start is given: a BERT of random numbers, in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.model import Model
from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import Arrays
from reader.tokenization.vocabulary import Vocabulary

H, INNER, LAYERS, POSITIONS = 16, 40, 2, 40
BERT = ModelConfig(
    hidden_size=H,
    intermediate_size=INNER,
    num_hidden_layers=LAYERS,
    num_attention_heads=4,
    max_position_embeddings=POSITIONS,
    layer_norm_eps=1e-12,
    out_emb_size=0,
    use_relative_position=False,
    use_sentence_embedding=True,
    use_pooler=True,
)


def random_parameters(tokens: int, with_head: bool, seed: int = 0) -> Arrays:
    """Return the parameters of a BERT with these sizes, and of its MLM head if wanted."""
    shapes = {
        "word_embedding": (tokens, H),
        "pos_embedding": (POSITIONS, H),
        "sent_embedding": (2, H),
        "pooled_fc.w_0": (H, H),
        "pooled_fc.b_0": (H,),
        "pre_encoder_layer_norm_scale": (H,),
        "pre_encoder_layer_norm_bias": (H,),
    }
    for i in range(LAYERS):
        name = f"encoder_layer_{i}"
        for part in ("query", "key", "value", "output"):
            shapes |= {f"{name}_multi_head_att_{part}_fc.w_0": (H, H), f"{name}_multi_head_att_{part}_fc.b_0": (H,)}
        shapes |= {f"{name}_ffn_fc_0.w_0": (H, INNER), f"{name}_ffn_fc_0.b_0": (INNER,)}
        shapes |= {f"{name}_ffn_fc_1.w_0": (INNER, H), f"{name}_ffn_fc_1.b_0": (H,)}
        for part in ("att", "ffn"):
            shapes |= {f"{name}_post_{part}_layer_norm_{kind}": (H,) for kind in ("scale", "bias")}
    if with_head:
        shapes |= {"mask_lm_trans_fc.w_0": (H, H), "mask_lm_trans_fc.b_0": (H,), "mask_lm_out_fc.b_0": (tokens,)}
        shapes |= {f"mask_lm_trans_layer_norm_{kind}": (H,) for kind in ("scale", "bias")}
    random = np.random.default_rng(seed)
    return {
        name: (random.standard_normal(shape) * 0.2 + name.endswith("scale")).astype(np.float32)
        for name, shape in shapes.items()
    }


def given_bert(vocabulary: Vocabulary, with_head: bool = False, seed: int = 0, **more: Any) -> Model:
    """Return a BERT with this vocabulary; `more` replaces fields of Model."""
    parameters = random_parameters(len(vocabulary), with_head, seed)
    fields: dict[str, Any] = {"config": BERT, "parameters": parameters, "vocabulary": vocabulary, **more}
    return Model(Path("given"), "bert", **fields)
