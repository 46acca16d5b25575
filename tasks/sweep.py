"""Fine-tune models on tasks with every combination of some settings and seeds, and compare the runs in a table.

    ernie-gram sweep mrpc MODEL --data glue --output output/mrpc --grid paper --seeds 10 --jobs 2
    ernie-gram sweep english MODEL --data DATA --output output/english --seeds 3
    ernie-gram sweep mrpc cola --data glue --output output/weights --pretrain conf/ablation/full.yaml \\
        --pretrain.paths.corpus corpus --vary pretrain.objective.rtd_weight 1 7 --seeds 3 --pretrain_seeds 3

A benchmark (english, chinese, clue) stands for its tasks; a MODEL is a model folder or a run. With --pretrain, the
models are pre-trained first; without a TASK, that is all. Other options are passed to every fine-tuning,
--pretrain.KEY to every pre-training. The folder --output gets a folder for each run, a line of results.jsonl for each
finished run, and table.md. After an interruption, the same command resumes; a run in results.jsonl is not repeated,
even if its folder is gone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ernie_gram.config import require
from ernie_gram.run.run_folder import check_output, lock_output
from ernie_gram.run.run_log import append_result, read_results
from reader.build_options import parse_positive
from reader.errors import InputError, OneLineParser, counted
from reader.system.atomic_files import write_atomically
from reader.system.output_files import RUN, kind_of
from tasks.files.official import FILES, VARIABLE
from tasks.sweeps.plan import Sweep, plan_sweep
from tasks.sweeps.runs import PlannedRun, Record, check_finetunings, check_pretrainings
from tasks.sweeps.table import table
from tasks.sweeps.training import train_all

TABLE = "table.md"


def parse_arguments() -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return the parsed options, the names of tasks and models, and the options for every run."""
    parser = OneLineParser(
        usage="%(prog)s TASK ... MODEL ... --output DIR [OPTION ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the runs and the table")
    default = f"default: `paths.data` of a file of settings, else {VARIABLE}"
    parser.add_argument("--data", "--paths.data", type=Path, metavar="FOLDER", help=f"{FILES} ({default})")
    parser.add_argument("--pretrain", nargs="+", default=[], metavar="CONFIG", help="files of settings to pre-train")
    meaning = "values for each task: paper, upstream, or a file like those in conf/grids"
    parser.add_argument("--grid", metavar="NAME", help=meaning)
    meaning = "a setting and its values, e.g. --vary head.dropout 0.1 0.2; may be repeated"
    parser.add_argument("--vary", nargs="+", action="append", default=[], metavar="KEY X", help=meaning)
    for name, what in (
        ("seeds", "seeds of each fine-tuning: 1 to N"),
        ("pretrain_seeds", "seeds of each pre-training: 1 to N"),
        ("jobs", "number of runs at a time"),
        ("processes", "processes per run, as NPROC"),
    ):
        parser.add_argument(f"--{name}", type=parse_positive, default=1, metavar="N", help=f"{what} (%(default)s)")
    parser.add_argument("--check", action="store_true", help="plan and check everything, and train nothing")
    options, others = parser.parse_known_args()
    names, overrides = list[str](), list[str]()
    for argument in others:
        if argument.startswith("--"):
            overrides.append(argument)
        elif overrides and "=" not in overrides[-1]:
            overrides[-1] += f"={argument}"
        else:
            names.append(argument)
    return options, names, overrides


def train(sweep: Sweep, recorded: dict[str, Record], options: argparse.Namespace) -> list[str]:
    """Train what is missing, record it, and return a line for each run that failed.

    A recorded pre-training is repeated if its model is gone and one of its fine-tunings is missing.
    """

    def ended(run: PlannedRun) -> str | None:
        record = run.record()
        if record is None:
            return None
        recorded[run.name] = record
        append_result(options.output, record)
        name, value = next(iter(record["result"].items()))
        return f"{name} {value:,.4g}"

    finetunings = [run for run in sweep.finetunings if run.name not in recorded]
    needed, untrained = {run.config.paths.model for run in finetunings}, sweep.untrained()
    pretrainings = [run for run in sweep.pretrainings if run.name not in recorded or str(run.folder) in needed]
    pretrainings = [run for run in pretrainings if str(run.folder) in untrained]
    failed = train_all(pretrainings, options.jobs, options.processes, ended)
    if pretrainings:
        untrained = sweep.untrained()
        finetunings = [run for run in finetunings if run.config.paths.model not in untrained]
        check_finetunings(finetunings, recorded, untrained, options.processes)
    return failed + train_all(finetunings, options.jobs, options.processes, ended)


def main() -> None:
    """Run the command line."""
    options, names, overrides = parse_arguments()
    output: Path = options.output
    check_output(output, option="--output")
    require(kind_of(output) != RUN, "--output", f"{output} is the folder of a {RUN}; choose another --output")
    sweep = plan_sweep(options, names, overrides)
    recorded = read_results(output)
    new = {run.name: record for run in sweep.runs if run.name not in recorded and (record := run.record())}
    recorded |= new
    check_pretrainings(sweep.pretrainings, recorded, options.processes)
    check_finetunings(sweep.finetunings, recorded, sweep.untrained(), options.processes)
    before = sum(run.name in recorded for run in sweep.runs)
    print(f"{counted(len(sweep.runs), 'run')}, {before} finished before", end="", flush=True)
    if options.check:
        print("; settings, data and models are valid")
        return
    print(f"; {options.jobs} at a time", flush=True)
    with lock_output(output, "--output"):
        for record in new.values():
            append_result(output, record)
        failed = train(sweep, recorded, options)
        # Planned runs first, in their order.
        ordered = {name: recorded[name] for name in (*(run.name for run in sweep.runs), *recorded) if name in recorded}
        text = table([each for each in ordered.values() if "task" in each], sweep.tasks, sweep.reported)
        write_atomically(output / TABLE, text)
        print(f"\n{text}\n{output}: {TABLE}, results.jsonl")
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise InputError(f"{failed[0]}{more}; the same command runs the failed ones again")
