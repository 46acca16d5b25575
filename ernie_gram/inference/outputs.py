"""Build the program of some outputs of a model: the encoder's, or the probabilities of units in masked slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from paddle import nn

from ernie_gram.distributed.device import current_place
from ernie_gram.formats.heads import is_explicit
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import model_config
from ernie_gram.inference.description import PROBABILITIES
from ernie_gram.inference.export import build_encoder
from ernie_gram.inference.forward import Forward
from ernie_gram.pretraining.config import stored_config
from ernie_gram.pretraining.network import build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import Program


def network_of(model: ModelRecord) -> dict[str, Any]:
    """Return what `build_outputs` needs of a model, as JSON values: its shape, its heads, and numbers of units."""
    heads, tokens = model.pretraining, len(model.vocabulary)
    ngrams = len(model.lexicon) if heads is not None and is_explicit(heads) and model.lexicon is not None else 0
    config = replace(model.config, vocab_size=len(model.parameters["word_embedding"]))
    return {"model": asdict(config), "pretraining": heads, "tokens": tokens, "ngrams": ngrams}


def forward_of(model: ModelRecord, layer: nn.Layer | None, precision: str) -> Forward:
    """Return the forward program of a model, with the present parameters of a layer of it if there is one."""
    parameters = model.parameters if layer is None else {each.name: each for each in layer.parameters()}
    build = partial(build_outputs, network_of(model), precision=precision)
    return Forward(build, parameters, str(model.source), current_place())


def build_outputs(
    network: Mapping[str, Any], names: Sequence[str], precision: str = "float32", portable: bool = False
) -> Program:
    """Build a program without dropout.

    Args:
        network: of a model with heads, if they are needed; see `network_of`.
        names: of what it fetches: see build_encoder; or only "probabilities", of all units in the slots of the field
            `slots`, [M, C]; a generator's samples fill the masks first.
        precision, portable: see `open_program`.

    Raises InputError for invalid settings.
    """
    if PROBABILITIES not in names:
        config = model_config(network["model"], "network")
        return build_encoder(config, network["model"]["vocab_size"], names, precision, portable)
    heads = stored_config(network["pretraining"], network["model"], "network")
    return build_prediction(heads, CorpusSizes(network["tokens"], network["ngrams"]), precision, portable)
