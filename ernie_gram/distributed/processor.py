"""The processor of this machine: settings for Paddle's mathematical library, and the precisions of products."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

MKL_SETTING = "MKL_DEBUG_CPU_TYPE"
_MKL = "libmklml_intel.so"
_SKYLAKE_AVX512 = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})


def processor_settings(cpuinfo: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables to set for a processor, unless they are set, from the text of /proc/cpuinfo.

    Paddle's package contains MKL of 2019, which takes its slowest path on AMD processors. MKL_DEBUG_CPU_TYPE selects
    another one: 7 is the path for AVX-512 (Intel's Skylake), 5 the path for AVX2. One thread of a Zen 5 reaches 175
    GFLOP/s in matrix products with 7, 100 with 5, and 30 without. On Intel processors MKL itself selects the fastest.
    """
    if _field("vendor_id", cpuinfo) != "AuthenticAMD" or MKL_SETTING in environment:
        return {}
    flags = set(_field("flags", cpuinfo).split())
    if flags >= _SKYLAKE_AVX512:
        return {MKL_SETTING: "7"}
    return {MKL_SETTING: "5"} if "avx2" in flags else {}


@cache
def library_of_paddle(name: str) -> ctypes.CDLL:
    """Return a library of Paddle, which must be loaded, by its file name. Raises OSError if it brings none."""
    return ctypes.CDLL(str(Path(sys.modules["paddle"].__file__ or "").parent / "libs" / name))


def mkl() -> ctypes.CDLL:
    """Return MKL as Paddle brings it; see `library_of_paddle`."""
    return library_of_paddle(_MKL)


def read_mkl_setting() -> int | None:
    """Let MKL read MKL_SETTING now, and never again; return the path that it takes, or None if Paddle brings no MKL.

    It asks this function of its own at the first product or here, and keeps the answer.
    """
    with suppress(OSError, AttributeError):
        return int(mkl().mkl_serv_cpu_detect())
    return None


def processor_name(cpuinfo: str) -> str:
    """Return the model name of the processor in the text of /proc/cpuinfo, or "unknown processor"."""
    return _field("model name", cpuinfo) or "unknown processor"


def no_bfloat16(cpuinfo: str | None = None) -> str:
    """Return why products of bfloat16 factors are slower than float32 on a processor, or not possible; else "".

    Args:
        cpuinfo: the text of /proc/cpuinfo; that of this machine for None.
    """
    cpuinfo = read_cpuinfo() if cpuinfo is None else cpuinfo
    flags = set(_field("flags", cpuinfo).split())
    if not flags & {"avx512_bf16", "amx_bf16"}:
        return f"{processor_name(cpuinfo)} has neither AVX512-BF16 nor AMX"
    if _field("vendor_id", cpuinfo) == "GenuineIntel" and "amx_bf16" not in flags:
        # Measured on a Xeon of the fifth generation, on a virtual machine that hides AMX: half of the speed of float32.
        return f"AVX512-BF16 without AMX is slower on Intel processors, and {processor_name(cpuinfo)} has no AMX"
    return ""


def _field(name: str, cpuinfo: str) -> str:
    """Return the first value of a field of /proc/cpuinfo, or ""."""
    found = re.search(rf"^{name}\s*:[ \t]*(.*?)\s*$", cpuinfo, re.MULTILINE)
    return found[1] if found else ""


def read_cpuinfo() -> str:
    """Return the text of /proc/cpuinfo, or "" where there is none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
