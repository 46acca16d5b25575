"""All checks, in their order, and the processes in which they run. Nothing here imports Paddle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ernie_gram.gpu_checks.outcome import Passed, Setup


@dataclass(frozen=True)
class Check:
    """A check: the function of its name in a module of this package.

    Attributes:
        process: its process, see PROCESSES.
        seconds: after which it is ended.
    """

    name: str
    module: str
    process: str
    seconds: int

    def function(self) -> Callable[[Setup], Passed]:
        """Return the function; it raises Failed and Skipped too. Its module loads Paddle."""
        found: Callable[[Setup], Passed] = getattr(import_module(f"{__package__}.{self.module}"), self.name)
        return found


# Successive checks with the same process run in one, with these further environment variables. Paddle and NVIDIA's
# libraries read them when they are loaded. The peak of the memory is that of a process.
PROCESSES: dict[str, dict[str, str]] = {
    "kernels": {},
    # The log that copies.py reads.
    "copies": {"GLOG_minloglevel": "0", "GLOG_vmodule": "memcpy=4,pir_interpreter=2"},
    # Products of float32 numbers, not of TF32.
    "numbers": {"NVIDIA_TF32_OVERRIDE": "0"},
    "float32 speed": {},
    "16-bit speed": {},
    "attention": {},
}
# If it fails, all others would.
FIRST = "device"
CHECKS = (
    Check(FIRST, "device", "kernels", 60),
    Check("kernels", "kernels", "kernels", 240),
    Check("copies", "copies", "copies", 120),
    Check("sampler", "sampling", "numbers", 60),
    *(Check(name, "equal_numbers", "numbers", 120) for name in ("float32", "bfloat16", "float16", "overflow")),
    *(Check(name, "equal_numbers", "numbers", 180) for name in ("recompute", "resume")),
    Check("export", "exported", "numbers", 120),
    *(Check(name, "ranks", "numbers", 180) for name in ("two_gpus", "row_exchange", "killed_rank")),
    *(Check(name, "speed", "float32 speed", 240) for name in ("memory", "speed", "micro_batch")),
    Check("speed_16_bits", "speed", "16-bit speed", 240),
    Check("attention", "attention", "attention", 240),
)
NAMES = tuple(check.name for check in CHECKS)
