"""The list of checks; the input, the exceptions and the result of a check. Nothing here imports Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Numbers = dict[str, Any]
Status = Literal["PASS", "FAIL", "SKIPPED"]


@dataclass(frozen=True)
class Check:
    """A check: the function `name` in a module of this package. It takes a Setup and returns a line for the table.

    Attributes:
        seconds: time limit.
        environment: more variables for its process; Paddle and NVIDIA's libraries read them when they are loaded.
    """

    name: str
    module: str
    seconds: int
    environment: Mapping[str, str] = field(default_factory=dict)


# Makes Paddle write the log that copies.py reads.
_LOG = {"GLOG_minloglevel": "0", "GLOG_vmodule": "memcpy=4,pir_interpreter=2"}
# Products of float32 numbers, not of TF32.
_FLOAT32 = {"NVIDIA_TF32_OVERRIDE": "0"}
# If it fails, all others would.
FIRST = "device"
CHECKS = (
    Check(FIRST, "device", 60),
    Check("kernels", "kernels", 240),
    Check("copies", "copies", 120, _LOG),
    Check("sampler", "sampling", 60, _FLOAT32),
    *(Check(name, "equal_numbers", 120, _FLOAT32) for name in ("float32", "bfloat16", "float16", "overflow")),
    *(Check(name, "equal_numbers", 180, _FLOAT32) for name in ("recompute", "resume")),
    Check("export", "exported", 120, _FLOAT32),
    *(Check(name, "ranks", 180, _FLOAT32) for name in ("two_gpus", "row_exchange", "killed_rank")),
    *(Check(name, "speed", 240) for name in ("memory", "speed", "speed_16_bits", "attention")),
)
NAMES = tuple(check.name for check in CHECKS)


@dataclass(frozen=True)
class Setup:
    """The input of a check, and the place for its measurements.

    Attributes:
        folder: for its files; all checks share it, so that one can read the files of another.
        quick: whether to use sizes that even a CPU computes in seconds.
        limit: time limit of the check in seconds.
        numbers: the measurements, which the check adds; JSON must be able to represent them.
    """

    folder: Path
    quick: bool
    limit: int
    numbers: Numbers = field(default_factory=dict)


class Failed(Exception):
    """Raised by a check that has found a fault."""


class Skipped(Exception):
    """Raised by a check that cannot run on this machine, with the reason."""


def require(condition: bool, reason: str) -> None:
    """Raise Failed with the reason unless the condition holds."""
    if not condition:
        raise Failed(reason)


@dataclass(frozen=True)
class Result:
    """The result of a check.

    Attributes:
        reason: why it failed or was skipped, or what it found; one line.
        seconds: the time that it took.
        numbers: see Setup; if the check failed, also the last lines of its log.
    """

    name: str
    status: Status
    reason: str
    seconds: float
    numbers: Numbers
