"""Numbers from the records of a study: costs, curves, and scores of the variants, over their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from ernie_gram.run.run_log import CPU
from tasks.registry.task_file import find_task
from tasks.studies.plan import COUNTS, FINETUNING, PRETRAINING
from tasks.studies.results_file import Record
from tasks.studies.study_file import Study

NGRAMS, UNITS = "ngram_perplexity", "perplexity"


@dataclass(frozen=True)
class Summary:
    """A study and its results.

    Attributes:
        study: its variants and tasks are shown, in their order.
        records: all recorded results.
    """

    study: Study
    records: Sequence[Record]

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return [find_task(task).name for task in self.study.tasks]

    def of_kind(self, kind: str) -> list[Record]:
        """Return the records of a kind."""
        return [record for record in self.records if record["kind"] == kind]

    @property
    def counts(self) -> list[Record]:
        """The count baselines of this study's corpora and seeds; other studies may share the file of results."""
        study = self.study
        return [
            each for each in self.of_kind(COUNTS) if each["corpus"] in study.corpora and each["seed"] in study.seeds
        ]

    def models(self, variant: str) -> list[Record]:
        """Return the pre-trainings of a variant with the study's seeds, by seed."""
        found = [each for each in self.of_kind(PRETRAINING) if each["variant"] == variant]
        return sorted((each for each in found if each["seed"] in self.study.seeds), key=lambda each: int(each["seed"]))

    def results(self, variant: str, key: str) -> dict[int, float]:
        """Return a number of the results of a variant's pre-trainings by seed; those without it are left out."""
        return {int(each["seed"]): each["result"][key] for each in self.models(variant) if key in each["result"]}

    def scores(self, variant: str, task: str) -> dict[tuple[int, int], float]:
        """Return the scores of a variant on a task, by the study's seeds of pre-training and of fine-tuning."""
        return {
            (record["seed"], record["finetuning_seed"]): record["result"]["score"]
            for record in self.of_kind(FINETUNING)
            if (record["variant"], record["task"]) == (variant, task)
            and record["seed"] in self.seeds_of(variant)
            and record["finetuning_seed"] in self.study.finetuning_seeds
        }

    def seeds_of(self, variant: str) -> tuple[int, ...]:
        """Return the seeds of the pre-trainings of a variant; only the first one if the model is given."""
        return self.study.seeds if self.study.variants[variant].config else self.study.seeds[:1]

    @property
    def found_variants(self) -> list[str]:
        """The variants that have a result, in the order of the study."""
        names = {record.get("variant") for record in self.records}
        return [name for name in self.study.variants if name in names]

    def planned_scores(self, variant: str) -> int:
        """Return the planned number of scores of a variant on each task."""
        return len(self.seeds_of(variant)) * len(self.study.finetuning_seeds)

    def mean_scores(self, variant: str) -> dict[int, float]:
        """Return the mean score over all tasks, for each seed of pre-training whose fine-tunings are all finished."""
        if not self.tasks:
            return {}
        found = [self.scores(variant, task) for task in self.tasks]
        planned = {seed: [(seed, number) for number in self.study.finetuning_seeds] for seed in self.seeds_of(variant)}
        return {
            seed: mean(scores[pair] for scores in found for pair in pairs)
            for seed, pairs in planned.items()
            if all(scores.keys() >= set(pairs) for scores in found)
        }

    def perplexity_ratios(self, variant: str, key: str) -> list[float]:
        """Return the final perplexities of a variant divided by those of the reference with the same seed."""
        own, other = self.results(variant, key), self.results(self.study.reference, key)
        return [own[seed] / other[seed] for seed in own if seed in other]

    def differences(self, variant: str, task: str) -> list[float]:
        """Return the paired differences to the reference, one for each seed of pre-training.

        Each is the mean over the seeds of fine-tuning with which both were fine-tuned.
        """
        own, other = self.scores(variant, task), self.scores(self.study.reference, task)
        pairs: dict[int, list[float]] = {}
        for number in self.study.finetuning_seeds:
            scores = ({seed: each[seed, i] for seed, i in each if i == number} for each in (own, other))
            for seed, difference in self._paired(variant, *scores):
                pairs.setdefault(seed, []).append(difference)
        return [mean(pairs[seed]) for seed in sorted(pairs)]

    def mean_differences(self, variant: str) -> list[float]:
        """Return the paired differences to the reference in the mean over all tasks, as `differences` does."""
        own, other = self.mean_scores(variant), self.mean_scores(self.study.reference)
        return [difference for _, difference in self._paired(variant, own, other)]

    def _paired(self, variant: str, own: dict[int, float], other: dict[int, float]) -> list[tuple[int, float]]:
        """Return the differences of scores of a variant and of the reference with the same seed of pre-training.

        A given model has no seeds of pre-training: its mean score is paired with each score of the other.
        """
        if own and not self.study.variants[variant].config:
            own = dict.fromkeys(other, mean(own.values()))
        if other and not self.study.variants[self.study.reference].config:
            other = dict.fromkeys(own, mean(other.values()))
        return [(seed, own[seed] - other[seed]) for seed in sorted(own) if seed in other]

    def cpu_seconds(self, variant: str) -> float | None:
        """Return the median CPU seconds of a step over the pre-trainings that logged them; None if none did."""
        logged = self.results(variant, CPU)
        return median(logged.values()) if logged else None

    def equal_cpu_seconds(self) -> float | None:
        """Return the CPU seconds of the cheapest whole pre-training of the study; None if none was logged.

        A variant of a single step, which is the baseline of random weights, does not count.
        """
        costs = [
            cost * record["result"]["steps"]
            for variant in self.study.variants
            for record in self.models(variant)
            if record["result"]["steps"] > 1 and (cost := self.cpu_seconds(variant)) is not None
        ]
        return min(costs) if costs else None

    def at_cpu_seconds(self, variant: str, seconds: float) -> list[float]:
        """Return the n-gram perplexities of the models of a variant after some CPU seconds of training steps.

        Between two evaluations, the logarithm is interpolated linearly in steps.
        """
        cost = self.cpu_seconds(variant)
        if cost is None:
            return []
        found = []
        for record in self.models(variant):
            points = [(each["step"], np.log(each[NGRAMS])) for each in record["curve"] if NGRAMS in each]
            if points:
                steps, values = zip(*points, strict=True)
                found.append(float(np.exp(np.interp(seconds / cost, steps, values))))
        return found
