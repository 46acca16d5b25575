"""The network of a task: encoder, head and losses, and the programs that compute scores with it.

Shape letters: U units of a batch, N slots of all its inputs, H hidden, W width of the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import paddle
from paddle import nn

from ernie_gram.config.checks import require
from ernie_gram.config.loading import config_from_tree
from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference.exported_program import ExportedProgram
from ernie_gram.inference.forward import Forward
from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.run.termination import until_requested
from ernie_gram.training.job import Feeds, LossTerm
from ernie_gram.training.program import Program, open_program
from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, Batch, Field
from reader.system.arrays import Float32s
from reader.system.progress import progress
from tasks.kinds.base import Kind, Predictions
from tasks.kinds.features import Features
from tasks.kinds.networks import KindHead
from tasks.training.batches import evaluation_batches
from tasks.training.data import SplitData
from tasks.training.finetuned import LoadedModel

SCORES = "scores"


def head_class(kind: Kind[Any, Any] | type[Kind[Any, Any]]) -> Any:
    """Return the class of the layers above the encoder (see Kind.head)."""
    module, _, name = kind.head.rpartition(".")
    return getattr(import_module(module), name)


class TaskModel(nn.Layer):
    """The encoder and the head of a kind."""

    def __init__(self, network: TaskNetwork) -> None:
        super().__init__()
        kind, config = network.kind, network.config
        self.encoder = Encoder(parameters.encoder(config, network.vocab_size), config)
        self.head: KindHead = head_class(kind)(kind, config, network.has_lm_transform)

    def forward(self, feeds: Feeds) -> paddle.Tensor:
        """Return the scores of the head (see Kind.head)."""
        inputs = feeds[INPUT_IDS.name], feeds[LENGTHS.name], feeds[SENTENCE_IDS.name]
        hidden, _ = self.encoder(*inputs, wanted_M=self.head.slots(feeds))
        return self.head(hidden, feeds)


@dataclass(frozen=True)
class TaskNetwork:
    """The Network of a fine-tuning Job (see training/job.py).

    Attributes:
        config: the shape of the encoder; its dropout rates apply to the encoder.
        vocab_size: rows of the token embedding.
        has_lm_transform: whether the start model has `mask_lm_trans_fc` (see HeadSettings.lm_transform).
    """

    kind: Kind[Any, Any]
    config: ModelConfig
    vocab_size: int
    has_lm_transform: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        """The batch fields that training reads."""
        return self.kind.training_fields

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        """Build the network with dropout, and the losses of the kind."""
        model = TaskModel(self)
        model.train()
        # Losses are float32, whatever the precision of the network.
        scores = model(feeds).astype("float32")
        terms: list[LossTerm] = model.head.losses(scores, feeds, self.kind.settings.head)
        return terms

    def scores(self, feeds: Feeds) -> paddle.Tensor:
        """Build the network without dropout; return the scores of the units of a batch, float32 [U, W]."""
        model = TaskModel(self)
        model.eval()
        return model(feeds).astype("float32")


def build_prediction(network: TaskNetwork, precision: str = "float32", portable: bool = False) -> Program:
    """Build a program over the same parameters that fetches `scores`, float32 [U, W], of the units of a batch.

    The rows are those of Features.unit_rows.
    """
    with open_program(network.kind.input_fields, precision, portable) as opened:
        return opened.finish({SCORES: network.scores(opened.feeds)})


def batch_scores(
    executor: paddle.static.Executor,
    run: Callable[[Batch], Mapping[str, Any]],
    features: Features,
    width: int,
    batch_size: int,
    world: World,
) -> Float32s:
    """Return the scores of all units of some features, float32 [U, width], on every rank.

    Each rank computes whole batches. They, and thus the scores, do not depend on the number of ranks.

    Args:
        run: returns the scores of the units of a batch as SCORES, whatever computes them.
        width: see Kind.width.
    """
    scores = np.zeros((features.num_units, width), np.float32)
    batches = evaluation_batches(features.lengths, batch_size)[world.rank :: world.size]
    with progress("predicting", sum(map(len, batches)), " samples") as bar:
        for samples in until_requested(batches):
            scores[features.unit_rows(samples)] = run(features.batch(samples))[SCORES]
            bar.update(len(samples))
    # The rows of other ranks are 0.
    return sum_array(executor, scores, world)


class Predictor:
    """Computes the scores of a network with the parameters of the current scope."""

    def __init__(self, network: TaskNetwork, batch_size: int, precision: str = "float32") -> None:
        self.kind, self._network, self._batch_size, self._precision = network.kind, network, batch_size, precision
        self._program: Program | None = None  # built at the first use

    def scores(self, executor: paddle.static.Executor, features: Features, world: World) -> Float32s:
        """Return the scores of all units of some features, see `batch_scores`."""
        program = self._program = self._program or build_prediction(self._network, self._precision)
        run = partial(program.run, executor)
        return batch_scores(executor, run, features, self.kind.width, self._batch_size, world)

    def predict(
        self, executor: paddle.static.Executor, splits: Sequence[SplitData], world: World
    ) -> Iterator[tuple[SplitData, Predictions]]:
        """Yield each split with its predictions, on every rank.

        A threshold for "no answer" that is not set is chosen on the first split, and used on all of them.
        """
        kind = self.kind
        for split in splits:
            predictions = kind.decode(self.scores(executor, split.features, world), split.features, split.examples)
            kind = kind.with_null_threshold(predictions.null_threshold)
            yield split, predictions


def network_of(model: ModelRecord) -> dict[str, Any]:
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
