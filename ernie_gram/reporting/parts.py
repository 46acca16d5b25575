"""The parts of the page on runs.

Of pre-training: last evaluations beside counts, curves and lexicons. Of the fine-tunings of a task: scores, curves
and evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.pretraining.count_baselines import Perplexities, count_baselines, data_of_run
from ernie_gram.reporting.charts import chart
from ernie_gram.reporting.runs import ReportedRun, explicit_first, inner, names_in, read_object
from ernie_gram.reporting.tables import PERCENT, Cell, Table, column
from ernie_gram.run.run_log import LOSS_STEPS, METERS, RATE
from reader.corpus.memmap import LEXICON
from reader.errors import InputError, counted
from reader.lexicon.lexicon_file import Lexicon
from reader.text.input_files import CORPUS_INFO

UNITS, NGRAMS, GENERATOR, ACCURACY = "perplexity", "ngram_perplexity", "generator_ngram_perplexity", "accuracy"
TITLES = {UNITS: "units", NGRAMS: "n-grams", GENERATOR: "generator, n-grams", ACCURACY: "accuracy"}
# The quantities in the log of training that are not terms of the loss.
NO_TERMS = ("loss", "grad_norm", "learning_rate", "loss_scale", "skipped", "sent_bytes", LOSS_STEPS, *METERS)
# With more units, the counting takes more than some seconds.
MAX_UNITS = 20_000_000

SCALES = {"fraction": (100.0, PERCENT), "percent": (1.0, PERCENT)}

Counts = dict[str, Perplexities]


def pretraining_part(runs: Sequence[ReportedRun], notes: list[str]) -> dict[str, Any]:
    """Return the tables and charts of pre-training runs; adds notes on what is missing."""
    counts = counted_baselines(runs, notes)
    of_units = {name: each.units for name, each in counts.items()}
    of_ngrams = {name: each.ngrams for name, each in counts.items()}
    terms = [name for name in names_in(runs, "train") if name not in NO_TERMS]
    return {
        "final": final_table(runs, counts),
        "charts": [
            chart(runs, "Held-out perplexity, all masked units", UNITS, of_units, is_log=True),
            chart(runs, "Held-out perplexity, masked n-grams", NGRAMS, of_ngrams, is_log=True),
            chart(runs, "Held-out perplexity, masked n-grams, generator", GENERATOR, is_log=True),
            chart(runs, "Accuracy on masked units, %", ACCURACY, scale=100),
            chart(runs, "Training loss", "loss", kind="train"),
            *(chart(runs, f"Loss term {name}", name, kind="train") for name in terms if len(terms) > 1),
            chart(runs, "Learning rate", "learning_rate", kind="train"),
            chart(runs, "Norm of the gradient", "grad_norm", kind="train", is_log=True),
            chart(runs, "Sequences per second", RATE, kind="train"),
        ],
        "lexicons": lexicon_tables(runs, notes),
    }


def final_table(runs: Sequence[ReportedRun], counts: Counts) -> Table:
    """Return the table of the evaluations before the first step and at the end, with counts below."""
    nothing: list[float | None] = [None for _ in counts]
    of_counts: dict[str, list[float | None]] = {
        UNITS: [each.units for each in counts.values()],
        NGRAMS: [each.ngrams if each.ngrams > 0 else None for each in counts.values()],
    }
    columns = {"steps": column([*(run.step for run in runs), *nothing])}
    for name, title in TITLES.items():
        found = [run.values("eval", name) for run in runs]
        scaled = (100.0, PERCENT) if name == ACCURACY else (1.0, "")
        if any(found):
            first = [values[0][1] if values and values[0][0] == 0 else None for values in found]
            last = [values[-1][1] if values else None for values in found]
            columns[f"{title}, start"] = column(first + nothing, *scaled)
            columns[f"{title}, end"] = column(last + of_counts.get(name, nothing), *scaled)
    names = [*(run.name for run in runs), *(f"counts: {name}" for name in counts)]
    return Table(["run", *map(Cell, columns)], list(zip(names, *columns.values(), strict=True)))


def counted_baselines(runs: Sequence[ReportedRun], notes: list[str]) -> Counts:
    """Return the perplexities of predictors that count, on the masks of the first run with n-grams.

    Without its corpora, and if they are large, only that of unit frequencies is returned, which a run logs.
    """
    run = explicit_first([run for run in runs if run.evaluations])
    if not run:
        return {}
    units = read_object(Path(str(run.settings.get("paths.corpus"))) / CORPUS_INFO).get("units", 0)
    try:
        if units > MAX_UNITS:
            raise InputError(f"the corpus of {run.name} is large; see ernie-gram count-baselines {run.folder}")
        return count_baselines(*data_of_run(run.folder))
    except InputError as error:
        notes.append(f"no counts but those of units: {error}")
    logged = run.values("eval", "frequency_perplexity")
    return {"unit frequencies": Perplexities(logged[-1][1], nan)} if logged else {}


def lexicon_tables(runs: Sequence[ReportedRun], notes: list[str]) -> list[Table]:
    """Return a table of each distinct lexicon of some runs, with a row for each length; adds notes on damaged ones."""
    tables: dict[str, Table] = {}
    for run in runs:
        try:
            lexicon = Lexicon.load(run.folder / LEXICON) if (run.folder / LEXICON).is_file() else None
        except InputError as error:
            notes.append(str(error))
            continue
        if lexicon and lexicon.fingerprint not in tables:
            heads = map(Cell, ("n-grams", "occurrences", "share", "median", "least"))
            rows = [_of_length(lexicon, order) for order in np.unique(lexicon.ngrams.orders).tolist()]
            source = f"the list {lexicon.info.own}, not counted" if lexicon.info.own else "the lexicon's own text"
            caption = f"{len(lexicon):,} n-grams of {run.name}, with counts of {source}."
            if {"tokens", "units", "ngram_units"} <= run.held_out.keys():
                # A unit that is no n-gram is one token.
                outside = run.held_out["units"] - run.held_out["ngram_units"]
                caption += f" {1 - outside / run.held_out['tokens']:.1%} of the held-out tokens are inside n-grams."
            tables[lexicon.fingerprint] = Table(["length", *heads, "most frequent"], rows, caption)
    return list(tables.values())


def _of_length(lexicon: Lexicon, order: int) -> list[Any]:
    """Return the row of the n-grams of a length; the share is that of all n-grams of this length in the text."""
    ngrams = lexicon.ngrams
    indices = np.flatnonzero(ngrams.orders == order)
    counts = ngrams.counts[indices]
    total = lexicon.info.totals.get(str(order))
    numbers = (f"{len(indices):,}", f"{counts.sum():,}", f"{counts.sum() / total:.1%}" if total else "")
    frequent = indices[np.argsort(-counts, kind="stable")[:12]]
    examples = ", ".join(f"{ngrams.texts[i]} ({ngrams.counts[i]:,})" for i in frequent)
    return [counted(order, "word"), *map(Cell, (*numbers, f"{np.median(counts):,.0f}", f"{counts.min():,}")), examples]


def finetuning_part(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return what the template shows of the runs of one task."""
    metric = next((metric for run in runs if (metric := inner(run.result, "metric"))), {})
    scale, unit = SCALES.get(str(metric.get("unit")), (1.0, ""))
    # The most frequent answer.
    constant = next((constant for run in runs if (constant := inner(run.result, "constant"))), {})
    always = {f"always {constant['answer']}": scores_of(constant)} if "answer" in constant else {}
    scores = {run.name: scores_of(run.result) for run in runs} | always
    keys = list(dict.fromkeys(key for found in scores.values() for key in found))
    # The log has the score that chooses by another name.
    chooses = next((key for key in keys if key.endswith(f": {metric.get('chooses')}")), "score")
    names = {key.replace(": ", "_"): key for key in keys} | {"score": chooses}
    titles = {name: names.get(name, name) for name in names_in(runs, "eval")}
    rows = []
    for key in keys:
        values = [found.get(key) for found in scores.values()]
        # The thresholds of SQuAD 2.0 are no scores.
        rows.append([key, *(column(values) if key.endswith("_thresh") else column(values, scale, unit))])
    charts = [
        chart(
            runs, key + unit, name, {label: found[key] for label, found in always.items() if key in found}, scale=scale
        )
        for name, key in titles.items()
    ]
    charts += [chart(runs, "Training loss", "loss", kind="train")]
    charts += [chart(runs, "Learning rate", "learning_rate", kind="train")]
    return {
        "final": Table(["score", *map(Cell, scores)], rows),
        "charts": charts,
        "titles": titles,
        "scale": scale,
    }


def scores_of(result: dict[str, Any]) -> dict[str, float]:
    """Return the scores of all splits by "split: name"; counts, which are whole numbers, are left out."""
    return {
        f"{split}: {name}": value
        for split in inner(result, "scores")
        for name, value in inner(result, "scores", split).items()
        if isinstance(value, float)
    }
