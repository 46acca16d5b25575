"""Perplexities of predictors that count, beside those of models: from a file, or computed if the corpus is small."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ernie_gram.pretraining.count_baselines import Perplexities, count_baselines, data_of_run
from ernie_gram.reporting.runs import ReportedRun, corpus_info, is_number
from reader.errors import InputError

# With more units, the counting takes more than some seconds.
MAX_UNITS = 4_000_000
# What `ernie-gram count-baselines` prints.
LINE = re.compile(r"(.+): perplexity ([\d.]+), over n-grams ([\d.]+|nan)")
FREQUENCIES = "unit frequencies"  # the predictor whose perplexity a run logs too
ROUNDING = 0.6  # of what is printed: 0.5, and a little for sums in another order

Counts = dict[str, Perplexities]


def read_baselines(path: Path, runs: Sequence[ReportedRun]) -> Counts:
    """Return the perplexities in a file with the output of `ernie-gram count-baselines`.

    Raises InputError if the file has something else, or if it belongs to none of these runs: no run has logged its
    perplexity of unit frequencies.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"--baselines: {path}: {error.strerror}") from error
    matches = [LINE.fullmatch(line.strip()) for line in lines]
    found = {match[1]: Perplexities(float(match[2]), float(match[3])) for match in matches if match}
    if not found:
        raise InputError(f"--baselines: {path} is not the output of `ernie-gram count-baselines RUN`")
    logged = {run.folder: values[-1][1] for run in runs if (values := run.values("eval", "frequency_perplexity"))}
    counted = found[FREQUENCIES].units if FREQUENCIES in found else None
    if logged and counted is not None and all(abs(value - counted) > ROUNDING for value in logged.values()):
        folder, value = next(iter(logged.items()))
        raise InputError(
            f"--baselines: {path} is of another run: its unit frequencies have perplexity {counted:g}, those in the "
            f"log of {folder} {value:.0f}; make it with `ernie-gram count-baselines {folder}`"
        )
    return found


def counted_baselines(runs: Sequence[ReportedRun]) -> tuple[Counts, str]:
    """Return the perplexities of predictors that count, and where they are from.

    They are computed on the masks of the first run with n-grams if its corpora exist and are small. Otherwise only that
    of unit frequencies is returned, which a run logs, and the text says how to get the others.
    """
    evaluated = [run for run in runs if run.evaluations]
    if not evaluated:
        return {}, ""
    run = next((run for run in evaluated if run.settings.get("objective.masking") == "explicit"), evaluated[0])
    command = f"ernie-gram count-baselines {shlex.quote(str(run.folder))}"
    advice = f"for more: {command} > FILE, and then --baselines FILE"
    units = corpus_info(run.settings.get("paths.corpus")).get("units")
    if not is_number(units) or units <= MAX_UNITS:
        try:
            return count_baselines(*data_of_run(run.folder, {})), f"counts on the masks of {run.name}"
        except InputError as error:
            moved = f"{command} --paths.corpus CORPUS --paths.held_out HELD_OUT > FILE"
            advice = f"not computed: {error}; for corpora that are elsewhere: {moved}, and then --baselines FILE"
    logged = run.values("eval", "frequency_perplexity")
    if not logged:
        return {}, f"counts: {advice}"
    return {FREQUENCIES: Perplexities(logged[-1][1], float("nan"))}, f"frequencies as {run.name} logs; {advice}"
