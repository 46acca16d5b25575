"""The part of the page about the fine-tuning runs of a task: scores, curves, evaluations and confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ernie_gram.reporting.charts import Reference, chart
from ernie_gram.reporting.markup import Cell, Html, element, folded, joined, numeric, table
from ernie_gram.reporting.numbers import PERCENT, column
from ernie_gram.reporting.pretraining_part import curves_of, group_cell
from ernie_gram.reporting.runs import Group, ReportedRun, inner, runs_of

SCORE = "score"
# With more labels, a table of confusions is too wide to be read; the most frequent ones are listed instead.
MAX_LABELS, MAX_LISTED = 12, 20
# Opacity of the cell of a count that is all of its row.
MAX_OPACITY = 0.6


def scale_of(groups: Sequence[Group]) -> tuple[float, str]:
    """Return the factor and the unit of the scores of a task: percent if its metric has fractions."""
    units = {inner(run.result, "metric").get("unit") for run in runs_of(groups) if run.result}
    unit = str(*units) if len(units) == 1 else "none"
    return {"fraction": (100.0, PERCENT), "percent": (1.0, PERCENT)}.get(unit, (1.0, ""))


def scores_of(result: Mapping[str, Any], *keys: str) -> dict[tuple[str, str], float]:
    """Return the scores of all splits by split and name; counts, which are whole numbers, are left out."""
    return {
        (split, name): value
        for split, scores in inner(result, *keys, "scores").items()
        if isinstance(scores, dict)
        for name, value in scores.items()
        if isinstance(value, float)
    }


def best_evaluation(run: ReportedRun) -> int | None:
    """Return the step of the chosen model; None until the run has ended."""
    chosen = inner(run.result, "steps").get("chosen")
    return chosen if isinstance(chosen, int) else None


def headline_scores(runs: Sequence[ReportedRun]) -> list[tuple[str, str]]:
    """Return the split and the name of each main score, those that are in the log too; result.json may have more."""
    logged = {name for run in runs for name in run.names("eval")}
    keys = dict.fromkeys(key for run in runs for key in scores_of(run.result))
    main = {inner(run.result, "metric").get("chooses") for run in runs}
    names = {name for split, name in keys if f"{split}_{name}" in logged or name in main}
    return [(split, name) for split, name in keys if name in names]


def constant_scores(groups: Sequence[Group]) -> tuple[str, dict[tuple[str, str], float]]:
    """Return a name and the scores of always giving the most frequent answer, from the first run that has them."""
    for run in runs_of(groups):
        if scores := scores_of(run.result, "constant"):
            return f"always {inner(run.result, 'constant').get('answer')}", scores
    return "", {}


def score_table(groups: Sequence[Group]) -> Html:
    """Return the main scores of the chosen models, and below them those of a constant answer, if a run has them."""
    scale, unit = scale_of(groups)
    constant, of_constant = constant_scores(groups)
    keys = headline_scores(runs_of(groups))
    columns = [
        column([*_of_groups(groups, key), [of_constant[key]] if key in of_constant else []], scale, unit)
        for key in keys
    ]
    last = [[value for run in group.runs for _, value in run.values("eval", SCORE)[-1:]] for group in groups]
    columns.append(column([*last, []], scale, unit))
    rows = [
        [group_cell(group), *(cells[number] for cells in columns), _state(group)] for number, group in enumerate(groups)
    ]
    below = [[constant, *(cells[-1] for cells in columns), ""]] if of_constant else []
    titles = (*(f"{split}: {name}" for split, name in keys), "last evaluation", "chosen step")
    return table(["run", *numeric(*titles)], rows, below)


def all_scores(groups: Sequence[Group]) -> Html:
    """Return all scores of the chosen models, folded, with a row for each; "" if there are only the main ones."""
    runs = runs_of(groups)
    keys = list(dict.fromkeys(key for run in runs for key in scores_of(run.result)))
    if len(keys) == len(headline_scores(runs)):
        return Html("")
    # The thresholds of SQuAD 2.0 are no scores.
    scales = [(1.0, "") if name.endswith("_thresh") else scale_of(groups) for _, name in keys]
    rows = [
        [f"{split}: {name}", *column(_of_groups(groups, (split, name)), *scale)]
        for (split, name), scale in zip(keys, scales, strict=True)
    ]
    return folded("All scores", table(["score", *numeric(*(group.label for group in groups))], rows))


def _of_groups(groups: Sequence[Group], key: tuple[str, str]) -> list[list[float]]:
    """Return a score of the runs of each group."""
    return [[scores[key] for run in group.runs if key in (scores := scores_of(run.result))] for group in groups]


def _state(group: Group) -> Cell:
    steps = [
        f"{best:,} of {run.max_steps or run.step:,}"
        if (best := best_evaluation(run)) is not None
        else f"at {run.step:,}"
        for run in group.runs
    ]
    return Cell(joined(dict.fromkeys(steps), "; "), style="n")


def score_charts(groups: Sequence[Group], first: int) -> list[Html]:
    """Return the charts of scores against steps, with the chosen evaluation marked, and of the training."""
    scale, unit = scale_of(groups)
    runs = runs_of(groups)
    best = {run.name: best_evaluation(run) for run in runs}
    names = dict.fromkeys(name for run in runs for name in run.names("eval"))
    constant, of_constant = constant_scores(groups)
    keys = _logged_keys(groups)
    charts = []
    for name in names:
        curves = [each._replace(best=best[each.label]) for each in curves_of(groups, "eval", name, first)]
        key = keys.get(name)
        title = ": ".join(key or (name,))
        lines = [Reference(constant, of_constant[key])] if key in of_constant else []
        charts.append(chart(f"{title}{',' + unit if unit else ''}", curves, lines, scale=scale))
    charts.append(chart("Training loss", curves_of(groups, "train", "loss", first)))
    charts.append(chart("Learning rate", curves_of(groups, "train", "learning_rate", first)))
    return [each for each in charts if each]


def _logged_keys(groups: Sequence[Group]) -> dict[str, tuple[str, str]]:
    """Return the split and the name of each score by its name in the log; {} until a run has ended."""
    results = [run.result for run in runs_of(groups) if run.result]
    keys = {f"{split}_{name}": (split, name) for result in results for split, name in scores_of(result)}
    for result in results[:1]:
        keys[SCORE] = next(iter(inner(result, "scores")), ""), str(inner(result, "metric").get("chooses", SCORE))
    return keys


def evaluations_table(groups: Sequence[Group]) -> Html:
    """Return the scores of every evaluation of every run, folded; "" without any."""
    runs = [run for run in runs_of(groups) if run.evaluations]
    if not runs:
        return Html("")
    scale, unit = scale_of(groups)
    names = list(dict.fromkeys(name for run in runs for name in run.names("eval")))
    bodies = []
    for run in runs:
        columns = [column([[r[name]] if name in r else [] for r in run.evaluations], scale, unit) for name in names]
        best = best_evaluation(run)
        steps = [f"{record['step']:,}{' (chosen)' * (record['step'] == best)}" for record in run.evaluations]
        bodies.append([[run.name, *row] for row in zip(numeric(*steps), *columns, strict=True)])
    keys = _logged_keys(groups)
    head = ["run", *numeric("step", *(": ".join(keys.get(name, (name,))) for name in names))]
    return folded("Every evaluation", table(head, *bodies))


def confusions(run: ReportedRun) -> Html:
    """Return a table for each split of how often each label was predicted for each gold label; "" without labels."""
    tables = []
    for split, counts in inner(run.result, "confusion").items():
        rows = {
            gold: {label: n for label, n in found.items() if isinstance(n, int)}
            for gold, found in counts.items()
            if isinstance(found, dict)
        }
        if rows:
            tables.append(_confusion(f"{run.name}, {split}", rows))
    return joined(tables)


def _confusion(caption: str, rows: dict[str, dict[str, int]]) -> Html:
    labels = sorted({*rows, *(label for found in rows.values() for label in found)})
    if len(labels) > MAX_LABELS:
        wrong = [(n, gold, label) for gold, found in rows.items() for label, n in found.items() if label != gold]
        body = [[gold, label, Cell(f"{n:,}", style="n")] for n, gold, label in sorted(wrong, reverse=True)[:MAX_LISTED]]
        head = ["gold", "predicted", Cell("examples", style="n")]
        return table(head, body, caption=f"{caption}: the {len(body)} most frequent confusions")
    body = []
    for gold in labels:
        found = rows.get(gold, {})
        total = sum(found.values())
        cells: list[str | Cell] = [f"gold {gold}"]
        for label in labels:
            n = found.get(label, 0)
            share = n / total if total else 0.0
            colour = "22, 130, 80" if label == gold else "190, 60, 60"
            background = f"background: rgba({colour}, {MAX_OPACITY * share:.2f})"
            cells.append(Cell(f"{n:,}", f"{share:.1%} of {total:,}", "n", background if n else ""))
        body.append([*cells, Cell(f"{total:,}", style="n soft")])
    head = ["", *numeric(*(f"predicted {label}" for label in labels), "all")]
    return table(head, body, caption=caption)


def finetuning_tables(groups: Sequence[Group]) -> list[Html]:
    """Return what follows the charts: all scores, evaluations, and the confusions of the first run of each group."""
    found = [confusions(group.runs[0]) for group in groups]
    tables = [each for each in found if each]
    heading = [element("h4", "Predicted and gold labels")] if tables else []
    return [each for each in (all_scores(groups), evaluations_table(groups), *heading, *tables) if each]
