"""Take every task of the registry through a few steps: `python -m tests.benchmarks.every_task --help`.

All rows of its official files are read and encoded. A few steps are trained on some of them, evenly spread; the model
is evaluated on some of the dev rows and saved. Then the saved model is loaded into new programs: its scores must be
equal to those before, and `python -m tasks.predict` must answer the texts of these rows. The settings are those of
conf/tasks, with smaller batches.

Results are kept in OUTPUT/TASK.json. Tasks that are there are not repeated, so that a run may be stopped at any time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.distributed.world import start_world
from reader.errors import InputError, one_line_errors
from reader.system.atomic_files import atomic_file
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.data.examples import Example
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.span.example import SpanExample
from tasks.kinds.tagging.example import TaggingExample
from tasks.kinds.task import TRAIN
from tasks.layouts.clue import BLANK
from tasks.metrics.catalog import METRICS
from tasks.prediction.finetuned import load_finetuned
from tasks.reading.load import Report
from tasks.reading.official_files import available_splits
from tasks.registry import TASKS
from tasks.training.config import FinetuneConfig
from tasks.training.prepare import Run, prepare
from tasks.training.splits import SplitData
from tests.benchmarks.random_model import write_random_model
from tests.support.commands import ROOT, call

BATCH_SIZE = 8

Item = TypeVar("Item")


def spread(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Return `limit` of the items, evenly spread and in their order; all of them if there are no more, or for None."""
    count = len(items)
    if limit is None or limit >= count:
        return list(items)
    return [items[i * count // limit] for i in range(limit)]


def with_examples(run: Run, split: SplitData, limit: int | None, training: bool) -> SplitData:
    """Return a split with `limit` of its examples; its report stays that of the whole split."""
    examples = spread(split.examples, limit)
    if len(examples) == len(split.examples):
        return split
    return replace(split, examples=examples, features=run.kind.encode(examples, run.tokenizer, training))


def examples_for(split: SplitData, samples: int) -> int:
    """Return for how many examples, evenly spread, a split has at most this number of samples; at least 1.

    An example of a long text may have several samples.
    """
    counts = np.bincount(split.features.example_of, minlength=len(split.examples))
    limit = min(samples, len(counts))
    while limit > 1 and sum(spread(counts.tolist(), limit)) > samples:
        limit -= 1
    return limit


def checked_run(task: str, model: Path, arguments: argparse.Namespace) -> Run:
    """Read and encode all rows of a task; return a run over some of them."""
    given = [
        *("--config", str(ROOT / f"conf/tasks/{task}.yaml")),
        f"--paths.model={model}",
        f"--paths.data={arguments.data}",
        f"--paths.output={arguments.output / 'runs' / task}",
        f"--optimizer.batch_size={BATCH_SIZE}",
        "--optimizer.epochs=1",
        "--trainer.log_every=1",
        "--trainer.device=cpu",
    ]
    config, _ = load_config(FinetuneConfig, given)
    shutil.rmtree(config.paths.output or "", ignore_errors=True)
    run = prepare(config)
    limit = examples_for(run.train, arguments.steps * BATCH_SIZE)
    return replace(
        run,
        train=with_examples(run, run.train, limit, training=True),
        dev=tuple(with_examples(run, split, arguments.rows, training=False) for split in run.dev),
        final=tuple(with_examples(run, split, arguments.rows, training=False) for split in run.final),
    )


def reloaded_scores(folder: Path, splits: tuple[SplitData, ...], batch_size: int) -> dict[str, dict[str, float]]:
    """Return the scores of the saved model of a run, computed by new programs from nothing but the run's folder."""
    from tasks.prediction.program import Scorer
    from tests.support.static_programs import fresh_scope

    found = {}
    finetuned = load_finetuned(folder)
    for split in splits:
        with fresh_scope():
            features = finetuned.encode(split.examples)
            scores = Scorer(finetuned, start_world("cpu")).scores(features, batch_size)
        predictions = finetuned.kind.decode(scores, features, split.examples)
        found[split.name] = finetuned.kind.evaluate(predictions)
    return found


def plain(example: Example) -> dict[str, Any]:
    """Return an example, without its label or answer, as a row of `tasks.predict`."""
    if isinstance(example, SentenceExample):
        return {"text_a": example.text_a} | ({} if example.text_b is None else {"text_b": example.text_b})
    if isinstance(example, TaggingExample):
        return {"tokens": example.tokens}
    if isinstance(example, MultipleChoiceExample):
        return {"context": example.context, "question": example.question, "options": example.options}
    assert isinstance(example, SpanExample)
    return {"question": example.question, "context": example.context}


def own_objects(task: str, examples: list[Example]) -> tuple[str, list[dict[str, Any]]]:
    """Return a layout of `tasks.predict`, and the texts of some examples as its JSON lines, one row in each."""
    rows = [plain(example) for example in examples]
    if task == "chid":
        content = [row["context"].replace(BLANK, f"#idiom{number}#") for number, row in enumerate(rows)]
        return "task", [
            {"content": [text], "candidates": row["options"]} for text, row in zip(content, rows, strict=True)
        ]
    if task == "cluewsc2020":
        lines = [(example.place.file.read_text("utf-8").split("\n"), example.place.line or 0) for example in examples]
        return "task", [json.loads(file[line - 1]) for file, line in lines]
    return "json", rows


def count_answers(folder: Path, examples: list[Example]) -> int:
    """Return the number of answers of `python -m tasks.predict` for the texts of some examples."""
    from tasks.predict import main as predict
    from tests.support.static_programs import fresh_scope

    texts, answers = folder / "texts.jsonl", folder / "answers.jsonl"
    layout, objects = own_objects(folder.name, examples)
    texts.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects), encoding="utf-8")
    common = ["--input", str(texts), "--layout", layout, "--output", str(answers), "--overwrite"]
    with fresh_scope():
        done = call(predict, str(folder), *common, "--device", "cpu")
    if done.returncode:
        raise InputError(f"{folder}: prediction failed: {done.stderr.strip()}")
    return answers.read_text(encoding="utf-8").count("\n")


def rows_of(report: Report) -> str:
    """Return the number of rows of a split, and what did not become an example."""
    others = {"left out": len(report.omitted), "bad": len(report.bad)}
    notes = "".join(f", {count} {what}" for what, count in others.items() if count)
    return f"{report.split} {report.rows:,}{notes}"


def run_task(task: str, model: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Take one task through everything; raises InputError if a check fails."""
    from tasks.finetune import finetune
    from tests.support.static_programs import fresh_scope

    began = time.monotonic()
    run = checked_run(task, model, arguments)
    read = time.monotonic()
    with fresh_scope():
        result = finetune(run)
    trained = time.monotonic()
    splits = (*run.dev, *run.final)
    again = reloaded_scores(run.output, splits, run.config.evaluation.batch_size)
    if again != result["scores"]:
        raise InputError(f"{run.output}: the saved model scores {again}, but {result['scores']} before it was saved")
    answers = count_answers(run.output, run.dev[0].examples)
    if answers != len(run.dev[0].examples):
        raise InputError(f"{run.output}: {answers} answers to {len(run.dev[0].examples)} texts")
    done = time.monotonic()
    shutil.rmtree(run.output)
    return {
        "rows": [rows_of(split.report) for split in (run.train, *splits)],
        "steps": result["steps"]["trained"],
        "evaluated": sum(len(split.examples) for split in splits),
        "metric": run.metric,
        "unit": METRICS[run.task.metric].unit,
        "score": result["score"],
        "seconds": {"reading": read - began, "training": trained - read, "reloading": done - trained},
    }


def model_for(language: str, arguments: argparse.Namespace) -> Path:
    """Return the given model of a language, or a tiny one of random numbers with the vocabulary beside the data."""
    given: Path | None = arguments.model if language == "en" else arguments.model_zh
    if given is not None:
        return given
    folder: Path = arguments.output / f"tiny_{language}"
    if not folder.exists():
        vocabulary = load_vocabulary(arguments.data / "vocab" / language / "vocab.txt", True)
        write_random_model(vocabulary, folder)
    return folder


def table(rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a Markdown table; the first row has the titles, and `left` columns are aligned left."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    width = lines[0].count(" | ") + 1
    lines.insert(1, f"| {' | '.join(['---'] * left + ['---:'] * (width - left))} |")
    return "\n".join(lines)


def shown_table(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as a Markdown table."""
    rows = [["task", "rows read", "steps", "rows evaluated", "metric", "score", "reading s", "training s", "reload s"]]
    for task, result in results.items():
        factor = 100 if result["unit"] == "fraction" else 1
        seconds = [f"{value:.1f}" for value in result["seconds"].values()]
        counts = [str(result["steps"]), str(result["evaluated"])]
        score = f"{factor * result['score']:.1f}"
        rows.append([TASKS[task].title, "; ".join(result["rows"]), *counts, result["metric"], score, *seconds])
    return table(rows, 2)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder above the folders of the benchmarks")
    parser.add_argument("--output", type=Path, required=True, help="folder for the results")
    parser.add_argument("--model", type=Path, help="model for English tasks (default: a tiny one of random numbers)")
    parser.add_argument("--model_zh", type=Path, help="model for Chinese tasks (default: likewise)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--steps", type=int, default=5, help="training steps of 8 samples (%(default)s)")
    parser.add_argument("--rows", type=int, default=64, help="rows of each split to evaluate on (%(default)s)")
    arguments = parser.parse_args()
    (arguments.output / "runs").mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    failed = []
    for task in arguments.tasks:
        path = arguments.output / f"{task}.json"
        if TRAIN not in available_splits(TASKS[task], arguments.data):
            print(f"{task}: no training files in {arguments.data}", file=sys.stderr)
            continue
        if not path.is_file():
            try:
                with path.with_suffix(".log").open("w", encoding="utf-8") as log, redirect_stdout(log):
                    result = run_task(task, model_for(TASKS[task].language, arguments), arguments)
            except InputError as error:
                print(f"{task}: {error}", file=sys.stderr)
                failed.append(task)
                continue
            with atomic_file(path) as partial:
                partial.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(f"{task}: {result['metric']} {result['score']:.4f} before and after saving", flush=True)
        results[task] = json.loads(path.read_text(encoding="utf-8"))
    print(f"\n{processor_name(read_cpuinfo())}\n\n{shown_table(results)}")
    if failed:
        raise InputError(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    one_line_errors(main)
