"""Compare fine-tuned taggers by the share of whole entities that they find, by length (figure 6a of the paper).

    python docs/studies/entity_recall.py output/token output/full --data conll2003 --output recall
    python docs/studies/entity_recall.py token_1 token_2 full_1 full_2 --names token token full full \
        --data conll2003 --output recall

An entity is found if its type and both ends are right. Lengths are in words, in Chinese in characters. There are two
tables: by the length of an entity, and for five groups of sentences by the average length of their entities. Sentences
with the same average are in the same group; the groups are as equal in size as this allows. Numbers in brackets are
95 % bootstrap intervals: the sentences are resampled 1,000 times, in the same way for all models. Runs with the same
name are seeds of one model. OUTPUT.json gets the numbers, OUTPUT.png the figure.

Shape letters: S sentences, R runs, M names of models, K columns of a table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from tasks import FineTuned
from tasks.files.official import labelled_split, load_split
from tasks.metrics.entities import Entity, entities_of

Entities = Sequence[Sequence[Entity]]  # of each sentence
GROUPS, LONGEST = 5, 4
# Resamples of the sentences, and their seed. The interval has 95 % of them.
DRAWS, SEED, TAILS = 1000, 1, (0.025, 0.975)


class Column(NamedTuple):
    """A part of the entities of a split: its name, their number in each sentence [S], and those found [R, S]."""

    name: str
    gold: np.ndarray
    found: np.ndarray


def counts_by_length(gold: Entities, predicted: Entities, longest: int) -> np.ndarray:
    """Return the number of gold entities of each sentence and length [S, longest] that are among the predicted ones."""
    counts = np.zeros((len(gold), longest), np.int64)
    for row, (expected, found) in enumerate(zip(gold, predicted, strict=True)):
        for entity in set(expected) & set(found):
            counts[row, min(entity.end - entity.start, longest) - 1] += 1
    return counts


def columns_by_length(gold: Entities, predictions: Sequence[Entities], longest: int = LONGEST) -> list[Column]:
    """Return a column for all entities, then one for each length; entities of `longest` tokens or more share the last.

    `predictions` has the entities that each run found.
    """
    counts = counts_by_length(gold, gold, longest)
    found = np.stack([counts_by_length(gold, of_run, longest) for of_run in predictions])
    names = [*(str(length) for length in range(1, longest)), f"{longest}+"]
    by_length = [Column(name, counts[:, i], found[:, :, i]) for i, name in enumerate(names)]
    return [Column("all", counts.sum(1), found.sum(2)), *by_length]


def columns_by_group(gold: Entities, everything: Column) -> list[Column]:
    """Return a column for each of GROUPS groups of sentences, from short to long entities; `everything` has all.

    The sentences that have entities are ordered by the average length of these and cut into groups. Sentences with the
    same average are in the same group; otherwise the groups are as equal in size as possible. There are fewer groups if
    there are fewer distinct averages. The name of a group is its smallest and its largest average.
    """
    averages = np.array([np.mean([entity.end - entity.start for entity in each]) if each else 0 for each in gold])
    values, counts = np.unique(averages[averages > 0], return_counts=True)
    columns, first, left = list[Column](), 0, int(counts.sum())
    for group in range(GROUPS, 0, -1):
        if first == len(values):
            break
        # This group gets 1 / `group` of the sentences that are left, as nearly as equal averages allow.
        sizes = np.cumsum(counts[first:])
        stop = len(values) if group == 1 else first + 1 + int(np.argmin(np.abs(sizes - left / group)))
        low, high = values[first], values[stop - 1]
        inside = (averages >= low) & (averages <= high)
        name = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        columns.append(Column(name, everything.gold * inside, everything.found * inside))
        first, left = stop, left - int(inside.sum())
    return columns


def recalls(columns: Sequence[Column], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each column, which must not be empty, its numbers and the recall of each model; `names` is by run.

    Recall is in percent: the `mean` over the runs, each of the `runs`, and the bounds `low` and `high` of 95 % of the
    resamples of the sentences, which do not cover the variation between seeds. `difference` has mean, low and high of
    the difference to the first model in the same resamples; None for the first model.
    """
    size, rows = len(columns[0].gold), []
    weights = np.random.default_rng(SEED).multinomial(size, np.full(size, 1 / size), DRAWS)
    for column in columns:
        recall: dict[str, dict[str, Any]] = {}
        first: tuple[float, np.ndarray] | None = None
        for name in dict.fromkeys(names):
            found = column.found[[each == name for each in names]]
            runs = 100 * found.sum(1) / column.gold.sum()
            with np.errstate(invalid="ignore"):
                # NaN, which the quantiles ignore, for a resample without entities of the column.
                drawn = 100 * (weights @ found.mean(0)) / (weights @ column.gold)
            mean, (low, high) = float(runs.mean()), np.nanquantile(drawn, TAILS).tolist()
            difference = first and [mean - first[0], *np.nanquantile(drawn - first[1], TAILS).tolist()]
            recall[name] = {"mean": mean, "runs": runs.tolist(), "low": low, "high": high, "difference": difference}
            first = first or (mean, drawn)
        sentences, entities = int((column.gold > 0).sum()), int(column.gold.sum())
        rows.append({"length": column.name, "sentences": sentences, "entities": entities, "recall": recall})
    return rows


def tables_of(gold: Entities, predictions: Sequence[Entities], names: Sequence[str], unit: str) -> list[dict[str, Any]]:
    """Return the two tables; columns without entities are left out. `unit` is that of the lengths, for the titles."""
    by_length = columns_by_length(gold, predictions)
    tables = {
        f"Entities by length in {unit}": [column for column in by_length if column.gold.any()],
        f"Sentences by the average length of their entities in {unit}": columns_by_group(gold, by_length[0]),
    }
    return [{"title": title, "rows": recalls(columns, names)} for title, columns in tables.items()]


def markdown(table: dict[str, Any]) -> str:
    """Return a table in Markdown, a row for each length."""
    models = list(table["rows"][0]["recall"])
    head = ["length", "entities", *models, *(f"{name} - {models[0]}" for name in models[1:])]
    lines = [f"{table['title']}: recall, %", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in table["rows"]:
        cells = list(row["recall"].values())
        shown = [f"{cell['mean']:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]" for cell in cells]
        shown += ["{:+.1f} [{:+.1f}, {:+.1f}]".format(*cell["difference"]) for cell in cells[1:]]
        lines.append(f"| {' | '.join([row['length'], format(row['entities'], ','), *shown])} |")
    return "\n".join(lines)


def draw(tables: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot the recall of every model with its interval, and small points for single runs."""
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(tables), figsize=(4 + 3.5 * len(tables), 4), layout="constrained")
    for axes, table in zip(panels, tables, strict=True):
        rows = table["rows"]
        models = list(rows[0]["recall"])
        for number, name in enumerate(models):
            cells = [row["recall"][name] for row in rows]
            places = np.arange(len(cells)) + 0.5 * ((number + 0.5) / len(models) - 0.5)
            means = [cell["mean"] for cell in cells]
            bars = [[max(0.0, sign * (cell["mean"] - cell[key])) for cell in cells] for sign, key in SIDES]
            color = f"C{number % 10}"
            axes.errorbar(places, means, bars, fmt="o", markersize=5, capsize=2, color=color, label=name)
            for place, cell in zip(places, cells, strict=True):
                if len(cell["runs"]) > 1:
                    runs = cell["runs"]
                    axes.plot([place + 0.03] * len(runs), runs, ".", markersize=3, color=color, alpha=0.6)
        ticks = [f"{row['length'].replace(' to ', '–')}\n{row['entities']:,}" for row in rows]
        axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
        axes.set_title(table["title"], fontsize=9)
        axes.set(xlabel="length, number of entities", ylabel="recall of whole entities, %")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


SIDES = ((1, "low"), (-1, "high"))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="fine-tunings on the same task of tagging")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="a name for each RUN (default: their folders')")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the task's official files")
    parser.add_argument("--split", help="a split with labels (default: the first dev split)")
    parser.add_argument("--output", type=Path, required=True, help="path of the files, without an ending")
    arguments = parser.parse_args()
    names = arguments.names or [run.resolve().name for run in arguments.runs]
    if len(names) != len(arguments.runs):
        parser.error("--names: give one for each RUN")
    models = [FineTuned.load(run, precision="float32") for run in arguments.runs]
    task = models[0].task
    if task.kind != "tagging" or any(model.task.labels != task.labels for model in models):
        parser.error("RUN: give fine-tunings on the same task of tagging")
    examples, report = load_split(task, arguments.data, labelled_split(task, arguments.split))
    rows = [{"tokens": list(example.tokens)} for example in examples]
    predictions = [[entities_of(record["tags"]) for record in model.predict(rows)] for model in models]
    gold = [example.entities or () for example in examples]
    tables = tables_of(gold, predictions, names, "characters" if task.language == "zh" else "words")
    print("\n\n".join(map(markdown, tables)))
    sources = [{"name": name, "model": str(model.source)} for name, model in zip(names, models, strict=True)]
    content = {"task": task.name, "split": report.split, "sentences": len(gold), "runs": sources, "tables": tables}
    arguments.output.with_suffix(".json").write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    draw(tables, arguments.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
