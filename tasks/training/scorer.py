"""The program that computes the scores of a fine-tuned model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import paddle

from ernie_gram.config.checks import require
from ernie_gram.distributed.device import World
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference.exported_program import ExportedProgram
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.batches.fields import Batch
from reader.system.arrays import Float32s
from tasks.kinds.features import Features
from tasks.training.evaluation import batch_scores
from tasks.training.finetuned import LoadedModel
from tasks.training.network import TaskNetwork, build_prediction


def prediction_program(finetuned: LoadedModel, portable: bool = False) -> Program:
    """Return a program that fetches the scores of the units of a batch (see network.build_prediction)."""
    model = finetuned.model
    assert model is not None, "an exported program"
    rows = len(model.parameters["word_embedding"])
    network = TaskNetwork(finetuned.kind, model.config, rows, HEAD_TRANSFORM[0] in model.parameters)
    return build_prediction(network, finetuned.description.precision, portable)


class Scorer:
    """Computes the scores of a fine-tuned model; in static mode, and with its parameters in the current scope."""

    def __init__(self, finetuned: LoadedModel, world: World) -> None:
        """Load an exported program, or build one and set its parameters.

        Raises InputError if the parameters do not fit the settings, or if an exported program cannot be loaded here.
        """
        self._kind, self._world = finetuned.kind, world
        self._executor = paddle.static.Executor(world.place)
        self._run: Callable[[Batch], Mapping[str, Any]]
        if finetuned.model is None:
            precision, is_gpu = finetuned.description.precision, world.place.is_gpu_place()
            # Only exports from a GPU are in another precision, for which Paddle has no kernels on a CPU.
            reason = f"was exported on a GPU in {precision}; use it on a GPU, or export the run again on a CPU"
            require(is_gpu or precision == "float32", str(finetuned.source), reason)
            device = "auto" if is_gpu else "cpu"
            self._run = ExportedProgram(finetuned.source, device=device).run
            return
        program = prediction_program(finetuned)
        set_parameters(program.main, finetuned.model.parameters, str(finetuned.source), world.place)
        self._run = partial(program.run, self._executor)

    def scores(self, features: Features, batch_size: int) -> Float32s:
        """Return the scores of all units of some features, float32 [U, width], on every rank."""
        return batch_scores(self._executor, self._run, features, self._kind.width, batch_size, self._world)
