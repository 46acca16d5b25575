"""The runs of a sweep, trained in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ernie_gram import pretrain
from tasks import finetune
from tasks.sweeps.runs import PlannedRun
from tests.support.commands import call
from tests.support.static_programs import fresh_scope


def train_here(
    runs: Sequence[PlannedRun], jobs: int, processes: int, ended: Callable[[PlannedRun], str | None]
) -> list[str]:
    """Train runs in order, as `train_all` does. Tests of processes start real ones."""
    failed = []
    for run in runs:
        module, *options = run.command
        with fresh_scope():
            done = call(finetune.main if module == "tasks.finetune" else pretrain.main, *options)
        if done.returncode or ended(run) is None:
            failed.append(f"{run.name}: {done.stderr}")
    return failed
