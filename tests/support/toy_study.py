"""A study of seconds, and its command with the trainings in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ernie_gram import pretrain
from ernie_gram.experiments.planned_run import PlannedRun, Result
from tasks import finetune
from tasks.registry.task_file import settings_of
from tests.support.commands import call
from tests.support.runs import TINY
from tests.support.static_programs import fresh_scope
from tests.support.tiny_task import SETTINGS

# Fields of a result that are times.
TIMES = ("seconds", "seconds_per_step", "cpu_seconds_per_step")


def tree(options: Sequence[str]) -> dict[str, Any]:
    """Return options `--key=value` as a mapping for a YAML file."""
    return {
        key: json.loads(value) if value[:1].isdigit() else value
        for key, _, value in (each[2:].partition("=") for each in options)
    }


def write_study(folder: Path, task: Path, **changes: Any) -> Path:
    """Write study.yaml: explicit and contiguous masking, fine-tuned on the tiny task; return its path."""
    options = {key: {"false": False}.get(str(value), value) for key, value in tree(TINY).items()}
    options |= {"trainer.max_steps": 6, "trainer.eval_every": 3, "trainer.eval_sequences": 20, "trainer.save_every": 2}
    contiguous = {"objective.masking": "contiguous", "objective.coarse_weight": 0, "objective.fine_weight": 1}
    config = "conf/ablation/explicit.yaml"
    study = {
        "title": "A toy",
        "seeds": [1],
        "reference": "explicit",
        "vocabulary": {"size": 1000},
        "lexicons": {"lexicon": {"top": "2:400,3:200"}},
        "corpora": {"corpus": {"lexicon": "lexicon"}, "held_out": {"text": "held_out", "lexicon": "lexicon"}},
        "variants": {
            "explicit": {"config": config, "what": "explicit masking", "options": options},
            "contiguous": {"config": config, "what": "contiguous masking", "options": options | contiguous},
        },
        "finetuning": {"seeds": [1, 2], "options": tree(SETTINGS) | {"optimizer.epochs": 1}, "tasks": {str(task): {}}},
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps(study | changes))
    return path


def train_here(
    runs: Sequence[PlannedRun],
    jobs: int,
    processes: int,
    needs: Mapping[PlannedRun, PlannedRun] | None = None,
    threads: int | None = None,
) -> Iterator[tuple[PlannedRun, Result | None, float]]:
    """Run the trainings of a study or an experiment in this process, in order. The tests of sweeps start real ones."""
    failed = set()
    for run in runs:
        if needs and needs.get(run) in failed:
            continue
        run.folder.mkdir(exist_ok=True)
        with fresh_scope():
            if run.module == "tasks.run_finetune":
                task, model, *options = run.arguments
                done = call(finetune.main, *settings_of(task), "--paths.model", model, *options)
            else:
                done = call(pretrain.main, *run.arguments)
        (run.folder / "console.txt").write_text(done.stdout + done.stderr)
        failed |= {run} if done.returncode else set()
        yield run, None if done.returncode else run.result(), 1.0


def without_times(results: Path) -> list[dict[str, Any]]:
    """Return the records of a file of results without what depends on the time."""
    records = [json.loads(line) for line in results.read_text().splitlines()]
    for record in records:
        record["result"] = {key: value for key, value in record["result"].items() if key not in TIMES}
    return records
