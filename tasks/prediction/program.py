"""The program that computes the scores of a fine-tuned model."""

from __future__ import annotations

import paddle

from ernie_gram.distributed.world import World
from ernie_gram.formats.model import Model
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference import predictor as exported_model
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.system.progress import progress
from tasks.data.features import Features, Float32s
from tasks.prediction.finetuned import Finetuned
from tasks.training.evaluation import Predictor
from tasks.training.network import SCORES, TaskNetwork, build_prediction
from tasks.training.scoring import batch_scores


def model_of(finetuned: Finetuned) -> Model:
    """Return the parameters of a model that is not an exported program."""
    assert finetuned.model is not None
    return finetuned.model


def network_of(finetuned: Finetuned) -> TaskNetwork:
    """Return the network of a fine-tuned model."""
    model = model_of(finetuned)
    rows = len(model.parameters["word_embedding"])
    return TaskNetwork(finetuned.kind, model.config, rows, HEAD_TRANSFORM[0] in model.parameters)


def prediction_program(finetuned: Finetuned) -> Program:
    """Return a program that fetches the scores of the units of a batch (see network.build_prediction)."""
    return build_prediction(network_of(finetuned), finetuned.description.precision)


def scores_of(finetuned: Finetuned, features: Features, batch_size: int, world: World) -> Float32s:
    """Return the scores of all units of some features, float32 [U, width], on every rank.

    Raises InputError if the parameters do not fit the settings, or if an exported program cannot be loaded.
    """
    if finetuned.model is None:
        exported = exported_model.Predictor(finetuned.source, device="auto" if world.place.is_gpu_place() else "cpu")
        width = finetuned.kind.width
        return batch_scores(lambda batch: exported.run(batch)[SCORES], features, width, batch_size)
    with progress("building the program"):
        program = prediction_program(finetuned)
        set_parameters(program.main, finetuned.model.parameters, str(finetuned.source), world.place)
    predictor = Predictor(network_of(finetuned), batch_size, finetuned.description.precision, program)
    return predictor.scores(paddle.static.Executor(world.place), features, world)
