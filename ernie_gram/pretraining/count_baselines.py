"""Perplexities of predictors that only count, which a trained model has to beat. No Paddle here.

`ernie-gram count-baselines RUN` prints them for the corpora of a run. Counts are those of the training corpus. The
predicted units are exactly those of the run's evaluation: the same held-out sequences and the same masks.

Letters: C classes (units), M masked units.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import feeders
from ernie_gram.pretraining.sizes import log_frequencies
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import CONFIG, HELD_OUT
from reader.batches import fields
from reader.batches.feeder import Feeder
from reader.batches.sequences import CUT_VERSION
from reader.corpus.memmap import Corpus, CorpusInfo
from reader.errors import InputError, OneLineParser
from reader.system.arrays import Float64s, Int64s
from reader.system.progress import progress

# Units whose pairs are counted together.
BLOCK = 1 << 26
HIDDEN = -1  # in place of a neighbour that is masked, or beyond the end of the sequence


@dataclass(frozen=True)
class Perplexities:
    """Perplexity of one predictor over all masked units, and over the masked n-grams (NaN without any)."""

    units: float
    ngrams: float


def held_out_units(held_out: Feeder, max_sequences: int) -> Int64s:
    """Return the units that Feeder.held_out_batches masks, in the same order, and what is visible beside them.

    int64 [3, M]: identities, and those of the left and the right neighbours in the same sequence, or HIDDEN.
    """
    parts = []
    chosen = held_out.held_out_indices(max_sequences).tolist()
    with progress("masking the held-out sequences", len(chosen), " sequences") as bar:
        for index in chosen:
            units, masked = _sequence(held_out, index)
            visible = np.concatenate([[HIDDEN], np.where(masked, HIDDEN, units), [HIDDEN]])
            parts.append(np.stack([units[masked], visible[:-2][masked], visible[2:][masked]]))
            bar.update(1)
    return np.concatenate([np.zeros((3, 0), np.int64), *parts], axis=1)


def _sequence(held_out: Feeder, index: int) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Return the units of a sequence and whether each is masked in epoch 0.

    They follow from the batch and from the sequence's first unit in the corpus, so this does not repeat the rules by
    which the feeder cuts and masks.
    """
    batch = held_out.batch(np.array([index], np.int64), np.zeros(1, np.int64))
    corpus, place = held_out.corpus, int(held_out.starts[index])
    predicted = set(batch[fields.SLOTS.name].tolist())
    units, masked, slot = [], [], 1  # slot 0 is [CLS]
    while slot < batch[fields.LENGTHS.name][0] - 1:
        unit = int(corpus.units[place])
        units.append(unit)
        masked.append(slot in predicted)
        slot += 1 if masked[-1] and held_out.masking.explicit else int(corpus.unit_tokens[unit])
        place += 1
    return np.array(units, np.int64), np.array(masked, np.bool_)


def _adjacent_units(corpus: Corpus, block: int = BLOCK) -> csr_array:
    """Return how often each unit u follows each unit l within documents: a sparse matrix [C, C] of rows l, int64.

    Blocks of units are counted one by one, so that beside a block the memory is that of the distinct pairs.
    """
    shape = (corpus.num_units, corpus.num_units)
    counts = csr_array(shape, dtype=np.int64)
    starts = np.asarray(corpus.documents[:-1])
    with progress("counting neighbours", len(corpus.units), " units") as bar:
        for first in range(0, len(corpus.units), block):
            units = np.asarray(corpus.units[max(first - 1, 0) : first + block], np.int64)
            inside = starts[np.searchsorted(starts, first) : np.searchsorted(starts, first + block)] - max(first, 1)
            lefts, rights = (np.delete(each, inside[inside >= 0]) for each in (units[:-1], units[1:]))
            # Pairs that occur several times are added up.
            counts = counts + csr_array((np.ones(len(lefts), np.int64), (lefts, rights)), shape)
            bar.update(min(block, len(corpus.units) - first))
    return counts


class NeighbourCounts:
    """Unit frequencies and counts of adjacent units within the documents of a corpus.

    The frequencies p(u) have add-one smoothing. The probability of a unit after another one has Witten-Bell smoothing:
    p(u | l) = (c(l, u) + t(l) p(u)) / (c(l) + t(l)), where c(l) counts the units that follow l, and t(l) the distinct
    units among them; it is p(u) if nothing follows l in the corpus.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._frequency_C = np.exp(log_frequencies(corpus.unit_counts))
        self._counts = _adjacent_units(corpus)
        # The same counts by their second unit.
        self._by_second = self._counts.tocsc()
        distinct_C = np.diff(self._counts.indptr)
        self._total_C = self._counts.sum(1) + distinct_C
        # The weight of p(u) in p(u | l); 1 if l has no followers.
        self._backoff_C = np.where(self._total_C, distinct_C / np.maximum(self._total_C, 1), 1.0)

    def predict(self, masked: Int64s) -> Float64s:
        """Return log p(u), log p(u | left neighbour) and log p(u | both neighbours), float64 [3, M].

        `masked` is the result of `held_out_units`. By Bayes' rule the third is proportional to p(u | l) p(r | u), if r
        depends on u alone. For a hidden l, p(u) takes the place of p(u | l); for a hidden r, the second factor is left
        out.
        """
        found = np.empty(masked.shape)
        with progress("predicting from neighbours", masked.shape[1], " units") as bar:
            for m, (unit, left, right) in enumerate(masked.T):
                found[0, m] = self._frequency_C[unit]
                weight_C = self._after(left) if left != HIDDEN else self._frequency_C
                found[1, m] = weight_C[unit]
                if right != HIDDEN:
                    weight_C = weight_C * self._before(right)
                found[2, m] = weight_C[unit] / weight_C.sum()
                bar.update(1)
        return np.log(found)

    def _after(self, left: int) -> Float64s:
        """Return p(u | left) of every unit u, float64 [C]."""
        pairs = slice(*self._counts.indptr[left : left + 2])
        probability_C = self._frequency_C * self._backoff_C[left]
        probability_C[self._counts.indices[pairs]] += self._counts.data[pairs] / max(1, self._total_C[left])
        return probability_C

    def _before(self, right: int) -> Float64s:
        """Return p(right | u) of every unit u, float64 [C]."""
        pairs = slice(*self._by_second.indptr[right : right + 2])
        firsts = self._by_second.indices[pairs]
        probability_C = self._frequency_C[right] * self._backoff_C
        probability_C[firsts] += self._by_second.data[pairs] / self._total_C[firsts]
        return probability_C


def count_baselines(corpus: Corpus, held_out: Feeder, max_sequences: int) -> dict[str, Perplexities]:
    """Return the perplexities of the predictors by name, on the units that an evaluation of a model masks.

    Args:
        corpus: the training corpus.
        held_out: as in the evaluation; its corpus has the same vocabulary and lexicon.
        max_sequences: trainer.eval_sequences.
    """
    masked = held_out_units(held_out, max_sequences)
    is_ngram = masked[0] >= corpus.info.num_tokens

    def perplexity(log_p: Float64s) -> float:
        return float(np.exp(-log_p.mean())) if len(log_p) else float("nan")

    names = ("unit frequencies", "left neighbour", "both neighbours")
    found = zip(names, NeighbourCounts(corpus).predict(masked), strict=True)
    return {name: Perplexities(perplexity(log_p), perplexity(log_p[is_ngram])) for name, log_p in found}


def data_of_run(run: Path) -> tuple[Corpus, Feeder, int]:
    """Return the training corpus of a run, the feeder of its held-out corpus, and trainer.eval_sequences.

    `run` is its folder, whose settings are used. Raises InputError if it is not the folder of a run with evaluation, or
    if a corpus is not the run's.
    """
    if not (run / CONFIG).is_file():
        raise InputError(f"{run}: not the folder of a pre-training run: there is no {CONFIG}")
    config, _ = load_config(PretrainConfig, ["--config", str(run / CONFIG)])
    corpus = Corpus(Path(config.paths.corpus))
    _, held_out = feeders(config, corpus)
    if held_out is None:
        raise InputError(f"{run / CONFIG}: paths.held_out: null, so the run has no masked units to predict")
    if held_out.corpus.info.lexicon != corpus.info.lexicon:
        raise InputError("paths.held_out: was made with another lexicon than paths.corpus; its units have no counts")
    newest = checkpoint.newest_valid(run, (checkpoint.STATE,))
    identity = checkpoint.load_state(newest).identity if newest else config.identity(corpus.info)
    if identity.get("corpus") != corpus.info.fingerprint:
        raise InputError(f"paths.corpus: {corpus.path} is not the corpus that {run} was trained on")
    if identity.get("data.cut") != CUT_VERSION:
        raise InputError(f"{run}: was evaluated on sequences that another version of this package cut from the text")
    if CorpusInfo.read(run / HELD_OUT).fingerprint != held_out.corpus.info.fingerprint:
        raise InputError(f"paths.held_out: {held_out.corpus.path} is not the corpus that {run} was evaluated on")
    return corpus, held_out, config.trainer.eval_sequences


def main() -> None:
    """Run the command line."""
    description = (
        "Print the held-out perplexities of predictors that count, on the units that a run's evaluation masks."
    )
    parser = OneLineParser(description=description)
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a pre-training run; its settings are used")
    for name, found in count_baselines(*data_of_run(parser.parse_args().run)).items():
        print(f"{name}: perplexity {found.units:.0f}, over n-grams {found.ngrams:.0f}")
