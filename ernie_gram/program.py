"""From a config to static programs: one that trains, one that evaluates, over the same parameters."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import paddle

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


def build(config: PretrainConfig, sizes: Sizes, train: bool) -> Program:
    """Build the training program (train) or the evaluation program (not train).

    Training fetches `loss`, every term by its name, and `grad_norm`. Evaluation fetches, for the first term,
    `row_loss` float32 [M] and `row_best` int64 [M], the likeliest class.
    """
    main, startup = paddle.static.Program(), paddle.static.Program()
    terms = terms_of(config.objective)
    used = (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS, *(term.labels for term in terms))
    half = config.optimizer.precision == "bfloat16"
    cast = paddle.amp.auto_cast(dtype="bfloat16") if half else nullcontext()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        model = PretrainModel(config.model, sizes, config.objective.masking == "explicit")
        model.train() if train else model.eval()
        feeds = placeholders(used)
        with cast:
            hidden_NH = model.encoder(feeds[fields.INPUT_IDS.name], feeds[fields.LENGTHS.name])
            rows = [term.rows(model, hidden_NH, feeds) for term in terms]
        names = tuple(feeds)
        if not train:
            fetches = {"row_loss": rows[0].loss, "row_best": rows[0].scores.argmax(-1)}
            return Program(main, startup, names, fetches)
        return _training(config, main, startup, names, terms, rows)


def _training(
    config: PretrainConfig,
    main: paddle.static.Program,
    startup: paddle.static.Program,
    feeds: tuple[str, ...],
    terms: list[Term],
    rows: list[Rows],
) -> Program:
    """Add to a program the total of the terms, its gradient over all ranks, and the update.

    A rank's loss is its share of the whole batch's: its rows, divided by the rows of all. Gradients and terms are then
    summed, and do not depend on how rows are dealt to ranks.
    """
    counts = paddle.stack([paddle.shape(row.loss)[0].astype("float32") for row in rows])
    counts.stop_gradient = True
    (counts,) = distributed.sum_over_ranks([counts])
    shares = [row.loss.sum() / counts[i] for i, row in enumerate(rows)]
    total = paddle.add_n([share * term.weight for share, term in zip(shares, terms, strict=True)])
    optimizer, schedule = adamw(config)
    pairs = optimizer.backward(total, startup)
    # The terms ride in front of the gradients: one exchange less.
    terms_local = paddle.stack([total.detach(), *(share.detach() for share in shares)])
    logged, *gradients = distributed.sum_over_ranks([terms_local, *(gradient for _, gradient in pairs)])
    gradients, norm = clip_by_global_norm(gradients, config.optimizer.max_grad_norm)
    updates = [(parameter, gradient) for (parameter, _), gradient in zip(pairs, gradients, strict=True)]
    optimizer._apply_optimize(total, startup, updates)
    fetches = {"loss": logged[0], "grad_norm": norm}
    fetches |= {term.name: logged[i + 1] for i, term in enumerate(terms)}
    return Program(main, startup, feeds, fetches, schedule)
