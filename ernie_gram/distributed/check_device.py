"""Check the device of runs that other processes will train: `python -m ernie_gram.distributed.check_device`.

For commands that start many runs and never load Paddle themselves (see experiments/processes.py).
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.distributed.check_device")

import sys

from ernie_gram.distributed.device import check_device


def main() -> None:
    """Check the device, the precision, the attention and the number of processes that are the four arguments."""
    device, precision, attention, processes = sys.argv[1:]
    check_device(device, precision, int(processes), attention=attention)
