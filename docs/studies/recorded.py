"""A study and its recorded results (docs/results), for tables.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import yaml

HERE = Path(__file__).resolve().parent
NGRAMS, UNITS, CPU = "ngram_perplexity", "perplexity", "cpu_seconds_per_step"
WHAT = ("n-grams", "units")
COUNTERS = ("unit frequencies", "left neighbour", "both neighbours")

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


def read_study(name: str, results: Path | None = None) -> Study:
    """Return a study by the name of its file beside this script, with other results than the recorded ones if given."""
    tree = yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8"))
    lines = (results or HERE.parent / "results" / tree["results"]).read_text("utf-8").splitlines()
    return Study(tree, [json.loads(line) for line in lines])
