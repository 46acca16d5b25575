"""The training loop. It serves every job: pre-training and all fine-tuning tasks."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import paddle

from ernie_gram.distributed.collectives import (
    StopAgreement,
    check_agreement,
    copy_from_first_rank,
    of_first_rank,
    sum_array,
)
from ernie_gram.distributed.device import World
from ernie_gram.run import checkpoint, termination
from ernie_gram.run.run_log import LOSS_STEPS, RATE, UTILISATION, RunLog, record_start
from ernie_gram.run.termination import beat
from ernie_gram.training import step_values
from ernie_gram.training.accumulation import Updater
from ernie_gram.training.job import Job, Progress
from ernie_gram.training.loss_scale import guard_state, set_guard_state
from ernie_gram.training.meters import Meters
from ernie_gram.training.optimization import set_learning_rate
from ernie_gram.training.variables import get_arrays, optimizer_names, set_arrays
from reader.batches.fields import Batch
from reader.errors import InputError, SystemRefusedError, print_warning
from reader.system.progress import progress

CHECKPOINT = "the checkpoint"  # its name in warnings
# Seconds between the exchanges of ranks that wait for rank 0.
POLL_SECONDS = 1.0


def _seed(*numbers: int) -> None:
    """Seed Paddle's random numbers with a function of these numbers."""
    paddle.seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))


class Trainer:
    """A training in progress: its program, its parameters, the step that it has reached, and its best evaluation."""

    def __init__(self, job: Job, world: World) -> None:
        """Build the program and set the parameters.

        Raises InputError if the ranks are about to do different things, or if start values do not fit.
        """
        beat()
        self.job, self.world = job, world
        self.updater = Updater(job, world)
        self.executor = paddle.static.Executor(world.place)
        self.step = self.consumed = 0
        self.progress = Progress()
        self._said_skipped = 0
        self._may_skip = job.optimizer.first_loss_scale is not None
        self._agree_on_checkpoint()
        self._check_agreement()
        beat()
        messages = self._initialise()
        self._check_best()
        if world.is_first:
            checkpoint.remove_beyond(job.folder, self.step)
            record_start(job.folder, self.step, paddle.__version__, str(world.place))
        self.log = RunLog(job.folder, world.is_first, job.trainer.visualdl, self.step, job.trainer.max_steps)
        for message in (*messages, job.metrics_explained):
            if message:
                self.log.say(message)
        # What the system has refused to write, by name, and how it is written.
        self._refused: dict[str, tuple[Exception, Callable[[], None]]] = {}
        self._saved_step = self.step
        self._stop = StopAgreement(self.executor, world, self.step)

    def _agree_on_checkpoint(self) -> None:
        """Take the checkpoint of rank 0, which alone has verified whole files, on all ranks."""
        chosen = self.job.resume_from
        own = checkpoint.load_state(chosen).step if chosen else 0
        step = int(self._of_first_rank(own))
        if chosen and step not in (0, own):
            chosen = chosen.with_name(f"step_{step}")
            checkpoint.verify(chosen, (checkpoint.STATE,))
            self.job = replace(self.job, resume_from=chosen)

    def _check_agreement(self) -> None:
        """Raise InputError unless all ranks run the same job from the same checkpoint."""
        resume_from, trainer = self.job.resume_from, self.job.trainer
        # The size of micro-batches may differ, because nothing is exchanged within them.
        when = trainer.max_steps, trainer.log_every, trainer.eval_every, trainer.save_every, self.updater.accumulates
        parts = [self.job.identity, self.job.evaluated, resume_from and resume_from.name, when]
        plan = json.dumps(parts, sort_keys=True)
        what = "the settings, the corpora or the checkpoint"
        check_agreement(self.executor, zlib.crc32(plan.encode()), what, self.world)

    def _initialise(self) -> list[str]:
        """Draw the parameters and apply the start values, or load the checkpoint; all ranks get the same values.

        Returns lines for the console.
        """
        paddle.seed(self.job.seed)
        self.updater.initialise(self.executor)
        names, resume_from = self.updater.parameters, self.job.resume_from
        if resume_from is None:
            copy_from_first_rank(self.executor, names, self.world)
            values = self.job.start_values
            if values is None:
                return []
            arrays = values.load()
            set_arrays(arrays, [name for name in names if name in arrays], values.source, self.world.place)
            return values.describe(arrays.keys(), names)
        source = str(resume_from)
        set_arrays(checkpoint.load_model(resume_from), names, source, self.world.place)
        set_arrays(checkpoint.load_optimizer(resume_from), optimizer_names(names), source, self.world.place)
        state = checkpoint.load_state(resume_from)
        self.step, self.consumed = state.step, state.consumed
        self.progress = Progress(**{key: state.selection[key] for key in asdict(self.progress)})
        if state.loss_sums:
            step_values.set_loss_sums(state.loss_sums)
        if self._may_skip and state.guard:
            set_guard_state(state.guard)
        return []

    def train(self) -> None:
        """Train to the last step. Raises InputError if values are not finite (see step_values.reason_to_stop).

        Ends the process, after a checkpoint, if a signal has asked any rank to end (see termination.py).
        """
        with termination.deferred():
            self._train()

    def _train(self) -> None:
        settings, batch_size = self.job.trainer, self.job.batch_size
        if self.step >= settings.max_steps:
            self.log.say(f"already at step {self.step} of {settings.max_steps}; nothing left to train")
        with (
            closing(self.job.batches(self.consumed, self.world)) as batches,
            progress("training", settings.max_steps, " steps", first=self.step) as bar,
        ):
            # At the start, and after a run was stopped between its checkpoint and its evaluation.
            self._evaluate_if_due()
            meters = Meters(self.job, self.executor, self.world)
            while self.step < settings.max_steps:
                began, cpu_began = time.monotonic(), time.process_time()
                beat()
                micro_batches = next(batches)
                waiting = time.monotonic() - began
                beat()
                self._update(micro_batches)
                self.step += 1
                bar.update(1)
                self.consumed += batch_size
                is_last = self.step == settings.max_steps
                is_logged = self.step % settings.log_every == 0 or is_last
                # Reading the values waits for the device, so the time after it is that of all steps so far.
                values = self._values() if is_logged or self._may_skip else {}
                # What is slow only once, such as compiling, is in the first step.
                if is_logged or self.step > self.log.start + 1:
                    meters.add(micro_batches, waiting, time.monotonic() - began, time.process_time() - cpu_began)
                if is_logged:
                    measured = meters.take(batch_size)
                    unshown = {"sent_bytes", LOSS_STEPS, *(measured.keys() - {RATE, UTILISATION})}
                    rate = {"learning_rate": self.job.learning_rate(self.step - 1)}
                    logged = step_values.logged_values(values) | step_values.take_mean_losses(values)
                    self.log.record("train", self.step, logged | rate | measured, unshown)
                self._end_if_asked(self._stop.signal_after(self.step))
                # Save before evaluating: an evaluation that fails must not lose the steps before it.
                if self.step % settings.save_every == 0 or is_last:
                    self.save()
                self._evaluate_if_due()
        self._check_written()
        self.log.close()

    def _end_if_asked(self, number: int | None) -> None:
        """Save this step and end the process if `number` is a signal, which is the same on all ranks."""
        if number is None:
            return
        if self.step != self._saved_step:
            self.save()
        self._check_written()
        # A rank that ended before rank 0 has saved would look like one that died.
        sum_array(self.executor, np.zeros(1), self.world)
        self.log.close()
        termination.end(number)

    def _update(self, micro_batches: list[Batch]) -> None:
        """Make one update. Its values stay on the device."""
        # The random numbers of a step depend on these numbers and the micro-batch's index alone, so that a resumed run
        # repeats them.
        seed = partial(_seed, self.job.seed, self.step, self.world.rank)
        set_learning_rate(self.job.learning_rate(self.step))
        self.updater.step(self.executor, micro_batches, seed)

    def _values(self) -> dict[str, float]:
        """Return the values of the last step, if there is one; say if its update was skipped.

        Raises InputError, on all ranks, if training must stop after this step or an earlier one.
        """
        values, steps = step_values.read_step_values(self.updater.program.fetches)
        step, reason = self.log.start + steps, step_values.reason_to_stop(values, self.job.trainer)
        if reason:
            raise InputError(
                f"step {step}: {reason}; stopped. A lower optimizer.learning_rate or a longer warm-up, in another "
                "paths.output, may help"
            )
        if values.get("skipped_in_a_row") and step > self._said_skipped:
            self.log.say(step_values.skip_message(step, values))
            self._said_skipped = step
        return values

    def _evaluate_if_due(self) -> None:
        """Evaluate every eval_every steps and at the last step, unless this evaluation is already known."""
        settings = self.job.trainer
        if self.step % settings.eval_every and self.step != settings.max_steps:
            return
        if self.job.evaluator is None or (self.step == 0 and not self.job.evaluates_start):
            return
        if self.job.selection:
            # The log may have the evaluation already, but a checkpoint written before it does not count it.
            is_known = self.progress.step == self.step
        else:
            is_known = bool(self._of_first_rank(self.step in self.log.evaluated))  # only rank 0 has a log
        if not is_known:
            self.evaluate()

    def evaluate(self) -> None:
        """Call the evaluator, and log its metrics.

        If the job selects the best evaluation and this is the best so far, its model is written.
        """
        self._values()  # the evaluation may be the best one, whose model is written
        # The same random numbers in every evaluation: results differ only because the model does.
        _seed(self.job.seed, self.world.rank)
        beat()
        assert self.job.evaluator is not None
        metrics = self.job.evaluator(self.executor, self.world)
        # Evaluators end early when a signal has arrived; what they return is then wrong.
        self._end_if_asked(self._stop.signal_now(self.step))
        if self.job.selection:
            self.progress = self.progress.after(self.step, metrics[self.job.selection])
            if self.progress.best_step == self.step:
                self._on_first_rank(self._best_write)
        if self.step not in self.log.evaluated:
            self.log.record("eval", self.step, metrics)

    def _check_best(self) -> None:
        """Forget the best evaluation if `best` is the model of another step, on all ranks.

        If the run was stopped after a checkpoint and a later, better evaluation, `best` belongs to a step that the
        resumed training reaches again. Or the user has removed the folder.
        """
        if not self.job.selection or self.progress.best_step is None:
            return
        is_there = self.world.is_first and checkpoint.best_step(self.job.folder) == self.progress.best_step
        if not self._of_first_rank(is_there):
            self.progress = Progress(self.progress.step)

    def _of_first_rank(self, number: float) -> float:
        """Return the number of rank 0, on all ranks."""
        return float(of_first_rank(self.executor, np.array([float(number)]), self.world)[0])

    def _state(self) -> checkpoint.State:
        return checkpoint.State(
            step=self.step,
            consumed=self.consumed,
            learning_rate=self.job.learning_rate(self.step),
            identity=self.job.identity,
            config=self.job.config,
            selection=asdict(self.progress),
            guard=guard_state() if self._may_skip else {},
            loss_sums=step_values.loss_sums(),
        )

    def save(self) -> None:
        """Write a checkpoint, on rank 0, and a best model that the system has refused before.

        If the system refuses the checkpoint, for example because the disk is full, a warning is printed, and training
        goes on. Raises InputError if a step was not finite, if a parameter is not, or if the data are damaged.
        """
        self._values()
        self._saved_step = self.step
        self._on_first_rank(self._checkpoint_write)

    def _checkpoint_write(self) -> Callable[[], None]:
        self._refused.pop(CHECKPOINT, None)  # with the arrays of a checkpoint that the system has refused
        names, keep = self.updater.parameters, self.job.trainer.keep_checkpoints
        given = self._state(), get_arrays(names), get_arrays(optimizer_names(names))

        def write() -> None:
            if self.job.check_data:
                self.job.check_data()
            self.log.say(f"saved {checkpoint.save(self.job.folder, *given, keep)}")

        def write_all() -> None:
            if checkpoint.BEST in self._refused:
                self._write(checkpoint.BEST, self._refused[checkpoint.BEST][1])
            self._write(CHECKPOINT, write)

        return write_all

    def _best_write(self) -> Callable[[], None]:
        model = self._state(), get_arrays(self.updater.parameters)
        return partial(self._write, checkpoint.BEST, partial(checkpoint.save_best, self.job.folder, *model))

    def _on_first_rank(self, prepare: Callable[[], Callable[[], None]]) -> None:
        """Do on rank 0 what `prepare` returns there; all ranks call this, and wait.

        Ranks that wait exchange numbers meanwhile: on CPUs, an exchange fails if a rank is 30 seconds late (gloo).
        """
        if self.world.size == 1:
            prepare()()
            return
        with ThreadPoolExecutor(1) as thread:
            work = [thread.submit(prepare())] if self.world.is_first else []
            while self._of_first_rank(len(wait(work, POLL_SECONDS).not_done)):
                pass
        for each in work:
            each.result()

    def _write(self, name: str, write: Callable[[], None]) -> None:
        """Write the best model or a checkpoint; if the system refuses it, print a warning."""
        beat()
        self._refused.pop(name, None)
        try:
            write()
        except (SystemRefusedError, OSError) as error:
            print_warning(f"{name} is not saved: {error}; training goes on")
            self._refused[name] = error, write
        beat()

    def _check_written(self) -> None:
        """Raise SystemRefusedError if the newest checkpoint or the best model could not be written."""
        for name, (error, _) in self._refused.items():
            raise SystemRefusedError(
                f"{name} is not saved: {error}; make room, and run the same command again to resume"
            ) from error
