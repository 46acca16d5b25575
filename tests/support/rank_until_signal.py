"""A rank that runs until a signal asks it to end, and then saves: see distributed/test_launcher.py."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ernie_gram.distributed.world import RANK
from ernie_gram.run.termination import deferred, end_at_signals, requested

folder = Path(sys.argv[1])
with end_at_signals(), deferred():
    (folder / f"ready.{RANK}").touch()
    print("waits", flush=True)
    while not requested():
        time.sleep(0.05)
    time.sleep(1.5)
    (folder / f"saved.{RANK}").touch()
