"""The interface of a term of the objective, and the records that are its input (paper, section 3).

A term is the mean over its predictions in the whole batch, over all processes; the objective is the sum of
weight x term. (Equations 5 and 6 of the paper are sums over positions.) The names of parameters that only one term has
begin with its name: formats recognise them by the names of the terms' weights in the stored settings. (Those of
comprehensive prediction begin with "fine_lm".)

Shape letters: B sequences, L slots, N = B * L, R query rows, M masked slots, H hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import paddle
from paddle import nn

from ernie_gram.model.parameters import HeadParameters
from ernie_gram.pretraining.chunked_softmax import CrossEntropy, SoftmaxOptions
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.trunk import Trunk
from ernie_gram.training.job import Feeds
from reader.batches.fields import Batch, Field


@dataclass(frozen=True)
class Encoded:
    """A batch after the encoders.

    Attributes:
        feeds: the batch.
        softmax: how softmaxes over the classes are computed.
        masked: the encoder's output in the masked slots, [M, H].
        context: the encoder's output in all slots, [N, H]; None if no term reads it.
        queries: the encoder's output in the query rows, [R, H]; None without query rows.
        generated: the generator's loss and its samples, or None without a generator.
    """

    feeds: Feeds
    softmax: SoftmaxOptions
    masked: paddle.Tensor
    context: paddle.Tensor | None
    queries: paddle.Tensor | None
    generated: CrossEntropy | None


@dataclass(frozen=True)
class Reference:
    """What evaluation compares with.

    Attributes:
        baseline: log p of every unit by its frequency, float64 [C]; None if training had other units.
        num_tokens: number of tokens, which are the first units; the others are n-grams.
    """

    baseline: npt.NDArray[np.float64] | None
    num_tokens: int


class Term(ABC):
    """A term of the objective. A method that is not abstract returns the value for a term without the feature.

    Attributes:
        name: as logged.
        fields: the batch fields that its loss reads.
        reads_context: whether it reads the encoder's output in other slots than the masked ones.
        num_sums: number of the `sums`; 0 without metrics. Held-out batches must have the fields of a term with metrics.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]] = ()
    reads_context: ClassVar[bool] = False
    num_sums: ClassVar[int] = 0

    def weight(self, objective: ObjectiveConfig) -> float:
        """Return its factor in the objective; a term of weight 0 does not exist."""
        return float(getattr(objective, f"{self.name}_weight"))

    @abstractmethod
    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Return the sum of the losses and the number of rows, float32 scalars; `layer`: the result of `self.layer`."""

    def num_rows(self, batch: Batch) -> int:
        """Return the number of rows that its loss counts in a batch: one for each label, the last of its fields."""
        return len(batch[self.fields[-1].name])

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> Any:
        """Return its own parameters: records of model/parameters.py, also in tuples or other records."""
        return None

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> nn.Layer | None:
        """Return its own part of the network, which has its parameters."""
        return None

    def fetches(self, layer: Any, trunk: Trunk, encoded: Encoded) -> dict[str, paddle.Tensor]:
        """Return the tensors that evaluation fetches for `sums`, by name."""
        return {}

    def sums(self, fetched: dict[str, np.ndarray], batch: Batch, reference: Reference) -> list[float]:
        """Return sums over a batch; those of several batches and processes are added. `fetched`: see `fetches`."""
        return []

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Return the metrics by name, given the `sums` over all batches."""
        return {}

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        """Return the operations of its matrix products in a forward pass, without those of encoders."""
        return 0


def summed(result: CrossEntropy) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Return the sum of the losses of a softmax and its number of rows, float32 scalars."""
    return result.total, paddle.shape(result.row_loss)[0].astype("float32")


def head_products(head: HeadParameters, rows: int) -> int:
    """Return the operations of the transform and the logits of a prediction head for `rows` rows, forward."""
    hidden, size = head.transform.weight.shape
    return 2 * rows * size * (hidden + head.bias.shape[0])
