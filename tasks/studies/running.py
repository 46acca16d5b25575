"""Run a study: produce the missing results in the order of the plan, and append each one to the file of results."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.planned_run import Result
from ernie_gram.experiments.processes import check_folders_and_devices, train_all
from ernie_gram.pretraining.count_baselines import count_baselines
from ernie_gram.pretraining.planned_run import PretrainingRun
from ernie_gram.pretraining.prepare import feeders, prepare
from reader.corpus.memmap import Corpus
from tasks.studies.plan import CORPUS, COUNTS, FINETUNING, PRETRAINING, Planned, check_record
from tasks.studies.preparation import Prepared, corpus_result
from tasks.studies.results_file import append_record, read_results
from tasks.sweeps.runs import FinetuneRun, check_finished


class StudyRunner:
    """Runs a study, and knows which of its results are missing.

    Attributes:
        planned: all planned results of the study.
        results: the file of results.
    """

    def __init__(self, planned: Sequence[Planned], results: Path, finished_only: bool) -> None:
        """Compare the plan with the file of results.

        Args:
            finished_only: train no model; fine-tune those that are finished.

        Raises InputError if the file has a result of other settings or of another text.
        """
        self.planned, self.results, self._finished_only = planned, results, finished_only
        records = {record["run"]: record for record in read_results(results)}
        for each in planned:
            if each.name in records:
                check_record(results, records[each.name], each)
        self._done = set(records)

    @property
    def missing(self) -> list[Planned]:
        """The planned results that are missing, in the order of the plan."""
        return [each for each in self.planned if each.name not in self._done]

    def to_train(self) -> list[Planned]:
        """Return the trainings to start, in the order of the plan.

        A model without its folder is trained again if one of its fine-tunings is missing.
        """
        missing = set(self.missing)
        models = {each.model for each in missing if each.kind == FINETUNING}
        found = []
        for each in self.planned:
            if each.kind == PRETRAINING:
                is_wanted = not self._finished_only and (each in missing or each in models)
            else:
                is_wanted = each.kind == FINETUNING and each in missing and self._may_start(each)
            if is_wanted and _result(each) is None:
                found.append(each)
        return found

    def _may_start(self, finetuning: Planned) -> bool:
        """Return whether the model of a fine-tuning is there, or may be trained before."""
        return finetuning.model is None or not self._finished_only or _result(finetuning.model) is not None

    def check(self, processes: int) -> None:
        """Raise InputError if a training cannot be started, as far as this can be known beforehand."""
        # Kept folders whose results are not recorded yet.
        check_finished(each.run for each in self.missing if isinstance(each.run, FinetuneRun))
        runs = [each.run for each in self.to_train() if each.run]
        check_folders_and_devices(runs, processes)
        known = [each.run for each in self.planned if isinstance(each.run, PretrainingRun) and each.kind == PRETRAINING]
        for run in known:
            if run in runs or run.folder.exists():
                reason = "was evaluated on other text or with other settings; choose another --output"
                require(run.is_evaluated_as_planned(), str(run.folder), reason)
                prepare(run.config, processes, given=run.given)

    def run(self, prepared: Prepared, jobs: int, processes: int, threads: int | None, keep: bool) -> list[str]:
        """Produce the missing results; return a line for each training that failed.

        Args:
            prepared: the vocabulary, lexicons and corpora of the study.
            jobs: number of trainings at a time; processes: number per training; threads: number per process, None for
                all cores.
            keep: whether to keep the folders of fine-tunings after their results are recorded.
        """
        for each in self.missing:
            self._record_if_known(each, prepared, keep)
        trained = self.to_train()
        of_run = {each.run: each for each in trained if each.run}
        models = {run: each.model.run for run, each in of_run.items() if each.model}
        needs = {run: model for run, model in models.items() if model in of_run}
        print(
            f"{len(self.planned)} results, {len(self.planned) - len(self.missing)} there; {len(trained)} to train",
            flush=True,
        )
        for run in of_run:
            run.folder.parent.mkdir(exist_ok=True)
        return train_all(
            list(of_run),
            jobs,
            processes,
            lambda run, _: self._record_if_known(of_run[run], prepared, keep),
            needs,
            threads,
        )

    def _record_if_known(self, each: Planned, prepared: Prepared, keep: bool) -> None:
        """Append a result that needs no training, or whose training is finished, unless it is recorded already.

        Remove the folder of a fine-tuning whose result is recorded, unless `keep`.
        """
        result = _counted(each, prepared) if each.kind in (CORPUS, COUNTS) else _result(each)
        if result is None:
            return
        if each.name not in self._done:
            append_record(self.results, each.record(result))
            self._done.add(each.name)
        if each.kind == FINETUNING and each.run and not keep:
            shutil.rmtree(each.run.folder)


def _result(each: Planned) -> Result | None:
    return each.run.result() if each.run else None


def _counted(each: Planned, prepared: Prepared) -> Result:
    """Return the sizes of a corpus, or the perplexities of predictors that only count."""
    if each.kind == CORPUS:
        return corpus_result(prepared.corpus(str(each.of["corpus"])))
    assert isinstance(each.run, PretrainingRun)
    config = each.run.config
    corpus = Corpus(Path(config.paths.corpus))
    _, held_out = feeders(config, corpus)
    assert held_out is not None
    found = count_baselines(corpus, held_out, config.trainer.eval_sequences)
    return {
        f"{name}, {what}": value
        for name, perplexities in found.items()
        for what, value in (("units", perplexities.units), ("n-grams", perplexities.ngrams))
    }
