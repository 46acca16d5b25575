"""Static programs: a record of what is needed to run one, and the program that makes one update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_over_ranks
from ernie_gram.distributed.world import World
from ernie_gram.run.heartbeat import beat
from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.job import Feeds, Network
from ernie_gram.training.optimization import adamw, clip_by_global_norm, scale_rates
from reader.batches.fields import Batch, Field


@dataclass(frozen=True)
class Program:
    """A program and what is needed to run it.

    Attributes:
        main, startup: Paddle's programs.
        feeds: names of the batch fields that it reads.
        fetches: what it computes, by name.
        schedule: of the learning rate; None for a program that does not train.
    """

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: tuple[str, ...]
    fetches: dict[str, paddle.Tensor]
    schedule: paddle.optimizer.lr.LRScheduler | None = None

    def run(self, executor: paddle.static.Executor, batch: Batch) -> dict[str, np.ndarray]:
        """Run the program once on a batch; return its fetches as arrays."""
        values = executor.run(
            self.main, feed={name: batch[name] for name in self.feeds}, fetch_list=list(self.fetches.values())
        )
        beat()
        return dict(zip(self.fetches, values, strict=True))

    @property
    def parameters(self) -> list[str]:
        """Names of the trained parameters, sorted."""
        return sorted(p.name for p in self.main.global_block().all_parameters() if not p.stop_gradient)


@dataclass(frozen=True)
class OpenProgram:
    """A program that is being built, and its placeholders by field name."""

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: Feeds

    def finish(
        self, fetches: dict[str, paddle.Tensor], schedule: paddle.optimizer.lr.LRScheduler | None = None
    ) -> Program:
        """Return the finished program."""
        return Program(self.main, self.startup, tuple(self.feeds), fetches, schedule)


@contextmanager
def open_program(fields: Iterable[Field]) -> Iterator[OpenProgram]:
    """Open a new program with placeholders for batch fields; operations made in the context belong to it."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        feeds = {f.name: paddle.static.data(f.name, [None] * len(f.shape), f.dtype) for f in dict.fromkeys(fields)}
        yield OpenProgram(main, startup, feeds)


def autocast(precision: str) -> AbstractContextManager[Any]:
    """Return a context in which matrix products are computed in `precision`, "float32" or "bfloat16"."""
    return paddle.amp.auto_cast(dtype="bfloat16") if precision == "bfloat16" else nullcontext()


def build_training(
    network: Network,
    settings: OptimizerConfig,
    learning_rate: Callable[[int], float],
    world: World,
    rate_scale: Callable[[str], float] | None = None,
) -> Program:
    """Build a program that makes one update, and fetches `loss`, each term by its name, and `grad_norm`.

    The loss of a rank is its share of the loss of the whole batch: the sum over its rows, divided by the number of rows
    of all ranks. So the sum of the gradients over ranks does not depend on how rows are distributed among them.

    Args:
        network, settings, learning_rate, rate_scale: those of a Job.
    """
    with open_program(network.fields) as opened:
        with autocast(settings.precision):
            terms = network.losses(opened.feeds)
        counts = paddle.stack([term.count for term in terms])
        counts.stop_gradient = True
        (counts,) = sum_over_ranks([counts], world)
        shares = [term.total / counts[i] for i, term in enumerate(terms)]
        total = paddle.add_n([share * term.weight for share, term in zip(shares, terms, strict=True)])
        optimizer, schedule = adamw(settings, learning_rate)
        pairs = optimizer.backward(total, opened.startup)
        # The terms are exchanged together with the first gradients: that saves one exchange.
        local = paddle.stack([value.detach() for value in (total, *shares)])
        logged, *gradients = sum_over_ranks([local, *(gradient for _, gradient in pairs)], world)
        gradients, norm = clip_by_global_norm(gradients, settings.max_grad_norm)
        updates = [(parameter, gradient) for (parameter, _), gradient in zip(pairs, gradients, strict=True)]
        if rate_scale is not None:
            scale_rates([parameter for parameter, _ in updates], rate_scale)
        # Private in Paddle (3.3.1): `minimize` and `apply_gradients` would clip before the sum over ranks, or not run
        # in a static program of its new intermediate representation (PIR) at all.
        optimizer._apply_optimize(total, opened.startup, updates)
        fetches = {"loss": logged[0], "grad_norm": norm}
        fetches |= {term.name: logged[i + 1] for i, term in enumerate(terms)}
        return opened.finish(fetches, schedule)
