"""Make the published tables and figures of the studies again, from their recorded results (docs/results).

    python docs/studies/tables.py --output tables
    python docs/studies/tables.py ladder --results ladder.jsonl --output tables

For each study, the folder gets STUDY.md, STUDY_perplexities.png and STUDY_scores.png. A study is described by the file
STUDY.yaml beside this script; its key `results` names the recorded results. Runs without a result are shown as missing.
Figures are like 4a and 4b of the paper.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib as mpl
import numpy as np
from recorded import COUNTERS, HERE, NGRAMS, UNITS, WHAT, Study, read_study

MISSING = "-"


def spread(values: Sequence[float], form: str, planned: int) -> str:
    """Return the mean of some values with minimum and maximum, and their number if it is less than planned."""
    if not values:
        return f"{MISSING}{number(0, planned)}"
    ends = f" ({min(values):{form}} - {max(values):{form}})" if len(values) > 1 else ""
    return f"{mean(values):{form}}{ends}{number(len(values), planned)}"


def signed(values: Sequence[float], form: str, planned: int, unit: str = "") -> str:
    """Return the mean of some differences with minimum and maximum, as `spread` does."""
    if not values:
        return MISSING
    ends = f" ({min(values):+{form}} to {max(values):+{form}})" if len(values) > 1 else ""
    return f"{mean(values):+{form}}{unit}{ends}{number(len(values), planned)}"


def number(found: int, planned: int) -> str:
    """Return how many of the planned values there are, unless there are all."""
    return f" [{found} of {planned}]" if found < planned else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *title: str) -> list[str]:
    """Return the lines of a table in Markdown with its title; none without rows."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [*title, *([""] if title else []), lines[0], f"|{'---|' * len(head)}", *lines[1:], ""] if rows else []


def report(study: Study) -> str:
    """Return all tables of a study."""
    missing = [name for name in study.variants if name not in study.found]
    parts = [f"# {study.title}", "", *([f"Without results yet: {', '.join(missing)}.", ""] if missing else [])]
    parts += [*corpora(study), "## Pre-training", "", *pretraining(study), *ratios(study), *counts(study)]
    parts += ["## Fine-tuning", "", *finetuning(study), *differences(study)] if study.tasks else []
    return "\n".join(parts).rstrip() + "\n"


def corpora(study: Study) -> list[str]:
    """Return the table of the corpora."""
    found = [(each["corpus"], each["result"]) for each in study.of_kind("corpus") if each["corpus"] in study.corpora]
    rows = [
        [
            name,
            *(f"{sizes[key]:,}" for key in ("tokens", "ngrams")),
            f"{sizes.get('median_occurrences', 0):,.0f}",
            f"{sizes['token_share']:.1%}",
        ]
        for name, sizes in found
    ]
    return table(["corpus", "tokens", "n-grams", "median occurrences", "tokens in n-grams"], rows)


def pretraining(study: Study) -> list[str]:
    """Return the table of the perplexities."""
    seconds, rows = study.equal_cpu_seconds(), []
    for name in (name for name in study.found if "config" in study.variants[name]):
        models, planned = study.models(name), len(study.seeds)
        cells = [name, study.variants[name]["what"]]
        for key in (NGRAMS, UNITS):
            starts = [next(each[key] for each in record["curve"] if key in each) for record in models]
            ends = list(study.results(name, key).values())
            cells += [f"{mean(starts):,.0f}" if starts else MISSING, spread(ends, ",.0f", planned)]
        generator = list(study.results(name, "generator_ngram_perplexity").values())
        cells.append(spread(generator, ",.0f", planned if generator else 0))
        cells.append(spread(list(study.results(name, "accuracy").values()), ".1%", planned))
        cost = study.cpu_seconds(name)
        cells.append(MISSING if cost is None else f"{cost:.3f}")
        cells.append(spread(study.at_cpu_seconds(name, seconds), ",.0f", planned) if seconds else MISSING)
        rows.append(cells)
    head = ["variant", "what", "n-grams, start", "n-grams, end", "units, start", "units, end"]
    head += ["generator, n-grams", "accuracy", "CPU s per step", "n-grams at equal CPU time"]
    title = (
        "Held-out perplexities; mean over the seeds of pre-training (minimum - maximum). CPU seconds are the median of "
        "the seeds. Unless objective.output_bias is zero, output biases start from log frequencies, which puts "
        "variants that predict n-grams as classes ahead over n-grams before the first step."
    )
    return table(head, rows, f"{title} Equal CPU time is {seconds:,.0f} s." if seconds else title)


def ratios(study: Study) -> list[str]:
    """Return the table of perplexities as differences to the reference in percent."""
    rows = []
    for name in (name for name in study.found if name != study.reference):
        cells = [name]
        for key in (NGRAMS, UNITS):
            own, other = study.results(name, key), study.results(study.reference, key)
            found = [100 * (own[seed] / other[seed] - 1) for seed in own if seed in other]
            cells.append(signed(found, ".1f", len(study.seeds), " %"))
        rows.append(cells)
    title = f"Difference of final perplexities to {study.reference}, paired by the seeds: mean (minimum to maximum)."
    return table(["variant", *WHAT], rows, title)


def counts(study: Study) -> list[str]:
    """Return the table of the count baselines, on the same masked units."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in study.counts:
        groups.setdefault((record["corpus"], record["held_out"]), []).append(record["result"])
    rows = [
        [*pair, name, *(spread([each[f"{name}, {what}"] for each in found], ",.0f", len(study.seeds)) for what in WHAT)]
        for pair, found in groups.items()
        for name in COUNTERS
    ]
    return table(["counted in", "predicted in", "predictor", *WHAT], rows)


def finetuning(study: Study) -> list[str]:
    """Return the table of the scores."""
    rows = []
    for name in study.found:
        planned, cells = len(study.seeds_of(name)) * len(study.finetuning_seeds), [name]
        for task in study.tasks:
            scores = list(study.scores(name, task).values())
            shown = f"{mean(scores):.1f}" if scores else MISSING
            shown += f" ± {stdev(scores):.1f}" if len(scores) > 1 else ""
            cells.append(shown + number(len(scores), planned))
        rows.append([*cells, spread(list(study.mean_scores(name).values()), ".2f", len(study.seeds_of(name)))])
    title = "Scores on the development sets; mean ± standard deviation over the seeds of pre-training and fine-tuning."
    more = "The last column is the mean over the tasks (minimum - maximum over the seeds of pre-training)."
    return table(["variant", *study.tasks, "mean"], rows, title, more)


def differences(study: Study) -> list[str]:
    """Return the table of the scores as differences to the reference."""
    planned, rows = len(study.seeds), []
    for name in (name for name in study.found if name != study.reference):
        cells = [signed(study.differences(name, task), ".1f", planned) for task in study.tasks]
        rows.append([name, *cells, signed(study.mean_differences(name), ".2f", planned)])
    reference = study.reference
    title = (
        f"Differences to {reference}, paired by the seeds: mean (minimum to maximum over the seeds of pre-training)."
    )
    return table(["variant", *study.tasks, "mean"], rows, title)


def new_axes() -> tuple[Any, Any]:
    """Return an empty figure and its axes."""
    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7.5, 4), layout="constrained")


def save(figure: Any, axes: Any, path: Path) -> None:
    """Add grid and legend, and write a figure."""
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def draw_perplexities(study: Study, path: Path) -> None:
    """Plot n-gram perplexity against steps: the mean of each variant, and the range over its seeds."""
    figure, axes = new_axes()
    for place, name in enumerate(study.variants):
        curves = [[(each["step"], each[NGRAMS]) for each in record["curve"]] for record in study.models(name)]
        steps = sorted({step for curve in curves for step, _ in curve})
        values = [[value for curve in curves for at, value in curve if at == step] for step in steps]
        if not steps:
            continue
        # There are ten colours.
        means, style, color = [np.mean(each) for each in values], "o-" if place < 10 else "o--", f"C{place % 10}"
        axes.plot(steps, means, style, markersize=3, color=color, label=f"{name} ({len(curves)})")
        axes.fill_between(steps, list(map(min, values)), list(map(max, values)), color=color, alpha=0.15)
    if len({(record["corpus"], record["held_out"]) for record in study.counts}) == 1:
        level = float(np.mean([record["result"]["left neighbour, n-grams"] for record in study.counts]))
        axes.axhline(level, color="black", linestyle=":", label="counts of left neighbours")
    title = "Held-out perplexity of masked n-grams (number of seeds)"
    axes.set(title=title, xlabel="step", ylabel="perplexity", yscale="log")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True, min_n_ticks=1))
    save(figure, axes, path)


def draw_scores(study: Study, path: Path) -> None:
    """Plot the mean score over all tasks of each variant: a point for each seed of pre-training."""
    figure, axes = new_axes()
    scores = {name: list(study.mean_scores(name).values()) for name in study.variants}
    found = {name: values for name, values in scores.items() if values}
    for column, values in enumerate(found.values()):
        middle = float(np.mean(values))
        axes.plot([column - 0.25, column + 0.25], [middle, middle], color="C1", label=None if column else "mean")
        axes.plot([column] * len(values), values, "o", markersize=4, alpha=0.7, color="C0")
    labels = [f"{name} ({len(values)})" for name, values in found.items()]
    axes.set_xticks(range(len(found)), labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_xlim(-0.6, len(found) - 0.4)
    axes.set(title=f"Mean score on {len(study.tasks)} tasks, by seed of pre-training (number of seeds)", ylabel="score")
    save(figure, axes, path)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(path.stem for path in HERE.glob("*.yaml"))
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="other results than the recorded ones")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder for tables and figures")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.studies or names:
        study = read_study(name, arguments.results)
        (arguments.output / f"{name}.md").write_text(report(study), "utf-8")
        draw_perplexities(study, arguments.output / f"{name}_perplexities.png")
        draw_scores(study, arguments.output / f"{name}_scores.png")
        print(f"{arguments.output / name}: .md, _perplexities.png, _scores.png")


if __name__ == "__main__":
    main()
