"""Build and run static programs, in particular the program that makes one update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_over_ranks
from ernie_gram.distributed.device import World
from ernie_gram.distributed.row_gradients import Gradient, Lookups, RowGradient, sent_bytes, sum_gradients, take_lookups
from ernie_gram.graph import can_fuse, computing
from ernie_gram.kernels.custom_operations import raised_as_they_are
from ernie_gram.kernels.products import check_precision
from ernie_gram.paddle_private import prepared_run
from ernie_gram.run.termination import beat
from ernie_gram.training.job import Feeds, Job, LossTerm
from ernie_gram.training.loss_scale import UpdateGuard
from ernie_gram.training.optimization import add_adamw, clip_by_global_norm
from ernie_gram.training.recompute import recompute_layers
from ernie_gram.training.step_values import add_loss_sums, add_step_values, not_finite
from reader.batches.fields import Batch, Field


@dataclass(frozen=True)
class Program:
    """A program and what is needed to run it.

    Attributes:
        main, startup: Paddle's programs.
        feeds: names of the batch fields that it reads.
        fetches: what it computes, by name. A program that trains also keeps them on the device (see step_values.py).
    """

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: tuple[str, ...]
    fetches: dict[str, paddle.Tensor]
    _prepared: dict[tuple[int, int, bool], Any] = field(default_factory=dict, init=False, repr=False)

    def run(self, executor: paddle.static.Executor, batch: Batch) -> dict[str, np.ndarray]:
        """Run the program once on a batch; return its fetches as arrays."""
        values = self._run(executor, batch, list(self.fetches.values()))
        beat()
        return dict(zip(self.fetches, values, strict=True))

    def step(self, executor: paddle.static.Executor, batch: Batch) -> None:
        """Run the program once on a batch, and fetch nothing, so that a GPU need not have finished at the return."""
        self._run(executor, batch, [])
        beat()

    def _run(self, executor: paddle.static.Executor, batch: Batch, fetched: list[paddle.Tensor]) -> list[np.ndarray]:
        key = id(executor), paddle.static.global_scope().raw_address(), bool(fetched)
        with raised_as_they_are():
            if key not in self._prepared:
                self._prepared[key] = prepared_run(executor, self.main, fetched)
            found: list[np.ndarray] = self._prepared[key]({name: batch[name] for name in self.feeds})
            return found

    @property
    def parameters(self) -> list[str]:
        """Names of the trained parameters, sorted."""
        return sorted(p.name for p in self.main.global_block().all_parameters() if not p.stop_gradient)


@dataclass(frozen=True)
class OpenProgram:
    """A program that is being built, and its placeholders by field name; see `open_program`."""

    main: paddle.static.Program
    startup: paddle.static.Program
    feeds: Feeds
    precision: str
    portable: bool

    def finish(self, fetches: dict[str, paddle.Tensor]) -> Program:
        """Return the finished program."""
        return Program(self.main, self.startup, tuple(self.feeds), fetches)


@contextmanager
def open_program(
    fields: Iterable[Field], precision: str = "float32", portable: bool = False, recomputes: bool = False
) -> Iterator[OpenProgram]:
    """Open a new program with placeholders for batch fields; operations made in the context belong to it.

    It can be run when it is finished (`OpenProgram.finish`), or if it is portable.

    Args:
        precision: of matrix products, "float32", "bfloat16" or "float16".
        portable: whether the program must run on other processors too, without kernels chosen for this one.
        recomputes: see `computing`.

    Raises InputError if the precision is not possible.
    """
    if not portable:
        check_precision(precision)
    main, startup = paddle.static.Program(), paddle.static.Program()
    network = computing(precision, not portable and can_fuse(), recomputes)
    names = paddle.utils.unique_name.guard()
    with paddle.static.program_guard(main, startup), names, network, catch_warnings():
        simplefilter("ignore", UserWarning)  # `paddle.full_like` asks a value of a program for its place (3.3.1)
        feeds = {f.name: paddle.static.data(f.name, [None] * len(f.shape), f.dtype) for f in dict.fromkeys(fields)}
        yield OpenProgram(main, startup, feeds, precision, portable)


def build_training(job: Job, world: World) -> Program:
    """Build a program that makes one update, and keeps `loss`, each term by its name, and `grad_norm`.

    It also adds up `loss` and the terms over the steps. If the loss is scaled, it also keeps what UpdateGuard.judge
    returns.

    With several ranks it also keeps `sent_bytes`: what this rank sends to others in the step.

    The loss of a rank is its share of the loss of the whole batch: the sum over its rows, divided by the number of rows
    of all ranks. So the sum of the gradients over ranks does not depend on how rows are distributed among them.
    """
    with open_program(job.network.fields, job.optimizer.precision, recomputes=job.trainer.recompute) as opened:
        guard = UpdateGuard.of(job.optimizer)
        terms = job.network.losses(opened.feeds)
        counts = paddle.stack([term.count for term in terms])
        counts.stop_gradient = True
        (counts,) = sum_over_ranks([counts], world)
        found, shares = add_backward(opened, job, terms, counts, guard)
        pairs = [(parameter, each.by_row() if isinstance(each, Lookups) else each) for parameter, each in found]
        return add_update(opened, job, terms, pairs, shares, world, guard)


def add_backward(
    opened: OpenProgram, job: Job, terms: list[LossTerm], counts: paddle.Tensor, guard: UpdateGuard | None
) -> tuple[list[tuple[paddle.Tensor, paddle.Tensor | Lookups]], paddle.Tensor]:
    """Add the backward pass of the sum of weight x total / count over the terms.

    Args:
        counts: number of rows of each term in the whole batch, float32 [T].
    Returns:
        Parameters and their gradients (see row_gradients.take_lookups), times the scale of the loss if it is scaled;
        and float32 [1 + T], this sum and each total / count.
    """
    shares = [term.total / counts[i] for i, term in enumerate(terms)]
    total = paddle.add_n([share * term.weight for share, term in zip(shares, terms, strict=True)])
    scale = guard and guard.loss_scale
    scaled = total if scale is None else total * scale
    parameters = [p for p in opened.main.global_block().all_parameters() if not p.stop_gradient]
    gradients = paddle.static.gradients([scaled], parameters)
    pairs = [pair for pair in zip(parameters, gradients, strict=True) if pair[1] is not None]
    taken = take_lookups(pairs, job.sparse_parameters)
    if job.trainer.recompute:
        recompute_layers(scaled)
    return taken, paddle.stack([value.detach() for value in (total, *shares)])


def add_update(
    opened: OpenProgram,
    job: Job,
    terms: list[LossTerm],
    pairs: list[tuple[paddle.Tensor, Gradient]],
    shares: paddle.Tensor,
    world: World,
    guard: UpdateGuard | None,
) -> Program:
    """Add the exchange of gradients and the optimizer's operations to a program; return it, finished.

    Args:
        pairs, shares: of this rank, see `add_backward`.
    """
    # The terms are exchanged together with the first gradients: that saves one exchange.
    (logged,), gradients, by_row = sum_gradients([gradient for _, gradient in pairs], [shares], world)
    norm = clip_by_global_norm(gradients, job.optimizer.max_grad_norm, guard and guard.loss_scale)
    # `take_mean_losses` takes the first names.
    fetches = {"loss": logged[0], **{term.name: logged[i + 1] for i, term in enumerate(terms)}, "grad_norm": norm}
    good = None
    if guard:
        good, state = guard.judge(logged[0], norm)
        fetches |= state
    if world.size > 1:
        fetches["sent_bytes"] = sent_bytes(opened.main, by_row, world)
    whole = (each.table if isinstance(each, RowGradient) else each for each in gradients)
    updates = [(parameter, gradient) for (parameter, _), gradient in zip(pairs, whole, strict=True)]
    add_adamw(updates, job.optimizer, job.rate_scale, good)
    # With a guard the values of every step are read, because the host says which update was skipped.
    add_loss_sums(logged)
    add_step_values(fetches, paddle.zeros([], "bool") if guard else not_finite(logged[0], norm))
    return opened.finish(fetches)
