"""The tables and the figure of a sweep."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.plot import new_figure, save_figure
from reader.plurals import counted
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Metric
from tasks.sweeps.results import Result, Spread, reported_scores, reported_value, spread_of
from tasks.sweeps.runs import Finished

Row = dict[str, str | int | float]


def csv_rows(finished: Finished) -> list[Row]:
    """Return one row for each finished run: settings, seed, score, all scores that papers report, steps, seconds."""
    rows: list[Row] = []
    for run, result in finished:
        metric = METRICS[result["metric"]["name"]]
        row: Row = {"run": run.name, **dict(run.settings), "seed": run.seed}
        row |= {"score": reported_value(metric, result["score"]), **reported_scores(result)}
        row |= {"chosen_step": result["steps"]["chosen"], "steps": result["steps"]["total"]}
        rows.append(row | {"seconds": sum(result["seconds"].values())})
    return rows


def by_setting(finished: Finished) -> dict[tuple[tuple[str, str], ...], list[Result]]:
    """Return the results of each combination of settings, over its seeds, in order of the plan."""
    groups: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for run, result in finished:
        groups.setdefault(run.settings, []).append(result)
    return groups


def scores_of(results: list[Result], metric: Metric) -> list[float]:
    """Return the score of each result, in the unit of papers."""
    return [reported_value(metric, result["score"]) for result in results]


def markdown(finished: Finished) -> str:
    """Return a Markdown table: for each combination the median, the best and the worst score over its seeds, and the
    medians of the scores that papers report. The combination with the best median is marked."""
    first = finished[0][1]
    metric = METRICS[first["metric"]["name"]]
    groups = by_setting(finished)
    spreads = {settings: spread_of(scores_of(results, metric), metric) for settings, results in groups.items()}
    sign = 1 if metric.direction == "max" else -1
    best = max(spreads, key=lambda settings: sign * spreads[settings].median)
    keys, scores = [key for key, _ in best], list(reported_scores(first))
    head = [*keys, "seeds", "median", "best", "worst", "deviation", *(f"median {name}" for name in scores)]
    lines = [
        f"{first['task']}: {counted(len(finished), 'run')}. The score is {first['metric']['chooses']} on the first of "
        f"the splits {', '.join(first['scores'])}{'' if metric.unit == 'none' else ', in percent'}.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
    ]
    for settings, results in groups.items():
        cells = [value for _, value in settings] + _spread_cells(spreads[settings], settings == best)
        values = [reported_scores(result) for result in results]
        cells += [f"{spread_of([each[name] for each in values], metric).median:.2f}" for name in scores]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _summary(best, spreads[best], finished, metric)]) + "\n"


def _spread_cells(spread: Spread, is_best: bool) -> list[str]:
    median = f"**{spread.median:.2f}**" if is_best else f"{spread.median:.2f}"
    return [str(spread.seeds), median, *(f"{value:.2f}" for value in (spread.best, spread.worst, spread.deviation))]


def _summary(settings: tuple[tuple[str, str], ...], spread: Spread, finished: Finished, metric: Metric) -> str:
    """Return the best combination, the best run, and the seed's effect beside that of the settings."""
    best_run = (max if metric.direction == "max" else min)(finished, key=lambda pair: float(pair[1]["score"]))[0]
    shown = ", ".join(f"{key} {value}" for key, value in settings)
    return (
        f"Best median: {spread.median:.2f} over {counted(spread.seeds, 'seed')} (deviation {spread.deviation:.2f})"
        f"{f' with {shown}' if shown else ''}. Best run: {best_run.name}."
    )


def draw(finished: Finished, target: Path) -> None:
    """Plot the score of every run, one column for each combination, with a line at its median."""
    metric = METRICS[finished[0][1]["metric"]["name"]]
    groups = by_setting(finished)
    figure, [axes] = new_figure(1)
    for column, results in enumerate(groups.values()):
        scores = scores_of(results, metric)
        axes.plot([column] * len(scores), scores, "o", markersize=4, alpha=0.6, color="C0")
        median = spread_of(scores, metric).median
        axes.plot([column - 0.3, column + 0.3], [median, median], color="C1", label=None if column else "median")
    labels = ["\n".join(f"{key.rpartition('.')[2]} {value}" for key, value in settings) for settings in groups]
    axes.set_xticks(range(len(groups)), labels, rotation=90 if len(groups) > 4 else 0, fontsize=7)
    unit = "" if metric.unit == "none" else " (percent)"
    axes.set(title=finished[0][1]["task"], ylabel=f"{finished[0][1]['metric']['chooses']}{unit}")
    save_figure(figure, [axes], target)
