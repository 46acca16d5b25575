"""Write a model as a folder that `paddle.inference` runs, with its tokenizer settings.

`ernie-gram infer` and `ernie-gram fill-mask` answer texts with such a folder, whose files are listed in
ernie_gram/inference/description.py.
"""

from __future__ import annotations

from pathlib import Path

from ernie_gram.distributed.world import World
from ernie_gram.formats.model import ModelRecord
from ernie_gram.inference.description import ENCODER, FILL_MASK, PROBABILITIES
from ernie_gram.pretraining.config import max_tokens, prediction_config
from reader.errors import InputError
from reader.lexicon.lexicon_file import segmenter_of


def check_exportable(model: ModelRecord, outputs: str) -> None:
    """Raise InputError if a model lacks the heads that these outputs need."""
    if outputs == FILL_MASK and model.pretraining is None:
        raise InputError(f"{model.source}: has no prediction heads; use --outputs {ENCODER}")


def export_model(model: ModelRecord, outputs: str, folder: Path, world: World) -> None:
    """Write a model as an exported model (see inference/description.py).

    Args:
        outputs: "encoder", for the vectors of inference/export.py; or "fill_mask", for the probabilities of
            all units in the masked slots, as `fill_mask` computes them. With a generator, the program draws its samples
            itself, the same ones as `fill_mask`.

    Raises InputError if the folder exists or cannot be written, or if the model lacks what these outputs need.
    """
    from ernie_gram.inference.export import ENCODER_SHAPES, export_program
    from ernie_gram.inference.forward import build_outputs, network_of

    check_exportable(model, outputs)
    shapes, lexicon = {PROBABILITIES: "MC"} if outputs == FILL_MASK else ENCODER_SHAPES, None
    network = network_of(model)
    program = build_outputs(network, tuple(shapes), portable=True)
    if outputs == FILL_MASK:
        objective = prediction_config(model).objective
        lexicon = model.lexicon if objective.is_explicit else None
        task = {"has_generator": objective.has_generator, "has_ngrams": lexicon is not None}
    else:
        task = {"has_sentence_types": model.config.has_sentence_types}
    export_program(
        folder,
        program,
        model,
        outputs,
        {name: shapes[name] for name in program.fetches},
        max_tokens(model),
        segmenter_of(model.lexicon),
        world.place,
        task,
        lexicon,
        network=network,
    )
