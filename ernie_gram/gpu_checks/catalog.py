"""All checks, in their order. Nothing here imports Paddle."""

from __future__ import annotations

from ernie_gram.gpu_checks.check import Check

# The log that copies.py reads.
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
