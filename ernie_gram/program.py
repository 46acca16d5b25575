"""From a config to static programs that train, evaluate or predict, all over the same parameters.

Shape letters: N context slots of the batch, M predicted slots, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import paddle
from paddle.nn import functional as F

from ernie_gram import distributed
from ernie_gram.config import PretrainConfig
from ernie_gram.model import PretrainModel, Sizes
from ernie_gram.objectives import Feeds, Rows, Term, terms_of
from ernie_gram.optimization import adamw, clip_by_global_norm
from reader import batch as fields
from reader.batch import Batch, Field


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
    """A program under construction: what it reads, and the rows of every term."""

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: tuple[str, ...]
    terms: list[Term]
    rows: list[Rows]


@contextmanager
def _forward(config: PretrainConfig, sizes: Sizes, train: bool) -> Iterator[_Forward]:
    """Build the model and its terms, and leave the program open for what is to follow."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    terms = terms_of(config.objective)
    used = (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS, *(term.labels for term in terms))
    half = config.optimizer.precision == "bfloat16"
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        model = PretrainModel(config.model, sizes, config.objective.masking == "explicit")
        model.train() if train else model.eval()
        feeds = placeholders(used)
        with paddle.amp.auto_cast(dtype="bfloat16") if half else nullcontext():
            hidden_NH = model.encoder(feeds[fields.INPUT_IDS.name], feeds[fields.LENGTHS.name])
            rows = [term.rows(model, hidden_NH, feeds) for term in terms]
        yield _Forward(main, startup, tuple(feeds), terms, rows)


def build_evaluation(config: PretrainConfig, sizes: Sizes) -> Program:
    """A program that fetches, for the first term, `row_loss` float32 [M] and `row_best` int64 [M], the top class."""
    with _forward(config, sizes, train=False) as built:
        rows = built.rows[0]
        fetches = {"row_loss": rows.loss, "row_best": rows.scores.argmax(-1)}
    return Program(built.main, built.startup, built.feeds, fetches)


def build_prediction(config: PretrainConfig, sizes: Sizes, most: int) -> Program:
    """A program that fetches, for the first term, the likeliest classes of each row, best first:
    `classes` int64 [M, most] and `probabilities` float32 [M, most]."""
    with _forward(config, sizes, train=False) as built:
        probabilities, classes = paddle.topk(F.softmax(built.rows[0].scores), most)
    return Program(built.main, built.startup, built.feeds, {"classes": classes, "probabilities": probabilities})


def build_training(config: PretrainConfig, sizes: Sizes) -> Program:
    """A program that makes one update, and fetches `loss`, every term by its name, and `grad_norm`.

    A rank's loss is its share of the whole batch's: its rows, divided by the rows of all. Gradients and terms are
    then summed, and do not depend on how rows are dealt to ranks.
    """
    with _forward(config, sizes, train=True) as built:
        counts = paddle.stack([paddle.shape(rows.loss)[0].astype("float32") for rows in built.rows])
        counts.stop_gradient = True
        (counts,) = distributed.sum_over_ranks([counts])
        shares = [rows.loss.sum() / counts[i] for i, rows in enumerate(built.rows)]
        total = paddle.add_n([share * term.weight for share, term in zip(shares, built.terms, strict=True)])
        optimizer, schedule = adamw(config)
        pairs = optimizer.backward(total, built.startup)
        # The terms ride in front of the gradients: one exchange less.
        here = paddle.stack([value.detach() for value in (total, *shares)])
        logged, *gradients = distributed.sum_over_ranks([here, *(gradient for _, gradient in pairs)])
        gradients, norm = clip_by_global_norm(gradients, config.optimizer.max_grad_norm)
        updates = [(parameter, gradient) for (parameter, _), gradient in zip(pairs, gradients, strict=True)]
        optimizer._apply_optimize(total, built.startup, updates)
        fetches = {"loss": logged[0], "grad_norm": norm}
        fetches |= {term.name: logged[i + 1] for i, term in enumerate(built.terms)}
    return Program(built.main, built.startup, built.feeds, fetches, schedule)
