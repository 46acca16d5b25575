"""The program that computes the scores of a fine-tuned model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import paddle

from ernie_gram.config.checks import require
from ernie_gram.config.loading import config_from_tree
from ernie_gram.distributed.device import World
from ernie_gram.formats.model import Model
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference.exported_program import ExportedProgram
from ernie_gram.inference.forward import Forward
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.program import Program
from reader.batches.fields import Batch
from reader.system.arrays import Float32s
from tasks.kinds.base import Kind
from tasks.kinds.features import Features
from tasks.training.evaluation import batch_scores
from tasks.training.finetuned import LoadedModel
from tasks.training.network import SCORES, TaskNetwork, build_prediction


def network_of(model: Model) -> dict[str, Any]:
    """Return what `build_scores` needs of a fine-tuned model, as JSON values."""
    config = replace(model.config, vocab_size=len(model.parameters["word_embedding"]))
    return {"model": asdict(config), "has_lm_transform": HEAD_TRANSFORM[0] in model.parameters}


def build_scores(
    kind: Kind[Any, Any],
    network: Mapping[str, Any],
    _: Sequence[str] = (SCORES,),
    precision: str = "float32",
    portable: bool = False,
) -> Program:
    """Build a program that fetches the scores of the units of a batch (see network.build_prediction)."""
    config = config_from_tree(ModelConfig, network["model"], "network")
    rows = network["model"]["vocab_size"]
    return build_prediction(TaskNetwork(kind, config, rows, network["has_lm_transform"]), precision, portable)


class Scorer:
    """Computes the scores of a fine-tuned model; in static mode."""

    def __init__(self, finetuned: LoadedModel, world: World) -> None:
        """Load an exported program, or prepare one with its parameters.

        Raises InputError if the parameters do not fit the settings, or if an exported program cannot be loaded here.
        """
        self._kind, self._world = finetuned.kind, world
        self._executor = paddle.static.Executor(world.place)
        self._run: Callable[[Batch], Mapping[str, Any]]
        build, precision = partial(build_scores, finetuned.kind), finetuned.description.precision
        if finetuned.model is None:
            is_gpu, own = world.place.is_gpu_place(), finetuned.exported_in
            # Only exports from a GPU are in another precision, for which Paddle has no kernels on a CPU.
            reason = f"was exported on a GPU in {own}; use it on a GPU, or export the run again on a CPU"
            require(is_gpu or own == "float32", str(finetuned.source), reason)
            require(not is_gpu or own == precision, "precision", f"on a GPU, this program has its own, {own}")
            device, changed = ("auto", "float32") if is_gpu else ("cpu", precision)
            self._run = ExportedProgram(finetuned.source, device=device, precision=changed, build=build).run
            return
        model = finetuned.model
        built = partial(build, network_of(model), precision=precision)
        forward = Forward(built, model.parameters, str(finetuned.source), world.place)
        forward.prepare([SCORES])
        self._run = partial(forward.run, names=[SCORES])

    def scores(self, features: Features, batch_size: int) -> Float32s:
        """Return the scores of all units of some features, float32 [U, width], on every rank."""
        return batch_scores(self._executor, self._run, features, self._kind.width, batch_size, self._world)
