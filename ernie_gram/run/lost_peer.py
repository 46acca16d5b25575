"""The end of a process that has lost the connection to another process of its job."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from reader.errors import print_error

# EX_TEMPFAIL of sysexits.h. The launcher looks for the cause in another process.
LOST_PEER_STATUS = 75
# What gloo and NCCL raise, through Paddle. Of NCCL only its errors of the system (2) and of another process (6): others
# have their cause here, for example a missing libnccl.so. Mostly NCCL raises nothing and waits for ever; then the
# launcher ends this process.
_LOST = re.compile(
    r"^std::exception$|gloo|nccl error\([26]\)|connection (reset|closed|refused)|broken pipe", re.IGNORECASE
)


@contextmanager
def lost_peer_error(world_size: int) -> Iterator[None]:
    """Within the context, a failed exchange ends the process with one line and LOST_PEER_STATUS, not a traceback.

    Args:
        world_size: number of processes of the job; with one, no exchange can fail.
    """
    try:
        yield
    except (RuntimeError, OSError, SystemError) as error:
        if world_size == 1 or not _LOST.search(str(error)):
            raise
        print_error(f"lost the connection to another process of this job ({error})")
        sys.exit(LOST_PEER_STATUS)
