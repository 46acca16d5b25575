"""Pre-training as a job of the training loop: its network, its batches, its evaluation and its start values."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.graph import can_fuse
from ernie_gram.pretraining.chunked_softmax import SoftmaxOptions
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.network import PretrainModel, build_evaluation
from ernie_gram.pretraining.prepare import Run, evaluation_settings
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, log_frequencies
from ernie_gram.pretraining.terms.catalog import evaluated, fields_of, sparse_parameters, step_flops, terms_of
from ernie_gram.pretraining.terms.term import Reference, Term
from ernie_gram.pretraining.warm_start import warm_start_values
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.run.termination import until_requested
from ernie_gram.training.job import Feeds, Job, LossTerm, StartValues
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.program import Program
from reader.batches import fields
from reader.batches.feeder import Feeder
from reader.batches.fields import Batch, Field
from reader.batches.sampler import accumulation_steps
from reader.corpus.memmap import Corpus, background_check
from reader.system.arrays import Float64s
from reader.system.progress import progress

Predict = Callable[[Batch], dict[str, np.ndarray]]


def pretraining_job(run: Run, world: World) -> Job:
    """Return the job of a checked run. On rank 0, a background thread starts to check the files of the corpora.

    A damaged file stops the run at the next batch, and in any case before the first checkpoint is written.
    """
    config, corpus = run.config, run.train.corpus
    check = background_check(run.corpora) if world.is_first else None
    sizes = CorpusSizes(corpus.info.num_tokens, corpus.info.num_ngrams)
    held_out = run.held_out.corpus.info.fingerprint if run.held_out else None
    network = PretrainNetwork(config, sizes, world.size)

    def batches(consumed: int, world: World) -> Generator[list[Batch], None, None]:
        size, workers = config.data.batch_size, config.trainer.workers
        steps = accumulation_steps(size, world.size, config.trainer.micro_batch)
        made = run.train.training_batches(consumed, size, world.rank, world.size, workers, steps)
        with closing(made) as prefetched:
            for micro_batches in prefetched:
                if check and check.done():
                    check.result()
                yield micro_batches

    return Job(
        folder=run.output,
        seed=config.seed,
        identity=run.identity,
        config=asdict(config),
        network=network,
        batch_size=config.data.batch_size,
        batches=batches,
        evaluator=HeldOutEvaluator(config, sizes, run.held_out, corpus) if run.held_out else None,
        evaluated={"held_out": held_out, **evaluation_settings(config)},
        start_values=start_values(run),
        learning_rate=partial(learning_rate, settings=config.optimizer, decay_steps=config.decay_steps),
        sparse_parameters=sparse_parameters(config),
        optimizer=config.optimizer,
        trainer=config.trainer,
        resume_from=run.resume_from,
        row_counts=network.row_counts,
        check_data=check.result if check else None,
        flops=network.flops,
    )


def start_values(run: Run) -> StartValues:
    """Return the start values of a checked run: output biases from frequencies, and those of a warm start."""
    corpus, objective, model = run.train.corpus, run.config.objective, run.start

    def load() -> Arrays:
        biases = output_biases(corpus, objective)
        return biases if model is None else biases | warm_start_values(model, run.config, corpus, biases)

    return StartValues("corpus" if model is None else str(model.source), load, is_model=model is not None)


class PretrainNetwork:
    """The model and the terms of its objective (see training.job.Network)."""

    def __init__(self, config: PretrainConfig, sizes: CorpusSizes, world_size: int) -> None:
        self.config, self.sizes = config, sizes
        self._softmax = SoftmaxOptions(True, config.assumed_rows(world_size))

    @property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(terms_of(self.config.objective))

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        model = PretrainModel(self.config, self.sizes)
        model.train()
        return model.losses(model.encode(feeds, self._softmax))

    def row_counts(self, batch: Batch) -> list[int]:
        """Return the number of rows of each term of the objective in a batch."""
        return [term.num_rows(batch) for term in terms_of(self.config.objective)]

    def flops(self, batch: Batch) -> float:
        """Return the floating-point operations of the matrix products of a training step on a batch."""
        return step_flops(self.config, self.sizes, BatchShape.of(batch).computed(can_fuse()))


class HeldOutEvaluator:
    """Evaluates the terms of the objective on a held-out corpus, and returns their metrics."""

    def __init__(self, config: PretrainConfig, sizes: CorpusSizes, held_out: Feeder, corpus: Corpus) -> None:
        """`corpus` is the training corpus: its unit frequencies are the baseline."""
        self._config, self._sizes = config, sizes
        self._held_out, self._corpus = held_out, corpus
        self._terms = evaluated(config.objective)
        self._program: Program | None = None

    def __call__(self, executor: paddle.static.Executor, world: World) -> dict[str, float]:
        program = self._program = self._program or build_evaluation(self._config, self._sizes, world.size)
        same_units = self._corpus.info.lexicon == self._held_out.corpus.info.lexicon
        # At most as many at a time as in training.
        rows = min(self._config.data.batch_size // world.size, self._config.largest_micro_batch(world.size))
        trainer = self._config.trainer
        draws = trainer.eval_draws if self._config.objective.has_generator else 1
        batches = self._held_out.held_out_batches(rows, world.rank, world.size, trainer.eval_sequences)
        sequences = len(self._held_out.held_out_indices(trainer.eval_sequences)) // world.size
        with progress("evaluating", draws * sequences, " sequences") as bar:

            def predict(batch: Batch) -> dict[str, np.ndarray]:
                bar.update(len(batch[fields.LENGTHS.name]))
                return program.run(executor, batch)

            baseline = log_frequencies(self._corpus.unit_counts) if same_units else None
            reference = Reference(baseline, self._corpus.info.num_tokens)
            sums = evaluation_sums(self._terms, predict, until_requested(batches), reference, draws)
        return metrics(self._terms, sum_array(executor, sums, world))


def evaluation_sums(
    terms: Sequence[Term], predict: Predict, batches: Iterable[Batch], reference: Reference, draws: int = 1
) -> Float64s:
    """Return the sums of all terms over some batches, float64. Sums of several ranks may be added; see `metrics`.

    Args:
        predict: batch -> fetches of the evaluation program. With a generator, each call draws new samples.
        draws: number of calls of `predict` for each batch. The sums are means over the calls: the mean of -log p, and
            not -log of the mean p, which is lower because it is that of an ensemble.
    """
    sums = np.zeros(sum(term.num_sums for term in terms))
    for batch in batches:
        drawn = []
        for _ in range(draws):
            fetched = predict(batch)
            drawn.append([value for term in terms for value in term.sums(fetched, batch, reference)])
        sums += np.mean(drawn, axis=0)
    return sums


def metrics(terms: Sequence[Term], sums: Float64s) -> dict[str, float]:
    """Return the metrics that follow from the sums of `evaluation_sums`."""
    left, values = sums.tolist(), dict[str, float]()
    for term in terms:
        values |= term.metrics(left[: term.num_sums])
        left = left[term.num_sums :]
    return values


def output_biases(corpus: Corpus, objective: ObjectiveConfig) -> Arrays:
    """Return start values of output biases by name: the log frequency of every class in the training corpus.

    There are none with objective.output_bias "zero".
    """
    if objective.output_bias == "zero":
        return {}
    tokens = log_frequencies(corpus.token_counts).astype(np.float32)
    classes = log_frequencies(corpus.unit_counts).astype(np.float32) if objective.is_explicit else tokens
    heads = {"mask_lm": classes}
    if objective.has_generator:
        heads["generator_mask_lm"] = classes
    if objective.has_queries:
        heads["fine_lm"] = tokens
    return {f"{name}_out_fc.b_0": biases for name, biases in heads.items()}
