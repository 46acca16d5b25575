"""The training loop."""

from __future__ import annotations

import json
import math
import time
import zlib
from dataclasses import asdict

import numpy as np
import paddle

from ernie_gram.distributed import collectives as distributed
from ernie_gram.distributed.collectives import World
from ernie_gram.pretraining.evaluation import log_frequencies, metrics, unit_sums
from ernie_gram.pretraining.network import Sizes
from ernie_gram.pretraining.prepare import Run
from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import RunLog
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.program import Program, build_evaluation, build_training
from ernie_gram.training.variables import accumulator_names, get_arrays, set_arrays
from reader.errors import InputError

# Biases of the heads that predict units and tokens, see model.py.
UNIT_BIASES = ("mask_lm_out_fc.b_0", "generator_mask_lm_out_fc.b_0")
TOKEN_BIASES = ("fine_lm_out_fc.b_0",)


def _seed(*numbers: int) -> None:
    """Start Paddle's random numbers from a few numbers."""
    paddle.seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))


class Trainer:
    """A run in progress: its programs, its parameters, and the step it has reached."""

    def __init__(self, run: Run, world: World) -> None:
        self.run, self.world, self.config = run, world, run.config
        info = run.train.corpus.info
        sizes = Sizes(info.num_tokens, info.num_ngrams)
        self.program = build_training(self.config, sizes)
        self.evaluation: Program | None = build_evaluation(self.config, sizes) if run.held_out else None
        self.executor = paddle.static.Executor(world.place)
        self.step = self.consumed = 0
        self._agree()
        self._start_values()
        if world.is_first:
            checkpoint.remove_beyond(run.output, self.step)
        self.log = RunLog(
            run.output, world.is_first, self.config.trainer.visualdl, self.step, self.config.trainer.max_steps
        )

    def _agree(self) -> None:
        """Raise InputError unless all ranks are about to do the same thing, from the same checkpoint."""
        plan = json.dumps([self.run.identity, self.run.resume_from and self.run.resume_from.name], sort_keys=True)
        try:
            distributed.agree(self.executor, zlib.crc32(plan.encode()), "the settings, the corpus or the checkpoint")
        except ValueError as error:
            raise InputError(str(error)) from error

    def _start_values(self) -> None:
        """Draw the parameters, or take them from the checkpoint; all ranks end up with the first one's."""
        paddle.seed(self.config.seed)
        self.executor.run(self.program.startup)
        names = self.program.parameters
        if self.run.resume_from:
            source = str(self.run.resume_from)
            set_arrays(checkpoint.load_model(self.run.resume_from), names, source, self.world.place)
            moments = checkpoint.load_optimizer(self.run.resume_from)
            set_arrays(moments, accumulator_names(names), source, self.world.place)
            state = checkpoint.load_state(self.run.resume_from)
            self.step, self.consumed = state.step, state.consumed
        else:
            distributed.copy_from_first_rank(self.executor, names)
            if self.config.objective.output_bias == "frequency":
                self._set_output_biases()

    def _set_output_biases(self) -> None:
        """Have every output start from how often its classes occur."""
        corpus = self.run.train.corpus
        tokens = log_frequencies(corpus.token_counts).astype(np.float32)
        units = log_frequencies(corpus.unit_counts).astype(np.float32)
        biases = dict.fromkeys(TOKEN_BIASES, tokens)
        biases |= dict.fromkeys(UNIT_BIASES, units if self.config.objective.is_explicit else tokens)
        present = [name for name in biases if name in self.program.parameters]
        set_arrays(biases, present, "corpus", self.world.place)

    def train(self) -> None:
        """Train to the last step. Raises InputError at a step whose loss or gradient is not finite."""
        settings, batch_size = self.config.trainer, self.config.data.batch_size
        if self.step >= settings.max_steps:
            self.log.say(f"already at step {self.step} of {settings.max_steps}; nothing left to train")
        batches = self.run.train.training_batches(
            self.consumed, batch_size, self.world.rank, self.world.size, settings.workers
        )
        # At the start, and where a run was stopped between its checkpoint and its evaluation.
        self._evaluate_if_due()
        seconds, since = 0.0, self.step
        while self.step < settings.max_steps:
            began = time.monotonic()
            values = self._update(next(batches))
            seconds += time.monotonic() - began
            self.step += 1
            self.consumed += batch_size
            last = self.step == settings.max_steps
            if self.step % settings.log_every == 0 or last:
                rate = (self.step - since) * batch_size / seconds
                self.log.record("train", self.step, {**values, "sequences_per_second": rate})
                seconds, since = 0.0, self.step
            # First save: an evaluation that fails must not cost the work before it.
            if self.step % settings.save_every == 0 or last:
                self.save()
            self._evaluate_if_due()
        batches.close()
        self.log.close()

    def _evaluate_if_due(self) -> None:
        """Evaluate at every eval_every-th step and at the last, unless the log has it already."""
        settings = self.config.trainer
        if self.step % settings.eval_every == 0 or self.step == settings.max_steps:
            # Only the first rank has a log; the others follow it.
            done = np.array([float(self.step in self.log.evaluated)])
            if not distributed.sum_vector(self.executor, done)[0]:
                self.evaluate()

    def _update(self, batch: dict[str, np.ndarray]) -> dict[str, float]:
        """One optimizer step; returns what the program reports, and the learning rate it used."""
        # The step's random numbers depend on these three alone, so a resumed run draws them again.
        _seed(self.config.seed, self.step, self.world.rank)
        assert self.program.schedule is not None
        self.program.schedule.step(self.step)
        fetched = self.program.run(self.executor, batch)
        values = {name: float(value) for name, value in fetched.items()}
        if not (math.isfinite(values["loss"]) and math.isfinite(values["grad_norm"])):
            saved = checkpoint.newest_valid(self.run.output)
            raise InputError(
                f"step {self.step + 1}: the loss is {values['loss']}, its gradient {values['grad_norm']}; stopped. "
                f"The last checkpoint is {saved or 'none'}. A lower optimizer.learning_rate or longer "
                "optimizer.warmup_steps, in another paths.output, may help"
            )
        return {**values, "learning_rate": learning_rate(self.step, self.config)}

    def evaluate(self) -> None:
        """Measure the model on the held-out corpus and log the result."""
        if self.run.held_out is None or self.evaluation is None:
            return
        program, corpus = self.evaluation, self.run.train.corpus
        same_units = corpus.info.lexicon == self.run.held_out.corpus.info.lexicon
        rows = max(1, self.config.data.batch_size // self.world.size)
        # The same random numbers at every evaluation: what differs is what the model makes of them.
        _seed(self.config.seed, self.world.rank)
        sums = unit_sums(
            lambda batch: program.run(self.executor, batch),
            self.run.held_out.held_out_batches(
                rows, self.world.rank, self.world.size, self.config.trainer.eval_sequences
            ),
            log_frequencies(corpus.unit_counts) if same_units else None,
            corpus.info.num_tokens,
        )
        self.log.record("eval", self.step, metrics(distributed.sum_vector(self.executor, sums)))

    def save(self) -> None:
        """Write a checkpoint; the first rank does."""
        if not self.world.is_first:
            return
        state = checkpoint.State(
            step=self.step,
            consumed=self.consumed,
            learning_rate=learning_rate(self.step, self.config),
            identity=self.run.identity,
            config=asdict(self.config),
        )
        names = self.program.parameters
        path = checkpoint.save(
            self.run.output,
            state,
            get_arrays(names),
            get_arrays(accumulator_names(names)),
            self.config.trainer.keep_checkpoints,
        )
        self.log.say(f"saved {path}")
