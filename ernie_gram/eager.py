"""The network of a model as a layer of Paddle's dynamic mode: the same classes and parameters as in static programs.

Shape letters: B sequences, L slots, N = B * L, M selected rows, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import paddle
from paddle import nn

from ernie_gram.distributed.device import current_place
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import check_numbers, check_shapes
from ernie_gram.graph import dynamic_mode
from ernie_gram.model import parameters
from ernie_gram.model.attention import Attention, Shared
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Pooler
from ernie_gram.model.parameters import Shapes
from ernie_gram.pretraining.chunked_softmax import all_logits
from ernie_gram.pretraining.config import prediction_config
from ernie_gram.pretraining.network import PretrainModel
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.variables import check_array
from reader.batches import fields
from reader.batches.fields import Batch
from reader.errors import InputError


class ModelLayer(nn.Layer):
    """The encoder of a model, its pooler and its prediction heads.

    The name of a parameter is that in the formats (see model/parameters.py), so two such layers need two optimizers.

    Attributes:
        pretraining: encoder and prediction heads (see PretrainModel); None if the model has no heads.
        pooler: None if the model has none.
        loaded: the names and shapes of the parameters when it was loaded (see `_shapes`).
    """

    loaded: Shapes

    def __init__(
        self, config: ModelConfig, vocab_size: int, has_pooler: bool, pretraining: PretrainModel | None
    ) -> None:
        super().__init__()
        self.pretraining = pretraining
        self.own_encoder = None if pretraining else Encoder(parameters.encoder(config, vocab_size), config)
        self.pooler = Pooler(config) if has_pooler else None
        self.hidden_size = config.hidden_size

    @property
    def encoder(self) -> Encoder:
        """The encoder; it also takes query rows and replaced embeddings."""
        encoder = self.own_encoder if self.pretraining is None else self.pretraining.encoder
        assert isinstance(encoder, Encoder)
        return encoder

    def forward(
        self,
        input_ids_BL: paddle.Tensor,
        lengths_B: paddle.Tensor | None = None,
        sentence_ids_BL: paddle.Tensor | None = None,
    ) -> tuple[paddle.Tensor, paddle.Tensor | None]:
        """Return the encoder's output, float32 [B, L, H], and the pooler's, [B, H], or None without a pooler.

        Args:
            input_ids_BL: int64, token IDs with [CLS], [SEP] and padding at the end.
            lengths_B: int64, the number of slots that are not padding; None means L for all.
            sentence_ids_BL: int64, 1 for the second text of a pair, else 0; None means 0. They are read only if the
                model has sentence embeddings.
        """
        length = input_ids_BL.shape[1]
        if lengths_B is None:
            lengths_B = paddle.full([input_ids_BL.shape[0]], length, "int64")
        rows_NH, _ = self.encoder(input_ids_BL, lengths_B, sentence_ids_BL)
        hidden_BLH = rows_NH.reshape([-1, length, self.hidden_size])
        return hidden_BLH, None if self.pooler is None else self.pooler(hidden_BLH[:, 0])

    def unit_logits(self, hidden_MH: paddle.Tensor) -> paddle.Tensor:
        """Return the logits of all units, float32 [M, C], for rows of the encoder's output.

        The classes are the tokens and, after pre-training with explicit masking, the n-grams. Raises InputError if the
        model has no heads.
        """
        if self.pretraining is None:
            raise InputError("the model has no prediction heads; choose another model")
        return all_logits(self.pretraining.head(hidden_MH))


def load_layer(model: ModelRecord) -> ModelLayer:
    """Return the layer of a model, without dropout until `train()` is called; no random numbers are drawn.

    Raises InputError if a parameter is missing or has another shape, or if the settings of the heads are invalid.
    """
    arrays, rows = model.parameters, len(model.parameters["word_embedding"])
    with dynamic_mode():
        # LazyGuard: no memory and no start values. The second guard: Paddle would not use the same names twice.
        with paddle.LazyGuard(), paddle.utils.unique_name.guard():
            pretraining = None
            if model.pretraining is not None:
                sizes = CorpusSizes(len(model.vocabulary), len(model.lexicon) if model.lexicon else 0)
                pretraining = PretrainModel(prediction_config(model), sizes)
            layer = ModelLayer(model.config, rows, "pooled_fc.w_0" in arrays, pretraining)
        place = current_place()
        for parameter in layer.parameters():
            check_array(arrays, parameter.name, parameter.shape, str(model.source))
            parameter.get_tensor().set(arrays[parameter.name], place)
    layer.eval()
    layer.loaded = _shapes(layer)
    return layer


def _shapes(layer: nn.Layer) -> Shapes:
    """Return the shapes of the parameters of a layer, by their places in it and their names."""
    with dynamic_mode():
        return {f"{place} ({each.name})": tuple(each.shape) for place, each in layer.named_parameters()}


def with_parameters_of(layer: ModelLayer, model: ModelRecord) -> ModelRecord:
    """Return a model with the current parameters of its layer; the model itself if they are equal to its own.

    Raises InputError if the network has other parameters than when it was loaded, or numbers that are not finite.
    """
    check_shapes(_shapes(layer), layer.loaded, "layer")
    with dynamic_mode(), paddle.no_grad():
        present = {each.name: np.asarray(each.astype("float32")) for each in layer.parameters()}
    check_numbers(present, "layer")
    if all(np.array_equal(values, model.parameters[name]) for name, values in present.items()):
        return model
    # Its scores are those of the parameters that were read.
    training = model.training and replace(model.training, scores={})
    return replace(model, parameters=model.parameters | present, training=training)


def attention_weights(layer: ModelLayer, batch: Batch) -> np.ndarray:
    """Return the attention of the encoder's slots to each other, without dropout, float32 [layers, B, A, L, L].

    The element [i, b, a, q, k] is the weight of the key of slot k for the query of slot q, in layer i and head a. The
    weights of a query add up to 1; those of padding keys are 0.
    """
    weights: list[np.ndarray] = []

    def keep(attention: Attention, inputs: tuple[paddle.Tensor, Shared]) -> None:
        weights.append(attention.context_weights(*inputs).numpy())

    hooks = [part.attention.register_forward_pre_hook(keep) for part in layer.encoder.layers]
    inputs = (fields.INPUT_IDS, fields.LENGTHS, fields.SENTENCE_IDS)
    try:
        with dynamic_mode(), paddle.no_grad(), _evaluating(layer):
            layer(*(paddle.to_tensor(batch[field.name]) for field in inputs))
    finally:
        for hook in hooks:
            hook.remove()
    return np.stack(weights)


@contextmanager
def _evaluating(layer: nn.Layer) -> Iterator[None]:
    """Switch off dropout in the context, and leave every part of the layer as it was."""
    states = [(part, part.training) for part in layer.sublayers(include_self=True)]
    layer.eval()
    try:
        yield
    finally:
        for part, training in states:
            part.training = training
