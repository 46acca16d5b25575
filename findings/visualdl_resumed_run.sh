#!/usr/bin/env bash
# visualdl 2.5.3 (and tensorboard 2.21.0): what a resumed run shows.
#
# Behaviour: each LogWriter starts a file of its own in the run's folder, named by the second. The page reads the file
# with the last name only, so a run that was resumed at step 100 shows steps 100 to 109 and the 100 before are gone,
# though they are on the disk. TensorBoard lists such a folder as a run without data, and says nothing.
#
# Why it surprises: TensorBoard joins all files of a folder into one curve. A curve that begins at step 100 is read as a
# lost log. Way round: LogWriter(folder, file_name=...) with the first file's name, which appends to it.
#
# Output seen:
# files 2 with steps [(0, 99), (100, 109)]
# what VisualDL's page gets: {'runs/base': '10 points, from step 100'}
# TensorBoard's scalars of the folder: []
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check visualdl==2.5.3 tensorboard==2.21.0
env/bin/python -W ignore - <<'EOF'
import time
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from visualdl import LogReader, LogWriter
from visualdl.server.lib import get_runs, get_scalar


def train(steps):
    with LogWriter("runs/base") as writer:
        for step in steps:
            writer.add_scalar("loss", 1.0 / (1 + step), step)


train(range(100))
time.sleep(1.1)  # a file's name is the second in which it was made
train(range(100, 110))  # the resumed run
files = sorted(Path("runs/base").iterdir())
stored = [[point.id for point in LogReader(file_path=str(file)).get_data("scalar", "loss")] for file in files]
print("files", len(files), "with steps", [(steps[0], steps[-1]) for steps in stored])
reader = LogReader(logdir="runs")
shown = {run: [step for _, step, _ in get_scalar(reader, run, "loss")] for run in get_runs(reader)}
print("what VisualDL's page gets:", {run: f"{len(steps)} points, from step {steps[0]}" for run, steps in shown.items()})
board = EventAccumulator("runs/base")
board.Reload()
print("TensorBoard's scalars of the folder:", board.Tags()["scalars"])
same = [len(steps) for steps in stored] == [100, 10] and shown == {"runs/base": list(range(100, 110))}
raise SystemExit(0 if same and not board.Tags()["scalars"] else "the behaviour has changed")
EOF
