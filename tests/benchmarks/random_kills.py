"""Kill a short training at random: `python -m tests.benchmarks.random_kills [--kills N] [--seed N]`.

A tiny model is trained once without a disturbance, and once with N kills, after each of which the same command is run
again. The first third of the kills hits one process, the second third two, the last third one again. SIGKILL goes to
rank 0, rank 1, both, or the launcher, while it trains, or while a checkpoint is being written.

Printed after each kill: how long the job took to end, and the newest whole checkpoint. The command fails unless no
process was left after a kill, no checkpoint was damaged, none that had been reported as saved was missing, and the
final evaluation is that of the undisturbed training (without dropout, because two processes draw other random numbers).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from reader.errors import InputError
from tests.conftest import build_all
from tests.support.commands import ERNIE_GRAM, in_ranks, ranks_with, started, wait_for
from tests.support.runs import NO_DROPOUT, evaluations, options, train_losses

STEPS_PER_KILL, SAVE_EVERY = 30, 10
# A job must end in this time after a kill, its start may take longer on a busy machine.
END_SECONDS, START_SECONDS, SAVE_SECONDS = 60.0, 600.0, 30.0
MARK = "RANDOM_KILLS"
TOLERANCE = 1e-4
TARGETS = {1: ("rank 0",), 2: ("rank 0", "rank 1", "both", "launcher")}


class Training:
    """A training in FOLDER/NAME on the corpora in FOLDER/built, whose output is in FOLDER/NAME.log."""

    def __init__(self, folder: Path, name: str, max_steps: int) -> None:
        self.built, self.output, self.log = folder / "built", folder / name, folder / f"{name}.log"
        self.max_steps, self.saved = max_steps, 0
        self.log.mkdir()

    def started(self, processes: int) -> AbstractContextManager[Popen[str]]:
        """Start or resume the training; at the end of the context no process of it is left."""
        more = [f"--trainer.max_steps={self.max_steps}", f"--trainer.save_every={SAVE_EVERY}"]
        more += [f"--trainer.eval_every={self.max_steps}", *NO_DROPOUT]
        # Two processes round otherwise than one. At this rate the differences do not grow from step to step.
        more.append("--optimizer.learning_rate=1e-3")
        start = [*ERNIE_GRAM, "pretrain"] if processes == 1 else in_ranks(self.log)
        said = (self.log / "console.txt").open("ab")
        given = options(self.built, self.output, *more)
        return started(*start, *given, stdout=said, stderr=said, **{MARK: str(self.output)})

    def processes(self) -> dict[int | None, int]:
        """Return rank -> process of all processes of this training; None for the launcher."""
        return ranks_with(**{MARK: str(self.output)})

    def step(self) -> int:
        """Return the last step in the log."""
        return max((record["step"] for record in read_log(self.output)), default=0)

    def check(self) -> list[str]:
        """Return which processes are left and what is wrong with the checkpoints; "saved" lines count as promises."""
        problems = [f"left: {self.processes()}"] if self.processes() else []
        for path in checkpoint.checkpoints(self.output):
            try:
                checkpoint.verify(path)
            except InputError as error:
                problems.append(f"false: {error}")
        text = "".join(path.read_text(errors="replace") for path in self.log.iterdir() if path.is_file())
        promised = max(self.saved, *(int(step) for step in re.findall(r"saved \S*/step_(\d+)", text)), 0)
        self.saved = max((checkpoint.step_of(path) for path in checkpoint.checkpoints(self.output)), default=0)
        return [*problems, *([f"lost: step {promised}, newest is {self.saved}"] if self.saved < promised else [])]


def disturb(training: Training, processes: int, target: str, saving: bool, step: int, delay: float) -> list[str]:
    """Start the training, kill its target after `step`, wait for its end; return what is wrong."""
    with training.started(processes) as job:
        wait_for(lambda: training.step() >= step or job.poll() is not None, START_SECONDS)
        time.sleep(delay)
        ranks = {rank or 0: pid for rank, pid in training.processes().items() if rank is not None or processes == 1}
        if saving and not wait_for(lambda: any(training.output.glob(".step_*.partial")), SAVE_SECONDS):
            print("the moment was missed: ", end="")
        if job.poll() is not None:
            return [f"ended with status {job.returncode} before the kill"]
        for pid in {"launcher": [job.pid], "both": [*ranks.values()]}.get(target) or [ranks[int(target[-1])]]:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        wait_for(lambda: job.poll() is not None and not training.processes(), END_SECONDS)
        problems = training.check()
        print(f"ended after {time.monotonic() - began:.1f} s, status {job.poll()}, step {training.step()}, ", end="")
    print(f"newest checkpoint {training.saved}: {'; '.join(problems) or 'ok'}", flush=True)
    return problems


def run(folder: Path, kills: int, chance: random.Random) -> int:
    """Train without and with kills in `folder`; print what happened; return the exit status."""
    (folder / "built").mkdir()
    build_all(folder / "built")
    undisturbed, training = (Training(folder, name, STEPS_PER_KILL * (kills + 1)) for name in ("undisturbed", "run"))
    with undisturbed.started(1) as job:
        assert job.wait() == 0, (undisturbed.log / "console.txt").read_text()
    bad = 0
    for number in range(kills):
        processes = 2 if kills // 3 <= number < 2 * (kills // 3) else 1
        target, saving = chance.choice(TARGETS[processes]), chance.random() < 0.5
        # Steps after the newest checkpoint are in the log already; the kill comes when it has a new one.
        step = max(STEPS_PER_KILL * number + chance.randrange(STEPS_PER_KILL), training.step() + 1)
        print(f"{number + 1}. {target} of {processes}{', while it saves' if saving else ''}: ", end="", flush=True)
        bad += bool(disturb(training, processes, target, saving, step, chance.uniform(0, 0.2)))
    with training.started(1) as job:
        bad += job.wait() != 0
    problems = training.check()
    print("\n".join(problems) or "no process left, no checkpoint lost or false")
    found, expected = (evaluations(each.output)[-1] for each in (training, undisturbed))
    apart = max(abs(found[key] / value - 1) for key, value in expected.items() if isinstance(value, float) and value)
    steps = [[step for step, *_ in train_losses(each.output)] for each in (training, undisturbed)]
    print(f"perplexity {found['perplexity']:.6f}, undisturbed {expected['perplexity']:.6f}; ", end="")
    print(f"largest relative difference of the final evaluation {apart:.1e}; ", end="")
    print(f"{len(steps[0])} steps logged of {len(steps[1])}")
    return int(bool(bad or problems or apart > TOLERANCE or steps[0] != steps[1]))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with TemporaryDirectory() as folder:
        sys.exit(run(Path(folder).resolve(), arguments.kills, random.Random(arguments.seed)))


if __name__ == "__main__":
    main()
