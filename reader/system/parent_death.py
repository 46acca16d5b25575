"""A process that does not outlive its parent. Linux only; elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import platform

_PR_SET_PDEATHSIG = 1  # of prctl


def signal_at_parent_death(number: int) -> None:
    """Ask the system to send a signal to this process when its parent ends, even if the parent is killed.

    If the parent has ended already, nothing is sent: compare `os.getppid()` with the expected parent afterwards.
    """
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
