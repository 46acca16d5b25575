"""Print how many GPUs a job on this machine can use: `python -m ernie_gram.distributed.count_gpus`, for launcher.py."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.distributed.count_gpus")

import os
import subprocess

from ernie_gram.distributed.device import is_gpu_package, visible_gpus
from reader.errors import print_note

# A driver that does not answer within this time is as good as none.
DRIVER_SECONDS = 20


def main() -> None:
    """Print the number; say so if Paddle's package is the reason for 0."""
    listed = 0 if is_gpu_package() else listed_gpus()
    if listed:
        gpus = f"{listed} GPU{'s' * (listed > 1)}"
        print_note(f"this machine has {gpus}, but this Paddle is the package for CPUs; paddlepaddle-gpu would use them")
    print(visible_gpus())


def listed_gpus() -> int:
    """Return the number of GPUs that the driver lists; 0 if they are hidden, or if there is no driver."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (not visible or visible.startswith("-")):
        return 0
    command = ["nvidia-smi", "--list-gpus"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DRIVER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines())
