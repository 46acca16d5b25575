"""A pre-training as a planned run of an experiment. No Paddle here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ernie_gram.config.loading import load_config
from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import evaluation_settings, is_same_corpus
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import CONFIG, HELD_OUT
from ernie_gram.run.run_log import CPU, Record, read_log
from reader.corpus.memmap import CorpusInfo
from reader.text.input_files import CORPUS_INFO

LAUNCHER = "ernie_gram.run_pretrain"
# Of an evaluation, in the order in which they are shown; the last one only with a generator.
METRICS = ("ngram_perplexity", "perplexity", "accuracy", "generator_ngram_perplexity")


@dataclass(frozen=True, eq=False)
class PretrainingRun(PlannedRun):
    """One pre-training with one seed; `given` has the keys of the settings that are given."""

    given: set[str]

    def evaluations(self) -> list[Record]:
        """Return the step and the metrics of each evaluation so far."""
        found = [record for record in read_log(self.folder) if record["kind"] == "eval"]
        return [{key: record[key] for key in ("step", *METRICS) if key in record} for record in found]

    def result(self) -> Result | None:
        """Return the last evaluation and the median time of a step, or None if the run is not finished.

        A run whose last checkpoint could not be written is not finished, although its log has the last evaluation.
        There is no CPU time of a step if the run was made before it was logged.
        """
        evaluations, last_step = self.evaluations(), self.config.trainer.max_steps
        if not evaluations or evaluations[-1]["step"] != last_step:
            return None
        newest = checkpoint.newest_valid(self.folder, (checkpoint.STATE,))
        if newest is None or checkpoint.step_of(newest) != last_step:
            return None
        last, train = evaluations[-1], [record for record in read_log(self.folder) if record["kind"] == "train"]
        numbers = {key: last[key] for key in METRICS if key in last}
        seconds = self.config.data.batch_size / median(record["sequences_per_second"] for record in train)
        spent = [record[CPU] for record in train if record.get(CPU)]
        cpu = {CPU: median(spent)} if spent else {}
        return {**numbers, "steps": last["step"], "seconds_per_step": seconds, **cpu}

    def is_evaluated_as_planned(self) -> bool:
        """Return whether the folder, if there is one, was evaluated on the held-out text, when and as planned."""
        if not (self.folder / CONFIG).is_file():
            return True
        old, _ = load_pretraining(["--config", str(self.folder / CONFIG)])
        held_out, recorded = str(self.config.paths.held_out), self.folder / HELD_OUT
        info = Path(held_out) / CORPUS_INFO
        if recorded.is_file() and info.is_file():  # `prepare` reports a missing corpus
            same_text = is_same_corpus(CorpusInfo.read(recorded), CorpusInfo.read(info))
        else:
            same_text = old.paths.held_out == held_out
        before, now = ((evaluation_settings(each), each.trainer.eval_every) for each in (old, self.config))
        return same_text and before == now


def load_pretraining(options: Sequence[str]) -> tuple[PretrainConfig, set[str]]:
    """Return the configuration that some options give, and the given keys; raises InputError."""
    return load_config(PretrainConfig, list(options))
