"""The network of a task: encoder, head and losses, for the training program and the prediction program.

Shape letters: U units of a batch, N slots of all its inputs, H hidden, W width of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import paddle
from paddle import nn

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.training.job import Feeds, LossTerm
from ernie_gram.training.program import Program, open_program
from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, Field
from tasks.kinds.base import Kind
from tasks.kinds.networks import KindHead

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
