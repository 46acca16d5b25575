"""Make the published tables and figures of the studies again, from their recorded results (docs/results).

    python docs/studies/tables.py --output tables
    python docs/studies/tables.py ladder --results ladder.jsonl --output tables

For each study, the folder gets STUDY.md, STUDY_perplexities.png and STUDY_scores.png. A study is described by the file
STUDY.yaml beside this script; its key `results` names the recorded results. Runs without a result are shown as missing.
Figures are like 4a and 4b of the paper.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import matplotlib as mpl
import numpy as np
import yaml

HERE = Path(__file__).resolve().parent
NGRAMS, UNITS, CPU = "ngram_perplexity", "perplexity", "cpu_seconds_per_step"
WHAT = ("n-grams", "units")
COUNTERS = ("unit frequencies", "left neighbour", "both neighbours")
MISSING = "-"

Record = dict[str, Any]


class Study:
    """A study and its recorded results.

    Attributes:
        title: of its tables; reference: the variant with which the others are compared.
        seeds, finetuning_seeds: of each pre-training, and of each fine-tuning of each model.
        variants: name -> description; one without `config` is the given model, without further training.
        found: the variants that have a result.
        corpora, tasks: names.
        records: all recorded results; those of other studies in the same file are not used.
    """

    def __init__(self, tree: dict[str, Any], records: Sequence[Record]) -> None:
        finetuning = tree.get("finetuning", {})
        self.title, self.reference = tree["title"], tree["reference"]
        self.seeds, self.finetuning_seeds = tree["seeds"], finetuning.get("seeds", [1])
        self.variants: dict[str, dict[str, Any]] = tree["variants"]
        self.corpora, self.tasks = list(tree["corpora"]), list(finetuning.get("tasks", {}))
        self.records = records
        self.found = [name for name in self.variants if name in {record.get("variant") for record in records}]

    def of_kind(self, kind: str) -> list[Record]:
        """Return the records of a kind."""
        return [record for record in self.records if record["kind"] == kind]

    @property
    def counts(self) -> list[Record]:
        """The count baselines of this study's corpora and seeds."""
        return [
            each for each in self.of_kind("counts") if each["corpus"] in self.corpora and each["seed"] in self.seeds
        ]

    def models(self, variant: str) -> list[Record]:
        """Return the pre-trainings of a variant, by seed."""
        found = [each for each in self.of_kind("pre-training") if each["variant"] == variant]
        return sorted((each for each in found if each["seed"] in self.seeds), key=lambda each: int(each["seed"]))

    def results(self, variant: str, key: str) -> dict[int, float]:
        """Return a number of the results of a variant's pre-trainings by seed; those without it are left out."""
        return {each["seed"]: each["result"][key] for each in self.models(variant) if key in each["result"]}

    def seeds_of(self, variant: str) -> list[int]:
        """Return the seeds of the pre-trainings of a variant; only the first one if the model is given."""
        return self.seeds if "config" in self.variants[variant] else self.seeds[:1]

    def scores(self, variant: str, task: str) -> dict[tuple[int, int], float]:
        """Return the scores of a variant on a task, by the seeds of pre-training and of fine-tuning."""
        return {
            (record["seed"], record["finetuning_seed"]): record["result"]["score"]
            for record in self.of_kind("fine-tuning")
            if (record["variant"], record["task"]) == (variant, task)
            and record["seed"] in self.seeds_of(variant)
            and record["finetuning_seed"] in self.finetuning_seeds
        }

    def mean_scores(self, variant: str) -> dict[int, float]:
        """Return the mean score over all tasks, for each seed of pre-training whose fine-tunings are all finished."""
        if not self.tasks:
            return {}
        found = [self.scores(variant, task) for task in self.tasks]
        planned = {seed: [(seed, number) for number in self.finetuning_seeds] for seed in self.seeds_of(variant)}
        return {
            seed: mean(scores[pair] for scores in found for pair in pairs)
            for seed, pairs in planned.items()
            if all(scores.keys() >= set(pairs) for scores in found)
        }

    def differences(self, variant: str, task: str) -> list[float]:
        """Return the paired differences to the reference, one for each seed of pre-training.

        Each is the mean over the seeds of fine-tuning with which both were fine-tuned.
        """
        own, other = self.scores(variant, task), self.scores(self.reference, task)
        pairs: dict[int, list[float]] = {}
        for number in self.finetuning_seeds:
            scores = ({seed: each[seed, i] for seed, i in each if i == number} for each in (own, other))
            for seed, difference in self._paired(variant, *scores):
                pairs.setdefault(seed, []).append(difference)
        return [mean(pairs[seed]) for seed in sorted(pairs)]

    def mean_differences(self, variant: str) -> list[float]:
        """Return the paired differences to the reference in the mean over all tasks, as `differences` does."""
        own, other = self.mean_scores(variant), self.mean_scores(self.reference)
        return [difference for _, difference in self._paired(variant, own, other)]

    def _paired(self, variant: str, own: dict[int, float], other: dict[int, float]) -> list[tuple[int, float]]:
        """Return the differences of scores of a variant and of the reference with the same seed of pre-training.

        A given model has no seeds of pre-training: its mean score is paired with each score of the other.
        """
        if own and "config" not in self.variants[variant]:
            own = dict.fromkeys(other, mean(own.values()))
        if other and "config" not in self.variants[self.reference]:
            other = dict.fromkeys(own, mean(other.values()))
        return [(seed, own[seed] - other[seed]) for seed in sorted(own) if seed in other]

    def cpu_seconds(self, variant: str) -> float | None:
        """Return the median CPU seconds of a step over the pre-trainings that logged them; None if none did."""
        logged = self.results(variant, CPU)
        return median(logged.values()) if logged else None

    def equal_cpu_seconds(self) -> float | None:
        """Return the CPU seconds of the cheapest whole pre-training; random weights, after one step, do not count."""
        costs = [
            cost * record["result"]["steps"]
            for variant in self.variants
            for record in self.models(variant)
            if record["result"]["steps"] > 1 and (cost := self.cpu_seconds(variant)) is not None
        ]
        return min(costs) if costs else None

    def at_cpu_seconds(self, variant: str, seconds: float) -> list[float]:
        """Return the n-gram perplexities of the models of a variant after some CPU seconds of training steps.

        Between two evaluations, the logarithm is interpolated linearly in steps.
        """
        cost, found = self.cpu_seconds(variant), list[float]()
        for record in self.models(variant) if cost else []:
            points = [(each["step"], np.log(each[NGRAMS])) for each in record["curve"] if NGRAMS in each]
            if points and cost:
                found.append(float(np.exp(np.interp(seconds / cost, *zip(*points, strict=True)))))
        return found


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


def read_study(name: str, results: Path | None = None) -> Study:
    """Return a study by the name of its file beside this script, with other results than the recorded ones if given."""
    tree = yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8"))
    lines = (results or HERE.parent / "results" / tree["results"]).read_text("utf-8").splitlines()
    return Study(tree, [json.loads(line) for line in lines])


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
