"""The program that computes the scores of a fine-tuned model."""

from __future__ import annotations

import paddle

from ernie_gram.distributed.ranks import World
from ernie_gram.formats.model import Model
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference.exported_program import ExportedProgram
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.system.progress import progress
from tasks.data.features import Features, Float32s
from tasks.prediction.finetuned import LoadedModel
from tasks.training.evaluation import Predictor
from tasks.training.network import SCORES, TaskNetwork, build_prediction
from tasks.training.scoring import batch_scores


def model_of(finetuned: LoadedModel) -> Model:
    """Return the parameters of a model that is not an exported program."""
    assert finetuned.model is not None
    return finetuned.model


def network_of(finetuned: LoadedModel) -> TaskNetwork:
    """Return the network of a fine-tuned model."""
    model = model_of(finetuned)
    rows = len(model.parameters["word_embedding"])
    return TaskNetwork(finetuned.kind, model.config, rows, HEAD_TRANSFORM[0] in model.parameters)


def prediction_program(finetuned: LoadedModel, portable: bool = False) -> Program:
    """Return a program that fetches the scores of the units of a batch (see network.build_prediction)."""
    return build_prediction(network_of(finetuned), finetuned.description.precision, portable)


class Scorer:
    """Computes the scores of a fine-tuned model; in static mode, and with its parameters in the current scope."""

    def __init__(self, finetuned: LoadedModel, world: World) -> None:
        """Load an exported program, or build one and set its parameters.

        Raises InputError if the parameters do not fit the settings, or if an exported program cannot be loaded.
        """
        self._finetuned, self._world = finetuned, world
        if finetuned.model is None:
            device = "auto" if world.place.is_gpu_place() else "cpu"
            self._exported = ExportedProgram(finetuned.source, device=device)
            return
        with progress("building the program"):
            self._program = prediction_program(finetuned)
            set_parameters(self._program.main, finetuned.model.parameters, str(finetuned.source), world.place)
        self._executor = paddle.static.Executor(world.place)

    def scores(self, features: Features, batch_size: int) -> Float32s:
        """Return the scores of all units of some features, float32 [U, width], on every rank."""
        finetuned = self._finetuned
        if finetuned.model is None:
            run = self._exported.run
            return batch_scores(lambda batch: run(batch)[SCORES], features, finetuned.kind.width, batch_size)
        predictor = Predictor(network_of(finetuned), batch_size, finetuned.description.precision, self._program)
        return predictor.scores(self._executor, features, self._world)
