"""Make the published tables and figures of the studies again, from their recorded results (docs/results).

    python docs/studies/tables.py --output tables

For each study, the folder gets STUDY.md, STUDY_perplexities.png and STUDY_scores.png. A study is described by the file
STUDY.yaml beside this script; its key `results` names the recorded results. Figures are like 4a and 4b of the paper.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
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
    """A study and its recorded results; those of other studies in the same file are not used.

    Attributes:
        title: of its tables; reference: the variant with which the others are compared.
        variants: name -> description; one without `config` is the given model, without further training.
        tasks: their names.
        corpora, counts: records of corpora and of count baselines.
        models: variant -> records of its pre-trainings, by seed.
        scores: variant -> [seeds of pre-training, seeds of fine-tuning, tasks]; the given model has one seed.
    """

    def __init__(self, tree: dict[str, Any], records: Sequence[Record]) -> None:
        finetuning = tree["finetuning"]
        self.title, self.reference, self.tasks = tree["title"], tree["reference"], list(finetuning["tasks"])
        self.variants: dict[str, dict[str, Any]] = tree["variants"]
        kinds = ("corpus", "counts", "pre-training", "fine-tuning")
        of = {kind: [each for each in records if each["kind"] == kind] for kind in kinds}
        self.corpora = [each for each in of["corpus"] if each["corpus"] in tree["corpora"]]
        counts = (each for each in of["counts"] if each["corpus"] in tree["corpora"])
        self.counts = [each for each in counts if each["seed"] in tree["seeds"]]
        trained = {(each["variant"], each["seed"]): each for each in of["pre-training"]}
        names = [name for name, variant in self.variants.items() if "config" in variant]
        self.models = {name: [trained[name, seed] for seed in tree["seeds"]] for name in names}
        scores = {
            (each["variant"], each["seed"], each["finetuning_seed"], each["task"]): each["result"]["score"]
            for each in of["fine-tuning"]
        }
        self.scores = {
            name: np.array(
                [
                    [[scores[name, seed, number, task] for task in self.tasks] for number in finetuning["seeds"]]
                    for seed in tree["seeds"][: None if name in self.models else 1]
                ]
            )
            for name in self.variants
        }

    def results(self, variant: str, key: str) -> list[float]:
        """Return a number of the results of a variant's pre-trainings, by seed; none if they have no such number."""
        return [each["result"][key] for each in self.models.get(variant, []) if key in each["result"]]

    def cpu_seconds(self, variant: str) -> float:
        """Return the median CPU seconds of a step."""
        return median(self.results(variant, CPU))

    def equal_cpu_seconds(self) -> float:
        """Return the CPU seconds of the cheapest whole pre-training; random weights, after one step, do not count."""
        steps = {name: self.models[name][0]["result"]["steps"] for name in self.models}
        return min(number * self.cpu_seconds(name) for name, number in steps.items() if number > 1)

    def at_cpu_seconds(self, variant: str, seconds: float) -> list[float]:
        """Return the n-gram perplexities of the models of a variant after some CPU seconds of training steps.

        Between two evaluations, the logarithm is interpolated linearly in steps.
        """
        curves = [[(each["step"], np.log(each[NGRAMS])) for each in one["curve"]] for one in self.models[variant]]
        step = seconds / self.cpu_seconds(variant)
        return [float(np.exp(np.interp(step, *zip(*curve, strict=True)))) for curve in curves]


def read_study(name: str) -> Study:
    """Return a study by the name of its file beside this script."""
    tree = yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8"))
    lines = (HERE.parent / "results" / tree["results"]).read_text("utf-8").splitlines()
    return Study(tree, [json.loads(line) for line in lines])


def spread(values: Sequence[float], form: str) -> str:
    """Return the mean of some values with minimum and maximum."""
    if len(values) < 2:
        return f"{values[0]:{form}}" if len(values) else MISSING
    return f"{mean(values):{form}} ({min(values):{form}} - {max(values):{form}})"


def signed(values: Sequence[float], form: str, unit: str = "") -> str:
    """Return the mean of some differences with minimum and maximum."""
    if not len(values):
        return MISSING
    return f"{mean(values):+{form}}{unit} ({min(values):+{form}} to {max(values):+{form}})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *title: str) -> list[str]:
    """Return the lines of a table in Markdown with its title."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [*title, *([""] if title else []), lines[0], f"|{'---|' * len(head)}", *lines[1:], ""]


def report(study: Study) -> str:
    """Return all tables of a study."""
    parts = [f"# {study.title}", "", *corpora(study), "## Pre-training", ""]
    parts += [*pretraining(study), *ratios(study), *counts(study)]
    parts += ["## Fine-tuning", "", *finetuning(study), *differences(study)]
    return "\n".join(parts).rstrip() + "\n"


def corpora(study: Study) -> list[str]:
    """Return the table of the corpora."""
    rows = []
    for each in study.corpora:
        sizes = each["result"]
        often, share = f"{sizes.get('median_occurrences', 0):,.0f}", f"{sizes['token_share']:.1%}"
        rows.append([each["corpus"], f"{sizes['tokens']:,}", f"{sizes['ngrams']:,}", often, share])
    return table(["corpus", "tokens", "n-grams", "median occurrences", "tokens in n-grams"], rows)


def pretraining(study: Study) -> list[str]:
    """Return the table of the perplexities."""
    seconds, rows = study.equal_cpu_seconds(), []
    for name, models in study.models.items():
        cells = [name, study.variants[name]["what"]]
        for key in (NGRAMS, UNITS):
            cells += [f"{mean(one['curve'][0][key] for one in models):,.0f}", spread(study.results(name, key), ",.0f")]
        cells.append(spread(study.results(name, "generator_ngram_perplexity"), ",.0f"))
        cells.append(spread(study.results(name, "accuracy"), ".1%"))
        cells += [f"{study.cpu_seconds(name):.3f}", spread(study.at_cpu_seconds(name, seconds), ",.0f")]
        rows.append(cells)
    head = ["variant", "what", "n-grams, start", "n-grams, end", "units, start", "units, end"]
    head += ["generator, n-grams", "accuracy", "CPU s per step", "n-grams at equal CPU time"]
    title = (
        "Held-out perplexities; mean over the seeds of pre-training (minimum - maximum). CPU seconds are the median of "
        "the seeds. Unless objective.output_bias is zero, output biases start from log frequencies, which puts "
        "variants that predict n-grams as classes ahead over n-grams before the first step."
    )
    return table(head, rows, f"{title} Equal CPU time is {seconds:,.0f} s.")


def ratios(study: Study) -> list[str]:
    """Return the table of perplexities as differences to the reference in percent."""
    rows = []
    for name in (name for name in study.variants if name != study.reference):
        cells = [name]
        for key in (NGRAMS, UNITS):
            own, other = study.results(name, key), study.results(study.reference, key)
            cells.append(signed([100 * (a / b - 1) for a, b in zip(own, other, strict=False)], ".1f", " %"))
        rows.append(cells)
    title = f"Difference of final perplexities to {study.reference}, paired by the seeds: mean (minimum to maximum)."
    return table(["variant", *WHAT], rows, title)


def counts(study: Study) -> list[str]:
    """Return the table of the count baselines, on the same masked units."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for record in study.counts:
        groups.setdefault((record["corpus"], record["held_out"]), []).append(record["result"])
    rows = [
        [*pair, name, *(spread([each[f"{name}, {what}"] for each in found], ",.0f") for what in WHAT)]
        for pair, found in groups.items()
        for name in COUNTERS
    ]
    return table(["counted in", "predicted in", "predictor", *WHAT], rows)


def finetuning(study: Study) -> list[str]:
    """Return the table of the scores."""
    rows = []
    for name, scores in study.scores.items():
        cells = [f"{each.mean():.1f}" + (f" ± {each.std(ddof=1):.1f}" if each.size > 1 else "") for each in scores.T]
        rows.append([name, *cells, spread(scores.mean((1, 2)), ".2f")])
    title = "Scores on the development sets; mean ± standard deviation over the seeds of pre-training and fine-tuning."
    more = "The last column is the mean over the tasks (minimum - maximum over the seeds of pre-training)."
    return table(["variant", *study.tasks, "mean"], rows, title, more)


def differences(study: Study) -> list[str]:
    """Return the table of the scores as differences to the reference; a given model is paired with every seed."""
    reference, rows = study.reference, []
    for name in (name for name in study.variants if name != reference):
        found = (study.scores[name] - study.scores[reference]).mean(1)
        rows.append([name, *(signed(each, ".1f") for each in found.T), signed(found.mean(1), ".2f")])
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
        if name not in study.models:
            continue
        curves = [[each[NGRAMS] for each in record["curve"]] for record in study.models[name]]
        steps = [each["step"] for each in study.models[name][0]["curve"]]
        # There are ten colours.
        style, color = "o-" if place < 10 else "o--", f"C{place % 10}"
        axes.plot(steps, np.mean(curves, 0), style, markersize=3, color=color, label=f"{name} ({len(curves)})")
        axes.fill_between(steps, np.min(curves, 0), np.max(curves, 0), color=color, alpha=0.15)
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
    found = {name: scores.mean((1, 2)) for name, scores in study.scores.items()}
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
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder for tables and figures")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.studies or names:
        study = read_study(name)
        (arguments.output / f"{name}.md").write_text(report(study), "utf-8")
        draw_perplexities(study, arguments.output / f"{name}_perplexities.png")
        draw_scores(study, arguments.output / f"{name}_scores.png")
        print(f"{arguments.output / name}: .md, _perplexities.png, _scores.png")


if __name__ == "__main__":
    main()
