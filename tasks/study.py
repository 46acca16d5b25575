"""Run a study: variants of pre-training, all from one text and several times, and their fine-tunings.

    ernie-gram study ladder --input TEXT --held_out HELD_OUT --data FOLDER --output output/ladder \\
        --results ladder.jsonl --jobs 2

STUDY is a file of conf/studies, or a YAML file like those. Vocabulary, lexicons and corpora are built if they are
missing. Each result is appended to one file as soon as it is known, and is never computed again, even if the folder of
its run is gone. After an interruption, the same command resumes. `ernie-gram study-tables` makes tables and figures.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.study")

import argparse
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.experiment import check_folder, experiment_parser, raise_failed
from ernie_gram.experiments.planned_run import RESULTS
from ernie_gram.experiments.processes import end_at_sigterm
from ernie_gram.run.run_folder import lock_output
from reader.build_options import parse_positive
from reader.errors import counted
from reader.system.lock_files import locked_name
from tasks.reading.data_option import add_data_option
from tasks.studies.plan import check_settings, check_texts, plan_study
from tasks.studies.preparation import Prepared
from tasks.studies.results_file import read_results, repair_results
from tasks.studies.running import StudyRunner
from tasks.studies.study_file import HELD_OUT_TEXT, TRAIN_TEXT, read_study

PREPARED = "prepared"


def parse_arguments() -> argparse.Namespace:
    """Return the parsed options; raises InputError."""
    parser = experiment_parser(__doc__, with_seeds=False)
    parser.add_argument("study", metavar="STUDY", help="the name of a file in conf/studies, or a YAML file")
    parser.add_argument("--results", type=Path, metavar="FILE", help="file of results (DIR/results.jsonl)")
    parser.add_argument(
        "--input", nargs="+", default=[], metavar="PATH", help="training text, to build what is missing"
    )
    parser.add_argument("--held_out", nargs="+", default=[], metavar="PATH", help="other text of the same kind")
    parser.add_argument("--start", type=Path, metavar="MODEL", help="the given model, for studies that start from one")
    parser.add_argument("--threads", type=parse_positive, metavar="N", help="threads per process (all cores, divided)")
    add_data_option(parser)
    parser.add_argument("--finished_only", action="store_true", help="pre-train nothing; fine-tune the finished models")
    parser.add_argument("--keep", action="store_true", help="keep the folders of fine-tunings, not only their results")
    options = parser.parse_args()
    options.results = options.results or options.output / RESULTS
    check_folder(options.output)
    return options


def main() -> None:
    """Run the command line."""
    options = parse_arguments()
    study = read_study(options.study)
    require(
        options.start is not None or not study.needs_start, "--start", "must be given: the study starts from a model"
    )
    texts = {TRAIN_TEXT: options.input, HELD_OUT_TEXT: options.held_out}
    prepared = Prepared(study, options.output / PREPARED, texts, options.start)
    require(options.start is None or study.needs_start, "--start", "this study does not start from a given model")
    records = read_results(options.results)
    missing = prepared.missing()
    if missing:
        prepared.check_texts()
        check_texts(options.results, records, prepared)
    check_settings(prepared, options.output, options.data)
    if options.check:
        for path, _ in missing:
            print(f"would build {path}")
        if missing:
            print("settings and files are valid; the runs themselves are checked when everything is built")
            return
        print(_summary(_checked_runner(prepared, options)))
        return
    with (
        lock_output(options.output, "--output"),
        locked_name(options.results, f"--results: {options.results} is in use"),
    ):
        end_at_sigterm()
        prepared.build()
        repair_results(options.results)
        runner = _checked_runner(prepared, options)
        failed = runner.run(prepared, options.jobs, options.processes, options.threads, options.keep)
        print(_summary(runner))
    raise_failed(failed)


def _checked_runner(prepared: Prepared, options: argparse.Namespace) -> StudyRunner:
    planned = plan_study(prepared, options.output, options.data)
    runner = StudyRunner(planned, options.results, options.finished_only)
    runner.check(options.processes)
    return runner


def _summary(runner: StudyRunner) -> str:
    """Return a line with the number of results, and with the number of missing ones by kind."""
    missing = [each.kind for each in runner.missing]
    left = ", ".join(f"{missing.count(kind)} {kind}" for kind in dict.fromkeys(missing))
    return f"{runner.results}: {counted(len(runner.planned) - len(missing), 'result')}; missing: {left or 'none'}"
