"""Metrics of a model on held-out units: loss, accuracy, and perplexity over units and over n-grams."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from reader.batches import fields
from reader.batches.fields import Batch

Float64s = npt.NDArray[np.float64]
Predict = Callable[[Batch], dict[str, np.ndarray]]

EXPLANATION = (
    "eval: over masked units of the held-out text, loss is the mean of -log p, perplexity its exponential, "
    "frequency_perplexity that of a guess by the units' frequencies in the training corpus (the baseline), and "
    "ngram_perplexity that of the model over masked n-grams only; lower is better"
)


def log_frequencies(counts: npt.NDArray[np.int64]) -> Float64s:
    """Return log p of every class by its frequency in the training corpus, with add-one smoothing; float64 [C]."""
    return np.log((counts + 1) / (counts.sum() + len(counts)))


def unit_sums(
    predict: Predict, batches: Iterable[Batch], baseline: Float64s | None, num_tokens: int, draws: int = 1
) -> Float64s:
    """Return sums over the masked units of some batches. Sums of several ranks may be added; see `metrics`.

    Args:
        predict: batch -> fetches of the evaluation program. With a generator, each call draws new samples.
        baseline: log p of every unit by frequency, float64 [C]; None if training had other units.
        num_tokens: F.
        draws: number of calls of `predict` for each batch; the sums are the means over them (choice: the mean of
            -log p, not -log of the mean p, which is lower because it is that of an ensemble).

    Returns float64 [7]: number of units; their -log p; number of units predicted correctly; their -log p by frequency
    (NaN without a baseline); number of n-grams among them; the n-grams' -log p; the n-grams' -log p by the generator
    (NaN without one).

    The probability of a unit with several predicted slots is the product over its slots; it is correct if all are.
    """
    sums = np.zeros(7)
    for batch in batches:
        sums += np.mean([_batch_sums(predict(batch), batch, baseline, num_tokens) for _ in range(draws)], axis=0)
    return sums


def _batch_sums(
    predicted: dict[str, np.ndarray], batch: Batch, baseline: Float64s | None, num_tokens: int
) -> list[float]:
    """Return the sums of `unit_sums` for one call of `predict`."""
    labels = batch.get(fields.COARSE_LABELS.name, batch.get(fields.TOKEN_LABELS.name))
    units, slot_units = batch[fields.UNIT_IDS.name], batch[fields.SLOT_UNITS.name]
    loss = np.bincount(slot_units, predicted["row_loss"].astype(np.float64), len(units))
    wrong = np.bincount(slot_units, predicted["row_best"] != labels, len(units))
    is_ngram = units >= num_tokens
    return [
        len(units),
        loss.sum(),
        (wrong == 0).sum(),
        -baseline[units].sum() if baseline is not None else np.nan,
        is_ngram.sum(),
        loss[is_ngram].sum(),
        predicted["generator_loss"][is_ngram].sum() if "generator_loss" in predicted else np.nan,
    ]


def metrics(sums: Float64s) -> dict[str, float]:
    """Return the metrics that follow from the sums of `unit_sums`.

    loss: mean -log p of a masked unit; perplexity: its exponential; accuracy: share of units predicted correctly;
    frequency_perplexity: the baseline by unit frequencies (absent without one); ngram_perplexity: over masked n-grams
    (absent if there were none); generator_ngram_perplexity: the generator's (absent without one).
    """
    units, loss, right, baseline, ngrams, ngram_loss, generator_loss = (float(value) for value in sums)
    values = {
        "loss": loss / units,
        "accuracy": right / units,
        "perplexity": float(np.exp(loss / units)),
    }
    if not np.isnan(baseline):
        values["frequency_perplexity"] = float(np.exp(baseline / units))
    if ngrams:
        values["ngram_perplexity"] = float(np.exp(ngram_loss / ngrams))
        if not np.isnan(generator_loss):
            values["generator_ngram_perplexity"] = float(np.exp(generator_loss / ngrams))
    return values
