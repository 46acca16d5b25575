"""Compute the metrics that the terms of a model report on held-out text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ernie_gram.pretraining.terms.term import Reference, Term
from reader.batches.fields import Batch
from reader.system.arrays import Float64s

Predict = Callable[[Batch], dict[str, np.ndarray]]

EXPLANATION = (
    "eval: over masked units of the held-out text, loss is the mean of -log p, perplexity its exponential, "
    "frequency_perplexity that of a guess by the units' frequencies in the training corpus (the baseline), and "
    "ngram_perplexity that of the model over masked n-grams only; lower is better"
)


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
