"""Compare models and programs in fine-tuning: `python -m tests.benchmarks.fine_tuning --help`.

Each side trains on the same rows with the same settings (fine_tuning_plan.py) and predicts the same dev rows, with each
seed in a process of its own. Sides are model folders that this project fine-tunes, and, with --hf_python, the first of
them as Hugging Face transformers fine-tunes it; then all sides start from the output layer that transformers draws,
because a score depends much on it. All predictions are scored by the metrics of this project.

Results are kept in OUTPUT/results.jsonl. What is there is not repeated, so that a run may be stopped at any time, and
continued on another machine; the tables show what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ernie_gram.distributed.processor import MKL_SETTING, processor_name, read_cpuinfo
from ernie_gram.formats.model import digest_of
from ernie_gram.formats.registry import read_model
from reader.errors import InputError, one_line_errors
from tasks.data.examples import Example
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.task import TRAIN
from tasks.metrics.catalog import METRICS
from tasks.reading.load import load_split, with_labels
from tasks.reading.official_files import available_splits
from tasks.registry import TASKS
from tasks.training.splits import dev_splits
from tests.benchmarks.fine_tuning_plan import PLANS, Plan, plain, settings_of
from tests.benchmarks.fine_tuning_results import Result, ResultsFile
from tests.benchmarks.pretrain_step import MALLOC, ROOT
from tests.benchmarks.subsets import spread

TRANSFORMERS = "transformers"
SCRIPT = Path(__file__).with_name("fine_tuning_torch.py")
# The seconds of a result.
MEASURED = ("training", "training processor", "prediction", "prediction processor", "process", "processor")


class Side(NamedTuple):
    """One column of the tables: a model, and the interpreter with transformers, or None for this project.

    `length_pool` is that of this side; see FinetuneOptimizer.
    """

    name: str
    model: Path
    hf_python: Path | None = None
    length_pool: int = 1

    def plan(self, plan: Plan) -> Plan:
        """Return the plan of this side."""
        return replace(plan, length_pool=self.length_pool)


class TaskData(NamedTuple):
    """The training and dev examples of a task that all sides read."""

    kind: Kind[Any, Any]
    train: list[Example]
    dev: list[Example]


@cache
def load_task(plan: Plan, data: Path) -> TaskData:
    """Read a task; raises InputError for files that are missing or wrong."""
    task = with_labels(TASKS[plan.task], data)
    kind = kind_of(task, plan.config("", data, "", 1).kind_settings)
    train = spread(load_split(task, data, TRAIN).examples, plan.rows)
    return TaskData(kind, train, load_split(task, data, dev_splits(task, data)[0]).examples)


def reported_scores(task: TaskData, predictions: Sequence[Any]) -> dict[str, float]:
    """Return the scores of one prediction for each dev example."""
    metric = METRICS[task.kind.task.metric]
    return metric(task.kind.gold(task.dev), task.kind.keyed(predictions, task.dev))


def constant_score(task: TaskData) -> float | None:
    """Return the score of the most frequent training label, of the mean score, or of no entities; None for answers."""
    if task.kind.name == "span":
        return None
    gold = [task.kind.gold_value(example) for example in task.train]
    if task.kind.name == "tagging":
        predictions = [["O"] * len(tags) for tags in map(task.kind.gold_value, task.dev)]
    elif task.kind.name == "regression":
        predictions = [statistics.mean(gold)] * len(task.dev)
    else:
        predictions = [Counter(gold).most_common(1)[0][0]] * len(task.dev)
    return reported_scores(task, predictions)[METRICS[task.kind.task.metric].main]


def run_program(command: Sequence[str], job: dict[str, Any], files: Path, threads: int) -> Result:
    """Run a program on a job in a new process; return its result. Raises InputError with the name of its log.

    Args:
        files: path of the files of the job, without their suffixes.
    """
    files.parent.mkdir(parents=True, exist_ok=True)
    job_file, result_file, log = (files.with_suffix(f".{name}") for name in ("job", "partial", "log"))
    result_file.unlink(missing_ok=True)
    job_file.write_text(json.dumps(job), encoding="utf-8")
    # All programs get the memory settings of run_finetune.sh.
    environment = {**os.environ, "GLIBC_TUNABLES": MALLOC, "OMP_NUM_THREADS": str(threads)}
    with log.open("w") as output:
        done = subprocess.run(
            [*command, str(job_file), str(result_file)],
            # Where the script of transformers lies, modules have the names of packages that it imports.
            cwd=ROOT if "-m" in command else None,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode or not result_file.exists():
        raise InputError(f"{log}: the program failed: see this file")
    result: Result = json.loads(result_file.read_text(encoding="utf-8"))
    for path in (job_file, result_file):
        path.unlink()
    return result


def transformers_job(plan: Plan, model: Path, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what fine_tuning_torch.py needs to make a model with a new output layer."""
    return {
        "kind": load_task(plan, arguments.data).kind.name,
        "model": str(model),
        "labels": list(load_task(plan, arguments.data).kind.classes),
        "settings": settings_of(plan.config("", "", "", seed), arguments.threads),
    }


def train_side(side: Side, plan: Plan, seed: int, arguments: argparse.Namespace) -> Result:
    """Train one side with one seed in a new process; return its result."""
    folder = arguments.output / plan.task / side.name
    task = load_task(plan, arguments.data)
    plan = side.plan(plan)
    script = [str(arguments.hf_python and arguments.hf_python.absolute()), str(SCRIPT)]
    if side.hf_python:
        command = script
        job = transformers_job(plan, side.model, seed, arguments)
        job["train"] = [plain(example, True) for example in task.train]
        job["dev"] = [plain(example, False) for example in task.dev]
    else:
        command = [sys.executable, "-m", "tests.benchmarks.fine_tuning_ours"]
        job = {"plan": asdict(plan), "model": str(side.model), "data": str(arguments.data), "seed": seed}
        job["output"] = str(folder / f"seed_{seed}")
        if arguments.hf_python:
            drawing = transformers_job(plan, sides_of(arguments)[0].model, seed, arguments) | {
                "output_layer_only": True
            }
            job["output_layer"] = run_program(script, drawing, folder / f"seed_{seed}_output_layer", arguments.threads)
    began, cpu = time.monotonic(), cpu_of_children()
    result = run_program(command, job, folder / f"seed_{seed}", arguments.threads)
    result["seconds"] |= {"process": time.monotonic() - began, "processor": cpu_of_children() - cpu}
    if "scores" not in result:
        result["scores"] = reported_scores(task, result.pop("predictions"))
        result["score"] = result["scores"][METRICS[task.kind.task.metric].main]
    return {name: value for name, value in result.items() if name != "losses"}


def cpu_of_children() -> float:
    """Return the CPU seconds of the processes that have ended. They depend less than wall time on other processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def result_of(side: Side, plan: Plan, seed: int, arguments: argparse.Namespace) -> Result | None:
    """Return a result that is there; raises InputError if it was made with other settings."""
    return results_file(arguments).find(plan.task, side.name, seed, made_with(side, plan, arguments))


def results_file(arguments: argparse.Namespace) -> ResultsFile:
    """Return the file of all results."""
    return ResultsFile(arguments.output / "results.jsonl")


def made_with(side: Side, plan: Plan, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what a result depends on, beside the seed."""
    made = {"plan": asdict(side.plan(plan)), "model": model_digest(side.model), "threads": arguments.threads}
    # Of its own output layer, transformers need not be told.
    is_given = arguments.hf_python and not side.hf_python
    return made | ({"output_layer": TRANSFORMERS} if is_given else {})


@cache
def model_digest(folder: Path) -> str:
    """Return the digest of a model's parameters."""
    return digest_of(read_model(folder).parameters)


def train_all(sides: Sequence[Side], plans: Sequence[Plan], arguments: argparse.Namespace) -> None:
    """Train what is missing: all sides of a task one after the other, so that they meet the same load."""
    for seed in arguments.seeds:
        for plan in plans:
            for side in sides:
                if result_of(side, plan, seed, arguments) is not None:
                    continue
                result = train_side(side, plan, seed, arguments)
                key = {"task": plan.task, "side": side.name, "seed": seed}
                more = {"made_with": made_with(side, plan, arguments), "processor": this_processor()}
                results_file(arguments).add(key | result | more)
                seconds = "  ".join(f"{name} {value:.1f} s" for name, value in result["seconds"].items())
                print(f"{plan.task}  {side.name}  seed {seed}: {result['score']:.4f}  {seconds}", flush=True)


def this_processor() -> str:
    """Return the name of this machine's processor, and the setting for it that Paddle's MKL gets."""
    name, setting = processor_name(read_cpuinfo()), os.environ.get(MKL_SETTING)
    return f"{name}, {MKL_SETTING}={setting}" if setting else name


def mean_and_range(values: Sequence[float], factor: float) -> str:
    """Return "mean (least..greatest)", or one value."""
    shown = f"{factor * statistics.mean(values):.1f}"
    return shown if len(values) < 2 else f"{shown} ({factor * min(values):.1f}..{factor * max(values):.1f})"


def table(rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a Markdown table; the first row has the titles, and `left` columns are aligned left."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    width = lines[0].count(" | ") + 1
    lines.insert(1, f"| {' | '.join(['---'] * left + ['---:'] * (width - left))} |")
    return "\n".join(lines)


def seconds_rows(task: str, sides: Sequence[Sequence[Result | None]], processor: str) -> list[list[str]]:
    """Return the median seconds of every side, and the ratio of the first to the last one.

    `sides` has each side's results, one for each seed, None where there is none. Only seeds count that all sides have
    run on `processor`.
    """
    seeds = [
        each for each in zip(*sides, strict=True) if all(r is not None and r["processor"] == processor for r in each)
    ]
    rows = []
    for name in MEASURED if seeds else ():
        medians = [statistics.median(r["seconds"][name] for r in each) for each in zip(*seeds, strict=True)]
        ratio = f"{medians[0] / medians[-1]:.2f}" if len(medians) > 1 and medians[-1] else "-"
        rows.append([task, name, *(f"{value:.1f}" for value in medians), ratio])
    return rows


def tables(sides: Sequence[Side], plans: Sequence[Plan], arguments: argparse.Namespace) -> str:
    """Return the table of scores, and the table of seconds on the processor of the last result, with what is there."""
    processor = results_file(arguments).all()[-1]["processor"]
    scores = [["task", "metric", "train rows", "seeds", "majority", *(side.name for side in sides)]]
    seconds = [["task", "seconds of", *(side.name for side in sides), "ratio"]]
    for plan in plans:
        found = {side: [result_of(side, plan, seed, arguments) for seed in arguments.seeds] for side in sides}
        results = {side: [each for each in found[side] if each is not None] for side in sides}
        if not any(results.values()):
            continue
        task = load_task(plan, arguments.data)
        metric = METRICS[task.kind.task.metric]
        factor = 100 if metric.unit == "fraction" else 1
        constant = constant_score(task)
        counts = {str(len(each)) for each in results.values()}
        scores.append(
            [
                TASKS[plan.task].title,
                metric.main,
                f"{len(task.train):,}",
                "/".join(sorted(counts)),
                "-" if constant is None else f"{factor * constant:.1f}",
                *(mean_and_range([r["score"] for r in each], factor) if each else "-" for each in results.values()),
            ]
        )
        seconds += seconds_rows(TASKS[plan.task].title, list(found.values()), processor)
    return f"{table(scores, 2)}\n\n{table(seconds, 2)}"


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder above the folders of the benchmarks")
    parser.add_argument("--output", type=Path, required=True, help="folder for the results")
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=FOLDER", help="model folders to fine-tune")
    parser.add_argument("--hf_python", type=Path, help="interpreter with torch and transformers, for one more side")
    parser.add_argument("--tasks", nargs="+", choices=PLANS, default=["cola", "rte", "mrpc", "stsb", "sst2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--rows", type=int, help="at most this number of training rows, instead of the task's")
    for setting, number in (("epochs", int), ("batch_size", int), ("micro_batch", int), ("learning_rate", float)):
        parser.add_argument(f"--{setting}", type=number, help="instead of the task's")
    parser.add_argument(
        "--length_pools", nargs="+", type=int, default=[1], help="optimizer.length_pool; several make a side of each"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of each side (%(default)s)")
    arguments = parser.parse_args()
    for name in ("data", "output"):
        setattr(arguments, name, getattr(arguments, name).resolve())
    return arguments


def sides_of(arguments: argparse.Namespace) -> list[Side]:
    """Return the sides; raises InputError for a model that is not there."""
    pools = arguments.length_pools
    sides = []
    for given in arguments.models:
        name, separator, folder = given.partition("=")
        if not separator or not Path(folder).is_dir():
            raise InputError(f"--models {given}: give NAME=FOLDER, with the folder of a model")
        for pool in pools:
            sides.append(Side(name if len(pools) == 1 else f"{name}_{pool}", Path(folder).resolve(), None, pool))
    if arguments.hf_python:
        # A link must not be resolved: the environment is that of the folder it is in.
        sides.append(Side(TRANSFORMERS, sides[0].model, arguments.hf_python.absolute(), pools[0]))
    if len({side.name for side in sides}) < len(sides):
        raise InputError(f"--models: a name is given twice, or is {TRANSFORMERS}")
    return sides


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    sides = sides_of(arguments)
    plans = [PLANS[name] for name in arguments.tasks]
    given = {
        name: getattr(arguments, name) for name in ("rows", "epochs", "batch_size", "micro_batch", "learning_rate")
    }
    plans = [replace(plan, **{name: value for name, value in given.items() if value}) for plan in plans]
    for plan in plans:
        if TRAIN not in available_splits(TASKS[plan.task], arguments.data):
            raise InputError(f"{arguments.data}: no training files of {plan.task}; leave it out of --tasks")
    train_all(sides, plans, arguments)
    processor = results_file(arguments).all()[-1]["processor"]
    print(f"\n{processor}: {arguments.threads} threads\n\n{tables(sides, plans, arguments)}")


if __name__ == "__main__":
    one_line_errors(main)
