"""From a config to static programs that train, evaluate or predict, all over the same parameters.

Shape letters: N context slots of the batch, M predicted slots, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle

from ernie_gram.distributed import collectives as distributed
from ernie_gram.pretraining.chunked_softmax import probabilities
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import PretrainModel, Sizes
from ernie_gram.pretraining.objectives import (
    Encoded,
    Feeds,
    Loss,
    Softmax,
    Term,
    encode,
    masked_scores,
    softmax_of,
    terms_of,
)
from ernie_gram.training.optimization import adamw, clip_by_global_norm
from reader.batches import fields
from reader.batches.fields import Batch, Field


@dataclass(frozen=True)
class Program:
    """A program with what is needed to run it.

    Attributes:
        main, startup: Paddle's programs.
        feeds: names of the batch fields it reads.
        fetches: what it computes, by name.
        schedule: of the learning rate; None in a program that does not train.
    """

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: tuple[str, ...]
    fetches: dict[str, paddle.Tensor]
    schedule: paddle.optimizer.lr.LRScheduler | None = None

    def run(self, executor: paddle.static.Executor, batch: Batch) -> dict[str, np.ndarray]:
        """Run it once on a batch; returns its fetches as arrays."""
        values = executor.run(
            self.main, feed={name: batch[name] for name in self.feeds}, fetch_list=list(self.fetches.values())
        )
        return dict(zip(self.fetches, values, strict=True))

    @property
    def parameters(self) -> list[str]:
        """Names of the trained parameters, sorted."""
        return sorted(p.name for p in self.main.global_block().all_parameters() if not p.stop_gradient)


def placeholders(used: tuple[Field, ...]) -> Feeds:
    """Feeds for batch fields, every length left open."""
    return {field.name: paddle.static.data(field.name, [None] * len(field.shape), field.dtype) for field in used}


@dataclass(frozen=True)
class _Forward:
    """A program under construction: the model in it, what it reads, and the batch encoded."""

    main: paddle.static.Program
    startup: paddle.static.Program
    model: PretrainModel
    feeds: Feeds
    encoded: Encoded
    softmax: Softmax

    def losses(self, terms: list[Term]) -> list[Loss]:
        """The given terms' losses."""
        with _autocast(self.softmax.half):
            return [term.loss(self.model, self.encoded, self.feeds, self.softmax) for term in terms]

    def finished(
        self, fetches: dict[str, paddle.Tensor], schedule: paddle.optimizer.lr.LRScheduler | None = None
    ) -> Program:
        return Program(self.main, self.startup, tuple(self.feeds), fetches, schedule)


def _autocast(half: bool) -> AbstractContextManager[Any]:
    """Matrix products in bfloat16, if asked for."""
    return paddle.amp.auto_cast(dtype="bfloat16") if half else nullcontext()


@contextmanager
def _forward(config: PretrainConfig, sizes: Sizes, softmax: Softmax, terms: list[Term]) -> Iterator[_Forward]:
    """Build the model up to its encoders, with what `terms` read, and leave the program open for what is to follow."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    used = dict.fromkeys([fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS, *(f for term in terms for f in term.fields)])
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        model = PretrainModel(config, sizes)
        model.train() if softmax.train else model.eval()
        feeds = placeholders(tuple(used))
        with _autocast(softmax.half):
            encoded = encode(model, feeds, softmax)
        yield _Forward(main, startup, model, feeds, encoded, softmax)


def build_evaluation(config: PretrainConfig, sizes: Sizes) -> Program:
    """A program that fetches, for the first term, `row_loss` float32 [M] and `row_best` int64 [M], the top class;
    and, where there is a generator, its `generator_loss` float32 [M]."""
    first = terms_of(config.objective)[:1]
    with _forward(config, sizes, softmax_of(config, False, distributed.WORLD), first) as built:
        (loss,) = built.losses(first)
        assert loss.softmax is not None
        fetches = {"row_loss": loss.softmax.row_loss, "row_best": loss.softmax.row_best}
        if built.encoded.generated is not None:
            fetches["generator_loss"] = built.encoded.generated.row_loss
        return built.finished(fetches)


def build_prediction(config: PretrainConfig, sizes: Sizes) -> Program:
    """A program that fetches `probabilities`, float32 [M, C]: of every class in every predicted slot, a few at a time.

    Under contiguous masking the classes are the F tokens.
    """
    with _forward(config, sizes, Softmax(train=False, rows=1), []) as built:
        with _autocast(built.softmax.half):
            scores = masked_scores(built.model, built.encoded, built.feeds)
        return built.finished({"probabilities": probabilities(scores)})


def build_training(config: PretrainConfig, sizes: Sizes) -> Program:
    """A program that makes one update, and fetches `loss`, every term by its name, and `grad_norm`.

    A rank's loss is its share of the whole batch's: its rows, divided by the rows of all. Gradients and terms are
    then summed, and do not depend on how rows are dealt to ranks.
    """
    terms = terms_of(config.objective)
    with _forward(config, sizes, softmax_of(config, True, distributed.WORLD), terms) as built:
        losses = built.losses(terms)
        counts = paddle.stack([loss.count for loss in losses])
        counts.stop_gradient = True
        (counts,) = distributed.sum_over_ranks([counts])
        shares = [loss.total / counts[i] for i, loss in enumerate(losses)]
        total = paddle.add_n([share * term.weight for share, term in zip(shares, terms, strict=True)])
        optimizer, schedule = adamw(config)
        pairs = optimizer.backward(total, built.startup)
        # The terms ride in front of the gradients: one exchange less.
        here = paddle.stack([value.detach() for value in (total, *shares)])
        logged, *gradients = distributed.sum_over_ranks([here, *(gradient for _, gradient in pairs)])
        gradients, norm = clip_by_global_norm(gradients, config.optimizer.max_grad_norm)
        updates = [(parameter, gradient) for (parameter, _), gradient in zip(pairs, gradients, strict=True)]
        optimizer._apply_optimize(total, built.startup, updates)
        fetches = {"loss": logged[0], "grad_norm": norm}
        fetches |= {term.name: logged[i + 1] for i, term in enumerate(terms)}
        return built.finished(fetches, schedule)
