"""Answer batches with a program that has no gradients: the one way in which models are computed after training.

It has the kernels for this processor, and reads its parameters where they are: in the arrays of a file, or in a layer
that is being trained. The outputs of a model are the encoder's, or the probabilities of units in masked slots.

Shape letters: B sequences, L slots, N = B * L, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import paddle
from paddle import nn

from ernie_gram.distributed.device import current_place
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.untrusted.arrays import forget_pages
from ernie_gram.graph import static_mode
from ernie_gram.inference.description import PROBABILITIES
from ernie_gram.kernels import products
from ernie_gram.model import parameters as declared
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Pooler
from ernie_gram.paddle_private import share_memory
from ernie_gram.pretraining.config import prediction_config
from ernie_gram.pretraining.network import build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import Program, open_program
from ernie_gram.training.variables import check_array
from reader.batches import fields
from reader.batches.fields import FIELDS, Batch

# The fetches and their shapes.
ENCODER_SHAPES = {"hidden": "BLH", "cls": "BH", "mean": "BH", "pooled": "BH"}


class Forward:
    """A network without dropout: a program for each selection of outputs, and the parameters of all of them."""

    def __init__(
        self,
        build: Callable[[tuple[str, ...], str], Program],
        parameters: Mapping[str, Any],
        source: str,
        precision: str = "float32",
    ) -> None:
        """Nothing is built before the first run, which is on the present device.

        Args:
            build: builds the program that fetches outputs of some names, with products in a precision.
            parameters: arrays by name, more than are needed perhaps, which must stay unchanged as long as this object
                is used. Or the tensors of a layer on this device: then each run reads their present values.
            source: whose parameters these are, for errors.
            precision: of matrix products.
        """
        self._build, self._parameters, self._source = build, dict(parameters), source
        self._place = place = current_place()
        self._is_layer = isinstance(next(iter(self._parameters.values()), None), paddle.Tensor)
        self._precision, self._packed = precision, dict[int, products.Packed]()
        self._executor = paddle.static.Executor(place)
        self._scope, self._programs = paddle.static.Scope(), dict[tuple[str, ...], Program]()

    def prepare(self, names: Sequence[str]) -> Program:
        """Build the program of some outputs, unless that was done before.

        Raises InputError, which names the source, if a parameter is missing or has another shape, and if this device
        lacks the precision of the program.
        """
        key = tuple(names)
        if key not in self._programs:
            with static_mode(self._scope):
                program = self._build(key, self._precision)
                self._set_parameters(program)
                self._programs[key] = program
        return self._programs[key]

    def run(self, batch: Batch, names: Sequence[str], seed: int | None = None) -> dict[str, np.ndarray]:
        """Return outputs for a batch by name.

        Args:
            seed: of the samples that the program draws, if it draws any.

        Raises InputError as `prepare` does.
        """
        program = self.prepare(names)
        with static_mode(self._scope):
            for name in program.parameters if self._is_layer else ():
                share_memory(self._scope.var(name).get_tensor(), self._parameters[name])
            if seed is not None:
                paddle.seed(seed)
            given = {name: np.ascontiguousarray(batch[name], FIELDS[name].dtype) for name in program.feeds}
            with products.using(self._packed):
                return program.run(self._executor, given)

    def _set_parameters(self, program: Program) -> None:
        parameters = program.main.global_block().all_parameters()
        for parameter in [each for each in parameters if each.use_empty()]:  # of heads that these outputs do not need
            parameter.get_defining_op().erase()
        is_on_cpu = self._place.is_cpu_place()
        for parameter in program.main.global_block().all_parameters():
            name = parameter.name
            check_array(self._parameters, name, parameter.shape, self._source)
            if self._is_layer or self._scope.find_var(name) is not None:
                continue
            # On a CPU, without a copy.
            self._scope.var(name).get_tensor().set(self._parameters[name], self._place, is_on_cpu)
            if is_on_cpu and "encoder_layer_" in name and len(parameter.shape) == 2:
                self._pack(self._parameters[name])

    def _pack(self, array: np.ndarray) -> None:
        """Pack a matrix of weights, whose own memory is then given back if it is that of a file."""
        packed = products.pack(array, self._precision == "bfloat16")
        if packed is not None:
            self._packed[array.ctypes.data] = packed
            forget_pages(array)


def forward_of(model: ModelRecord, layer: nn.Layer | None, precision: str) -> Forward:
    """Return the forward program of a model, with the present parameters of a layer of it if there is one."""
    parameters = model.parameters if layer is None else {each.name: each for each in layer.parameters()}
    return Forward(partial(build_outputs, model), parameters, str(model.source), precision)


def build_outputs(
    model: ModelRecord, names: Sequence[str], precision: str = "float32", portable: bool = False
) -> Program:
    """Build a program without dropout.

    Args:
        model: with heads, if they are needed.
        names: of what it fetches: see build_encoder; or only "probabilities", of all units in the slots of the field
            `slots`, [M, C]; a generator's samples fill the masks first.
        precision, portable: see `open_program`.

    Raises InputError for invalid settings.
    """
    if PROBABILITIES not in names:
        return build_encoder(model.config, len(model.parameters["word_embedding"]), names, precision, portable)
    sizes = CorpusSizes(len(model.vocabulary), len(model.lexicon or ()))
    return build_prediction(prediction_config(model), sizes, precision, portable)


def build_encoder(
    config: ModelConfig,
    vocab_size: int,
    names: Collection[str] = tuple(ENCODER_SHAPES),
    precision: str = "float32",
    portable: bool = False,
) -> Program:
    """Build a program that encodes token IDs without dropout; it also reads sentence IDs if the model uses them.

    Args:
        names: of what it fetches, in float32:
            hidden: [B, L, H], the encoder's output in every slot; those of padding have no meaning.
            cls: [B, H], the output in the first slot.
            mean: [B, H], the mean over the slots without padding, those of [CLS] and [SEP] included.
            pooled: [B, H], the pooler's output; left out if the model has no pooler.
        precision, portable: see `open_program`.
    """
    sentences = [fields.SENTENCE_IDS] if config.use_sentence_embedding else []
    with open_program([fields.INPUT_IDS, fields.LENGTHS, *sentences], precision, portable) as opened:
        ids_BL, lengths_B = opened.feeds[fields.INPUT_IDS.name], opened.feeds[fields.LENGTHS.name]
        encoder = Encoder(declared.encoder(config, vocab_size), config)
        encoder.eval()
        sentence_ids_BL, length = opened.feeds.get(fields.SENTENCE_IDS.name), paddle.shape(ids_BL)[1]
        if not {"hidden", "mean"} & set(names):
            first_B = paddle.arange(paddle.shape(ids_BL)[0]) * length
            cls_BH, _ = encoder(ids_BL, lengths_B, sentence_ids_BL, wanted_M=first_B)
            found = {"cls": cls_BH}
        else:
            rows_NH, _ = encoder(ids_BL, lengths_B, sentence_ids_BL)
            hidden_BLH = rows_NH.reshape([-1, length, config.hidden_size])
            cls_BH = hidden_BLH[:, 0]
            found = {"hidden": hidden_BLH, "cls": cls_BH}
        if "mean" in names:
            is_real_BL1 = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).astype("float32").unsqueeze(2)
            found["mean"] = (hidden_BLH * is_real_BL1).sum(1) / lengths_B.astype("float32").unsqueeze(1)
        if config.use_pooler and "pooled" in names:
            found["pooled"] = Pooler(config)(cls_BH)
        return opened.finish({name: found[name] for name in names if name in found})
