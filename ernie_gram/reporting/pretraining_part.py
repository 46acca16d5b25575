"""The part of the page about pre-training runs: their last evaluations beside counts, and their curves."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median

from ernie_gram.pretraining.count_baselines import Perplexities
from ernie_gram.reporting.charts import Reference, Series, chart
from ernie_gram.reporting.markup import Cell, Html, breakable, element, folded, numeric, table
from ernie_gram.reporting.numbers import MISSING, PERCENT, column
from ernie_gram.reporting.runs import Group, ReportedRun, runs_of
from ernie_gram.run.run_log import LOSS_STEPS, METERS, RATE

UNITS, NGRAMS, GENERATOR = "perplexity", "ngram_perplexity", "generator_ngram_perplexity"
# The quantities in the log of training that are not terms of the loss.
NO_TERMS = ("loss", "grad_norm", "learning_rate", "loss_scale", "skipped", "sent_bytes", LOSS_STEPS, *METERS)


def evaluated(group: Group, name: str, first: bool = False) -> list[float]:
    """Return a value of the last evaluation of each run of a group, or with `first` of that before the first step."""
    found = []
    for run in group.runs:
        records = [each for each in run.evaluations if each["step"] == 0] if first else run.evaluations[-1:]
        found += [record[name] for record in records if name in record]
    return found


def step_seconds(run: ReportedRun) -> list[float]:
    """Return the median time of a step in seconds, as a list with one number; an empty list if it is unknown."""
    rates = [rate for _, rate in run.values("train", RATE) if rate > 0]
    size = run.settings.get("data.batch_size")
    return [size / median(rates)] if rates and isinstance(size, int) else []


def group_cell(group: Group) -> Cell:
    """Return the heading of a row: the name of a group; its runs are shown when the pointer is over it."""
    return Cell(breakable(group.label), ", ".join(run.name for run in group.runs))


def final_table(groups: Sequence[Group], counts: dict[str, Perplexities]) -> Html:
    """Return the table of the last evaluations: of each group the mean over its runs and their range."""
    wanted = [
        ("units, start", [evaluated(group, UNITS, first=True) for group in groups], 1.0, ""),
        ("units, end", [evaluated(group, UNITS) for group in groups], 1.0, ""),
        ("n-grams, start", [evaluated(group, NGRAMS, first=True) for group in groups], 1.0, ""),
        ("n-grams, end", [evaluated(group, NGRAMS) for group in groups], 1.0, ""),
        ("generator, n-grams", [evaluated(group, GENERATOR) for group in groups], 1.0, ""),
        ("accuracy", [evaluated(group, "accuracy") for group in groups], 100.0, PERCENT),
        ("time of a step", [[s for run in group.runs for s in step_seconds(run)] for group in groups], 1.0, " s"),
    ]
    counted = {
        "units, end": [[each.units] for each in counts.values()],
        "n-grams, end": [[each.ngrams] if isfinite(each.ngrams) else [] for each in counts.values()],
    }
    shown = [each for each in wanted if any(each[1])]
    nothing: list[list[float]] = [[] for _ in counts]
    cells = [column([*values, *counted.get(title, nothing)], scale, unit) for title, values, scale, unit in shown]
    rows = [
        [group_cell(group), _steps(group), *row]
        for group, *row in zip(groups, *(each[: len(groups)] for each in cells), strict=True)
    ]
    counting = [
        [f"counts: {name}", "", *("" if cell == MISSING else cell for cell in row)]
        for name, *row in zip(counts, *(each[len(groups) :] for each in cells), strict=True)
    ]
    head = ["run", *numeric("steps", *(each[0] for each in shown))]
    return table(head, rows, counting)


def _steps(group: Group) -> Cell:
    steps = sorted({run.evaluations[-1]["step"] if run.evaluations else run.step for run in group.runs})
    runs = f"{len(group.runs)} seeds" if len(group.runs) > 1 else ""
    content = " – ".join(f"{step:,}" for step in dict.fromkeys((steps[0], steps[-1])))
    return Cell(Html(content + (element("small", runs) if runs else "")), style="n")


def curves_of(
    groups: Sequence[Group], kind: str, name: str, first: int = 0, style: str = "", suffix: str = ""
) -> list[Series]:
    """Return a curve for each run that has a quantity; runs of a group have the same colour.

    Args:
        first: number of the colour of the first group.
        style, suffix: added to the classes of CSS and to the labels.
    """
    series = []
    for number, group in enumerate(groups, first):
        for run in group.runs:
            points = run.values(kind, name)
            if points:
                series.append(Series(run.name + suffix, f"c{number} {style}".strip(), points))
    return series


def perplexity_charts(groups: Sequence[Group], counts: dict[str, Perplexities]) -> list[Html]:
    """Return the charts of the evaluations."""
    of_units = [Reference(name, each.units) for name, each in counts.items()]
    of_ngrams = [Reference(name, each.ngrams) for name, each in counts.items()]
    ngrams = curves_of(groups, "eval", NGRAMS)
    ngrams += curves_of(groups, "eval", GENERATOR, style="second", suffix=", generator")
    return [
        chart("Held-out perplexity, all masked units", curves_of(groups, "eval", UNITS), of_units, is_log=True),
        chart("Held-out perplexity, masked n-grams", ngrams, of_ngrams, is_log=True),
        chart("Accuracy on masked units, %", curves_of(groups, "eval", "accuracy"), scale=100),
    ]


def training_charts(groups: Sequence[Group]) -> list[Html]:
    """Return the charts of training: loss, its terms if there are several, and learning rate."""
    terms_of = [[name for name in run.names("train") if name not in NO_TERMS] for run in runs_of(groups)]
    terms = dict.fromkeys(name for terms in terms_of for name in terms)
    has_several = any(len(terms) > 1 for terms in terms_of)
    shown = [chart("Training loss", curves_of(groups, "train", "loss"))]
    for name in terms if has_several else ():
        shown.append(chart(f"Loss term {name}", curves_of(groups, "train", name)))
    shown.append(chart("Learning rate", curves_of(groups, "train", "learning_rate")))
    return [each for each in shown if each]


def other_charts(groups: Sequence[Group]) -> Html:
    """Return the charts of gradients and speed, folded; "" without any."""
    wanted = {"grad_norm": "Norm of the gradient", RATE: "Sequences per second"}
    charts = [
        chart(title, curves_of(groups, "train", name), is_log=name == "grad_norm") for name, title in wanted.items()
    ]
    found = [each for each in charts if each]
    return folded("Gradients and speed", element("div", *found, class_="charts")) if found else Html("")
