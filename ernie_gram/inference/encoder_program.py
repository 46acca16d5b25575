"""The program that computes the outputs of an encoder, without any head.

Shape letters: B sequences, L slots, N = B * L, H hidden.
"""

from __future__ import annotations

import paddle

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.model.pooler import Pooler
from ernie_gram.training.program import Program, open_program
from reader.batches import fields

# The fetches and their shapes.
SHAPES = {"hidden": "BLH", "cls": "BH", "mean": "BH", "pooled": "BH"}


def build_encoder(config: ModelConfig, vocab_size: int) -> Program:
    """Build a program that encodes token IDs without dropout; it also reads sentence IDs if the model uses them.

    It fetches, in float32:
        hidden: [B, L, H], the encoder's output in every slot; those of padding have no meaning.
        cls: [B, H], the output in the first slot.
        mean: [B, H], the mean over the slots without padding, those of [CLS] and [SEP] included.
        pooled: [B, H], the pooler's output; only for a model that has one.
    """
    sentences = [fields.SENTENCE_IDS] if config.use_sentence_embedding else []
    with open_program([fields.INPUT_IDS, fields.LENGTHS, *sentences]) as opened:
        ids_BL, lengths_B = opened.feeds[fields.INPUT_IDS.name], opened.feeds[fields.LENGTHS.name]
        encoder = Encoder(parameters.encoder(config, vocab_size), config)
        encoder.eval()
        rows_NH, _ = encoder(ids_BL, lengths_B, opened.feeds.get(fields.SENTENCE_IDS.name))
        length = paddle.shape(ids_BL)[1]
        hidden_BLH = rows_NH.reshape([-1, length, config.hidden_size])
        is_real_BL1 = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).astype("float32").unsqueeze(2)
        mean_BH = (hidden_BLH * is_real_BL1).sum(1) / lengths_B.astype("float32").unsqueeze(1)
        fetches = {"hidden": hidden_BLH, "cls": hidden_BLH[:, 0], "mean": mean_BH}
        if config.use_pooler:
            fetches["pooled"] = Pooler(config)(rows_NH, length)
        return opened.finish(fetches)
