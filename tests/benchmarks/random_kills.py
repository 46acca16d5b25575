"""Kill a short training at random: `python -m tests.benchmarks.random_kills [--kills N] [--seed N] [--folder FOLDER]`.

A tiny model is trained once without a disturbance, and once with N kills, after each of which the same command is run
again. The first third of the kills hits one process, the second third two, the last third one again. SIGKILL goes to
rank 0, rank 1, both, or the launcher, while it trains, while a checkpoint is being written, or while a batch is made.

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
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ernie_gram.run import checkpoint
from ernie_gram.run.heartbeat import FOLDER, heartbeat_file, read_beat
from ernie_gram.run.run_log import read_log
from reader.errors import InputError
from tests.conftest import build_all
from tests.support.commands import ROOT, two_ranks
from tests.support.runs import NO_DROPOUT, evaluations, options, train_losses

STEPS_PER_KILL, SAVE_EVERY = 30, 10
# A job must end in this time after a kill, its start may take longer on a busy machine.
END_SECONDS, START_SECONDS = 60.0, 600.0
MARK = "RANDOM_KILLS"
TOLERANCE = 1e-4
ROW = "{:>4}  {:>9}  {:<8}  {:<8}  {:>5}  {:>6}  {:>7}  {:>7}  {}"


@dataclass
class Training:
    """The disturbed training.

    Attributes:
        built: folder with the corpora; output: the run's folder; log: of the launcher.
        max_steps: length of the training.
        saved: the newest checkpoint that a rank has reported as saved.
    """

    built: Path
    output: Path
    log: Path
    max_steps: int
    saved: int = 0

    def command(self, processes: int) -> list[str]:
        """Return the command that starts or resumes the training."""
        more = [f"--trainer.max_steps={self.max_steps}", f"--trainer.save_every={SAVE_EVERY}"]
        more += [f"--trainer.eval_every={self.max_steps}", "--trainer.hang_seconds=300", *NO_DROPOUT]
        # Two processes round otherwise than one. At this rate the differences do not grow from step to step.
        more.append("--optimizer.learning_rate=1e-3")
        start = ["-m", "ernie_gram.pretrain"] if processes == 1 else two_ranks(self.log)
        return [sys.executable, *start, *options(self.built, self.output, *more)]

    @contextmanager
    def started(self, processes: int) -> Iterator[subprocess.Popen[bytes]]:
        """Start the training; at the end of the context no process of it is left."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(self.output)}
        if processes == 1:
            environment[FOLDER] = str(self.log)
        with (self.log / "console.txt").open("ab") as console:
            process = subprocess.Popen(
                self.command(processes), cwd=ROOT, env=environment, stdout=console, stderr=console
            )
        try:
            yield process
        finally:
            for pid in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def heartbeat(self, rank: int) -> Path:
        """Return the heartbeat file of a rank."""
        return heartbeat_file(self.log, rank)

    def processes(self) -> dict[int, int | None]:
        """Return process -> rank of all processes of this training; None for the launcher."""
        found: dict[int, int | None] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                if f"{MARK}={self.output}" in variables and (folder / "cmdline").read_bytes():
                    ranks = [int(line.split("=")[1]) for line in variables if line.startswith("PADDLE_TRAINER_ID=")]
                    found[int(folder.name)] = ranks[0] if ranks else None
        return found

    def step(self) -> int:
        """Return the last step in the log."""
        return max((record["step"] for record in read_log(self.output)), default=0)

    def check(self) -> list[str]:
        """Return what is wrong with the checkpoints; "saved" lines in all output count as promises."""
        problems = []
        for path in checkpoint.checkpoints(self.output):
            try:
                checkpoint.verify(path)
            except InputError as error:
                problems.append(f"false: {error}")
        text = "".join(path.read_text(errors="replace") for path in self.log.glob("*") if "log" in path.name)
        text += (self.log / "console.txt").read_text(errors="replace")
        promised = max((int(step) for step in re.findall(r"saved \S*/step_(\d+)", text)), default=0)
        newest = max((checkpoint.step_of(path) for path in checkpoint.checkpoints(self.output)), default=0)
        if newest < max(promised, self.saved):
            problems.append(f"lost: step {max(promised, self.saved)}, newest is {newest}")
        self.saved = newest
        return problems


def caught(training: Training, pids: list[int], moment: str, rank: int) -> bool:
    """Stop processes, and return whether this is at the given moment; otherwise let them continue."""
    if not is_in(training, moment, rank):
        return False
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    if is_in(training, moment, rank):
        return True
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return False


def is_in(training: Training, moment: str, rank: int) -> bool:
    """Whether a checkpoint is being written, or a rank waits for a batch; always true for other moments."""
    if moment == "saving":
        return any(training.output.glob(".step_*.partial"))
    beat = read_beat(training.heartbeat(rank))
    return moment != "feeding" or (beat is not None and beat.activity.startswith("waits for the batch"))


def disturb(training: Training, processes: int, target: str, moment: str, step: int, chance: random.Random) -> str:
    """Start the training, kill its target after `step`, wait for its end; return a row's last cells."""
    with training.started(processes) as job:
        deadline = time.monotonic() + START_SECONDS
        while training.step() < step and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.2))
        if job.poll() is not None:
            return f"{step:>5}  ended with status {job.returncode} before the kill"
        found = training.processes()
        ranks = {rank or 0: pid for pid, rank in found.items() if rank is not None or processes == 1}
        victims = {"rank 0": [ranks[0]], "both": list(ranks.values()), "launcher": [job.pid]}
        pids = victims[target] if target in victims else [ranks[1]]
        until = time.monotonic() + 30
        while not (hit := caught(training, pids, moment, 1 if target == "rank 1" else 0)) and time.monotonic() < until:
            time.sleep(0.001)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        while training.processes() and time.monotonic() - began < END_SECONDS:
            job.poll()
            time.sleep(0.05)
        seconds, left = time.monotonic() - began, training.processes()
        problems = [] if hit else ["(the moment was missed)"]
        problems += [f"left: {left}"] if left else []
        status = job.poll()
    problems += training.check()
    last = "; ".join(problems) or "ok"
    return f"{training.step():>5}  {status!s:>6}  {seconds:>7.1f}  {training.saved:>7}  {last}"


def plan(kills: int, chance: random.Random) -> list[tuple[int, str, str]]:
    """Return (processes, target, moment) of each kill; every combination comes before one is repeated."""
    moments = ["training", "saving", "feeding"]
    single = [(1, "rank 0", moment) for moment in moments]
    double = [(2, target, moment) for moment in moments for target in ("rank 0", "rank 1", "both", "launcher")]
    chance.shuffle(single)
    chance.shuffle(double)
    thirds = [len(range(third, kills, 3)) for third in range(3)]
    first, second, last = (
        [kinds[i % len(kinds)] for i in range(n)] for n, kinds in zip(thirds, (single, double, single), strict=True)
    )
    return [*first, *second, *last]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep everything in this new folder")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        sys.exit(run(folder, arguments.kills, random.Random(arguments.seed)))


def run(folder: Path, kills: int, chance: random.Random) -> int:
    """Train without and with kills in `folder`; print the table; return the exit status."""
    max_steps = STEPS_PER_KILL * (kills + 1)
    trainings = []
    for name in ("built", "undisturbed.log", "disturbed.log"):
        (folder / name).mkdir()
    build_all(folder / "built")
    for name in ("undisturbed", "disturbed"):
        trainings.append(Training(folder / "built", folder / name, folder / f"{name}.log", max_steps))
    undisturbed, training = trainings
    with undisturbed.started(1) as job:
        assert job.wait() == 0, (undisturbed.log / "console.txt").read_text()
    print(ROW.format("kill", "processes", "target", "moment", "step", "status", "end, s", "saved", ""), flush=True)
    bad = 0
    for number, (processes, target, moment) in enumerate(plan(kills, chance)):
        # Steps after the newest checkpoint are in the log already; the kill comes when it has a new one.
        step = max(STEPS_PER_KILL * number + chance.randrange(STEPS_PER_KILL), training.step() + 1)
        cells = disturb(training, processes, target, moment, step, chance)
        bad += not cells.endswith(("ok", "(the moment was missed)"))
        print(f"{number + 1:>4}  {processes:>9}  {target:<8}  {moment:<8}  {cells}", flush=True)
    with training.started(1) as job:
        bad += job.wait() != 0
    problems = [*training.check(), *(f"left: {pid}" for pid in training.processes())]
    print("\n".join(problems) or "no process left, no checkpoint lost or false")
    found, expected = (evaluations(each.output)[-1] for each in (training, undisturbed))
    apart = max(abs(found[key] / value - 1) for key, value in expected.items() if isinstance(value, float) and value)
    steps = [[step for step, *_ in train_losses(each.output)] for each in (training, undisturbed)]
    print(f"perplexity {found['perplexity']:.6f}, undisturbed {expected['perplexity']:.6f}; ", end="")
    print(f"largest relative difference of the final evaluation {apart:.1e}; ", end="")
    print(f"{len(steps[0])} steps logged of {len(steps[1])}")
    return int(bool(bad or problems or apart > TOLERANCE or steps[0] != steps[1]))


if __name__ == "__main__":
    main()
