"""One update from several micro-batches, because a process cannot hold its whole share of the batch at a time.

The first of two programs makes the forward and backward pass of a micro-batch, and adds the gradients and the losses to
variables of the scope; it exchanges nothing. The second one exchanges the sums, updates the parameters and clears the
sums. The numbers of rows of the whole batch, by which each term is divided, are known before the first micro-batch: the
process counts them in the batches, and they are summed over the ranks. So the update is that of the whole batch at
once, except for rounding and for the random numbers of dropout and sampling.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.distributed.row_gradients import Lookups, RowGradient
from ernie_gram.paddle_private import add_
from ernie_gram.training.job import Job
from ernie_gram.training.loss_scale import UpdateGuard
from ernie_gram.training.program import Program, add_backward, add_update, build_training, open_program
from ernie_gram.training.variables import shared, zeros
from reader.batches.fields import Batch, Field
from reader.batches.sampler import accumulation_steps

ROW_COUNTS = Field("row_counts", "T", "float32", "number of rows of each term in the whole batch")
SHARES = "loss_shares"
# Variables of a parameter, whose name these follow: the sum of its gradients, and how often each of its rows was read.
GRADIENT_SUM, LOOKUP_COUNTS = "_gradient_sum", "_lookup_counts"


class Updater:
    """Makes one update from the micro-batches of a step, with one program if there is never more than one of them.

    Attributes:
        program: the program that updates; it is the only one without accumulation.
    """

    def __init__(self, job: Job, world: World) -> None:
        """Build the programs."""
        steps = accumulation_steps(job.batch_size, world.size, job.trainer.micro_batch)
        self._accumulating: Program | None = None
        self._row_counts, self._world = job.row_counts, world
        if steps == 1:
            self.program = build_training(job, world)
        else:
            self._accumulating, self.program = build_accumulation(job, world)

    @property
    def accumulates(self) -> bool:
        """Whether a batch is computed in several micro-batches."""
        return self._accumulating is not None

    @property
    def parameters(self) -> list[str]:
        """Names of the trained parameters, sorted."""
        return (self._accumulating or self.program).parameters

    def initialise(self, executor: paddle.static.Executor) -> None:
        """Draw the parameters, and set all other variables of the programs."""
        if self._accumulating:
            executor.run(self._accumulating.startup)
        executor.run(self.program.startup)

    def step(self, executor: paddle.static.Executor, micro_batches: list[Batch], seed: Callable[..., None]) -> None:
        """Make one update; its values stay on the device, see `read`.

        `seed` is called before each micro-batch, with its index if there can be several of them.
        """
        if self._accumulating is None:
            (batch,) = micro_batches
            seed()
            self.program.step(executor, batch)
            return
        own = np.array([self._row_counts(batch) for batch in micro_batches], np.float64).sum(0)
        counts = sum_array(executor, own, self._world).astype(np.float32)
        for index, batch in enumerate(micro_batches):
            seed(index)
            self._accumulating.step(executor, {**batch, ROW_COUNTS.name: counts})
        self.program.step(executor, {})


def build_accumulation(job: Job, world: World) -> tuple[Program, Program]:
    """Return the program that adds up the gradients of a micro-batch, and the one that updates.

    The first reads the field ROW_COUNTS too, and fetches nothing. The second reads nothing, and fetches what the
    program of `build_training` fetches.
    """
    fields, precision = [*job.network.fields, ROW_COUNTS], job.optimizer.precision
    with open_program(fields, precision, recomputes=job.trainer.recompute) as opened:
        guard = UpdateGuard.of(job.optimizer)
        terms = job.network.losses(opened.feeds)
        counts = opened.feeds[ROW_COUNTS.name]
        pairs, shares = add_backward(opened, job, terms, counts, guard)
        shapes = {parameter.name: list(parameter.shape) for parameter, _ in pairs}
        by_row = {parameter.name for parameter, gradient in pairs if isinstance(gradient, Lookups)}
        add_(zeros(SHARES, [1 + len(terms)]), shares)
        for parameter, gradient in pairs:
            name = parameter.name
            total = zeros(name + GRADIENT_SUM, shapes[name])
            if isinstance(gradient, Lookups):
                gradient.add_to(total, zeros(name + LOOKUP_COUNTS, shapes[name][:1]))
            else:
                add_(total, gradient)
        accumulating = opened.finish({})
    with open_program([]) as opened:
        guard = UpdateGuard.of(job.optimizer, is_made_elsewhere=True)
        shares = shared(SHARES, [1 + len(terms)])
        sums = {name: shared(name + GRADIENT_SUM, shape) for name, shape in shapes.items()}
        used = {name: shared(name + LOOKUP_COUNTS, shapes[name][:1]) for name in by_row}
        gradients = {name: RowGradient.counted(sums[name], used[name]) if name in used else sums[name] for name in sums}
        pairs = [(shared(name, shape), gradients[name]) for name, shape in shapes.items()]
        updating = add_update(opened, job, terms, pairs, shares, world, guard)
        for total in (shares, *sums.values(), *used.values()):
            # Without a copy of it.
            paddle.full(total.shape, 0.0, total.dtype, out=total)
        return accumulating, updating
