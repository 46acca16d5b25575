"""The processor of this machine, and what Paddle's mathematical library must be told about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

MKL_SETTING = "MKL_DEBUG_CPU_TYPE"
_SKYLAKE_AVX512 = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})


def processor_settings(cpuinfo: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables to set for a processor, given the text of /proc/cpuinfo; unset ones only.

    Paddle's package contains MKL of 2019, which takes its slowest path on AMD processors. MKL_DEBUG_CPU_TYPE selects
    another one: 7 is the path for AVX-512 (Intel's Skylake), 5 the path for AVX2. One thread of a Zen 5 reaches 175
    GFLOP/s in matrix products with 7, 100 with 5, and 30 without. On Intel processors MKL itself selects the fastest.
    """
    is_amd = re.search(r"^vendor_id\s*:\s*AuthenticAMD\s*$", cpuinfo, re.MULTILINE) is not None
    if not is_amd or MKL_SETTING in environment:
        return {}
    found = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    if flags >= _SKYLAKE_AVX512:
        return {MKL_SETTING: "7"}
    return {MKL_SETTING: "5"} if "avx2" in flags else {}


def processor_name(cpuinfo: str) -> str:
    """Return the model name of the processor in the text of /proc/cpuinfo, or "unknown processor"."""
    found = re.search(r"^model name\s*:\s*(.+?)\s*$", cpuinfo, re.MULTILINE)
    return found[1] if found else "unknown processor"


def read_cpuinfo() -> str:
    """Return the text of /proc/cpuinfo, or "" where there is none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
