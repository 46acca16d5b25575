"""Tables in Markdown of the results of a study. Missing results are shown as missing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from ernie_gram.experiments.tables import markdown_table, spread_of
from tasks.studies.plan import CORPUS
from tasks.studies.summaries import NGRAMS, UNITS, Summary

MISSING = "-"
WHAT = ("n-grams", "units")
COUNTERS = ("unit frequencies", "left neighbour", "both neighbours")


def report(summary: Summary) -> str:
    """Return all tables of a study."""
    study = summary.study
    parts = [f"# {study.title}", "", *_missing(summary), *_corpora(summary), *_pretraining(summary)]
    if study.tasks:
        parts += [*_finetuning(summary), *_differences(summary)]
    return "\n".join(parts).rstrip() + "\n"


def spread(values: Sequence[float], form: str, planned: int) -> str:
    """Return the mean of some values with minimum and maximum, and their number if it is less than planned."""
    if not values:
        return f"{MISSING}{_number(0, planned)}"
    found = spread_of(values, "min")
    ends = f" ({found.best:{form}} - {found.worst:{form}})" if len(values) > 1 else ""
    return f"{found.mean:{form}}{ends}{_number(len(values), planned)}"


def _signed(values: Sequence[float], form: str, planned: int, unit: str = "") -> str:
    """Return the mean of some differences with minimum and maximum, as `spread` does."""
    if not values:
        return MISSING
    ends = f" ({min(values):+{form}} to {max(values):+{form}})" if len(values) > 1 else ""
    return f"{mean(values):+{form}}{unit}{ends}{_number(len(values), planned)}"


def _number(found: int, planned: int) -> str:
    return f" [{found} of {planned}]" if found < planned else ""


def _missing(summary: Summary) -> list[str]:
    missing = [name for name in summary.study.variants if name not in summary.found_variants]
    return [f"Without results yet: {', '.join(missing)}.", ""] if missing else []


def _corpora(summary: Summary) -> list[str]:
    rows = [
        [
            str(record["corpus"]),
            f"{record['result']['tokens']:,}",
            f"{record['result']['ngrams']:,}",
            f"{record['result'].get('median_occurrences', 0):,.0f}",
            f"{record['result']['token_share']:.1%}",
        ]
        for record in summary.of_kind(CORPUS)
        if record["corpus"] in summary.study.corpora
    ]
    head = ["corpus", "tokens", "n-grams", "median occurrences", "tokens in n-grams"]
    return [*markdown_table(head, rows), ""] if rows else []


def _pretraining(summary: Summary) -> list[str]:
    """Return the tables of pre-training: perplexities, their differences to the reference, and count baselines."""
    study, seconds = summary.study, summary.equal_cpu_seconds()
    rows = []
    for name in (name for name in summary.found_variants if study.variants[name].config):
        models, planned = summary.models(name), len(study.seeds)
        cells = [name, study.variants[name].what]
        for key in (NGRAMS, UNITS):
            curves = [[each[key] for each in record["curve"] if key in each] for record in models]
            starts = [curve[0] for curve in curves if curve]
            ends = list(summary.results(name, key).values())
            cells += [f"{mean(starts):,.0f}" if starts else MISSING, spread(ends, ",.0f", planned)]
        for key, form in (("generator_ngram_perplexity", ",.0f"), ("accuracy", ".1%")):
            found = list(summary.results(name, key).values())
            has_one = bool(found) or key == "accuracy"
            cells.append(spread(found, form, planned if has_one else 0))
        cost = summary.cpu_seconds(name)
        cells.append(MISSING if cost is None else f"{cost:.3f}")
        cells.append(spread(summary.at_cpu_seconds(name, seconds), ",.0f", planned) if seconds else MISSING)
        rows.append(cells)
    head = ["variant", "what", "n-grams, start", "n-grams, end", "units, start", "units, end"]
    head += ["generator, n-grams", "accuracy", "CPU s per step", "n-grams at equal CPU time"]
    equal = f" Equal CPU time is {seconds:,.0f} s." if seconds else ""
    title = (
        "Held-out perplexities; mean over the seeds of pre-training (minimum - maximum). CPU seconds are the median of "
        "the seeds. Unless objective.output_bias is zero, output biases start from log frequencies, which puts "
        "variants that predict n-grams as classes ahead over n-grams before the first step."
    )
    tables = [*markdown_table(head, rows), "", *_ratios(summary), *_counts(summary)]
    return ["## Pre-training", "", f"{title}{equal}", "", *tables]


def _ratios(summary: Summary) -> list[str]:
    """Return the table of perplexities as differences to the reference in percent."""
    reference, rows = summary.study.reference, []
    for name in (name for name in summary.found_variants if name != reference):
        cells = [name]
        for key in (NGRAMS, UNITS):
            found = [100 * (ratio - 1) for ratio in summary.perplexity_ratios(name, key)]
            cells.append(_signed(found, ".1f", len(summary.study.seeds), " %"))
        rows.append(cells)
    title = f"Difference of final perplexities to {reference}, paired by the seeds: mean (minimum to maximum)."
    return [title, "", *markdown_table(["variant", *WHAT], rows), ""] if rows else []


def _counts(summary: Summary) -> list[str]:
    """Return the table of the count baselines, on the same masked units."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in summary.counts:
        groups.setdefault((record["corpus"], record["held_out"]), []).append(record["result"])
    planned = len(summary.study.seeds)
    rows = [
        [*pair, name, *(spread([each[f"{name}, {what}"] for each in found], ",.0f", planned) for what in WHAT)]
        for pair, found in groups.items()
        for name in COUNTERS
    ]
    return [*markdown_table(["counted in", "predicted in", "predictor", *WHAT], rows), ""] if rows else []


def _finetuning(summary: Summary) -> list[str]:
    rows = []
    for name in summary.found_variants:
        planned, cells = summary.planned_scores(name), [name]
        for task in summary.tasks:
            scores = list(summary.scores(name, task).values())
            shown = f"{mean(scores):.1f}" if scores else MISSING
            shown += f" ± {spread_of(scores).deviation:.1f}" if len(scores) > 1 else ""
            cells.append(shown + _number(len(scores), planned))
        means = list(summary.mean_scores(name).values())
        rows.append([*cells, spread(means, ".2f", len(summary.seeds_of(name)))])
    title = "Scores on the development sets; mean ± standard deviation over the seeds of pre-training and fine-tuning."
    more = "The last column is the mean over the tasks (minimum - maximum over the seeds of pre-training)."
    return ["## Fine-tuning", "", title, more, "", *markdown_table(["variant", *summary.tasks, "mean"], rows), ""]


def _differences(summary: Summary) -> list[str]:
    reference = summary.study.reference
    rows = []
    for name in (name for name in summary.found_variants if name != reference):
        planned, cells = len(summary.study.seeds), [name]
        for task in summary.tasks:
            cells.append(_signed(summary.differences(name, task), ".1f", planned))
        rows.append([*cells, _signed(summary.mean_differences(name), ".2f", planned)])
    title = (
        f"Differences to {reference}, paired by the seeds: mean (minimum to maximum over the seeds of pre-training)."
    )
    return [title, "", *markdown_table(["variant", *summary.tasks, "mean"], rows), ""]
