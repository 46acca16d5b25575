"""Figures of the results of a study, like figures 4a and 4b of the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ernie_gram.plot import new_figure, save_figure, set_step_axis
from tasks.studies.summaries import NGRAMS, Summary


def draw_perplexities(summary: Summary, target: Path) -> bool:
    """Plot n-gram perplexity against steps, as figure 4a: the mean of each variant, and the range over its seeds.

    Returns whether there is anything to plot; otherwise no file is written.
    """
    figure, [axes] = new_figure(1)
    is_drawn = False
    for number, name in enumerate(summary.study.variants):
        curves = [[(e["step"], e[NGRAMS]) for e in record["curve"] if NGRAMS in e] for record in summary.models(name)]
        steps = sorted({step for curve in curves for step, _ in curve})
        values = [[value for curve in curves for at, value in curve if at == step] for step in steps]
        if not steps:
            continue
        is_drawn, color = True, f"C{number % 10}"
        label = f"{name} ({len(curves)})"
        axes.plot(
            steps,
            [np.mean(each) for each in values],
            "o-" if number < 10 else "o--",  # there are ten colours
            markersize=3,
            color=color,
            label=label,
        )
        axes.fill_between(
            steps, [min(each) for each in values], [max(each) for each in values], color=color, alpha=0.15
        )
    counts = [record["result"]["left neighbour, n-grams"] for record in summary.counts]
    if len({(record["corpus"], record["held_out"]) for record in summary.counts}) == 1:
        axes.axhline(float(np.mean(counts)), color="black", linestyle=":", label="counts of left neighbours")
    set_step_axis(axes, "Held-out perplexity of masked n-grams (number of seeds)", "perplexity", "log")
    if is_drawn:
        save_figure(figure, [axes], target)
    return is_drawn


def draw_scores(summary: Summary, target: Path) -> bool:
    """Plot the mean score over all tasks of each variant, as figure 4b: a point for each seed of pre-training.

    Returns whether there is anything to plot; otherwise no file is written.
    """
    figure, [axes] = new_figure(1)
    scores = {name: list(summary.mean_scores(name).values()) for name in summary.study.variants}
    found = {name: values for name, values in scores.items() if values}
    names = list(found)
    for column, name in enumerate(names):
        middle, ends = float(np.mean(found[name])), [column - 0.25, column + 0.25]
        axes.plot(ends, [middle, middle], color="C1", label=None if column else "mean")
        axes.plot([column] * len(found[name]), found[name], "o", markersize=4, alpha=0.7, color="C0")
    labels = [f"{name} ({len(found[name])})" for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set(
        title=f"Mean score on {len(summary.tasks)} tasks, by seed of pre-training (number of seeds)", ylabel="score"
    )
    if found:
        save_figure(figure, [axes], target)
    return bool(found)
