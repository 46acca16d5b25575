"""What is set before Paddle loads: the processor, and SIGTERM."""

from __future__ import annotations

import re
import signal

import pytest

from ernie_gram.distributed.processor import processor_name, processor_settings
from tests.support.commands import python

INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Processor @ 2.10GHz
flags\t\t: fpu sse sse2 avx avx2 avx512f
"""
AMD = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 9654 96-Core Processor
flags\t\t: fpu sse sse2 avx avx2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_bf16
"""
AMD_AVX2 = re.sub(r" avx512\w+", "", AMD)


@pytest.mark.parametrize(
    ("cpuinfo", "environment", "expected"),
    [
        pytest.param(AMD, {}, {"MKL_DEBUG_CPU_TYPE": "7"}, id="amd-avx512"),
        pytest.param(AMD.replace(" avx512vl", ""), {}, {"MKL_DEBUG_CPU_TYPE": "5"}, id="amd-not_all_of_avx512"),
        pytest.param(AMD_AVX2, {}, {"MKL_DEBUG_CPU_TYPE": "5"}, id="amd-avx2"),
        pytest.param(AMD, {"MKL_DEBUG_CPU_TYPE": "4"}, {}, id="amd-set_by_the_user"),
        pytest.param(AMD, {"MKL_DEBUG_CPU_TYPE": ""}, {}, id="amd-switched_off_by_the_user"),
        pytest.param(AMD_AVX2.replace(" avx2", ""), {}, {}, id="amd-without_avx2"),
        pytest.param(INTEL, {}, {}, id="intel"),
        pytest.param(INTEL.replace("Intel(R) Xeon(R)", "vendor_id : AuthenticAMD"), {}, {}, id="amd_in_another_line"),
        pytest.param("", {}, {}, id="unknown"),
    ],
)
def test_amd_processors_get_the_fastest_path_of_mkl_that_they_can_run(
    cpuinfo: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert processor_settings(cpuinfo, environment) == expected


def test_the_processor_has_a_name() -> None:
    assert processor_name(INTEL) == "Intel(R) Xeon(R) Processor @ 2.10GHz"
    assert processor_name(AMD * 2) == "AMD EPYC 9654 96-Core Processor"
    assert processor_name("") == "unknown processor"


def test_a_sigterm_while_paddle_loads_takes_effect_afterwards() -> None:
    code = """if True:
        import os, signal
        from ernie_gram.distributed.loading import delayed_sigterm
        with delayed_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
            print("loaded", flush=True)
        print("not reached", flush=True)
    """
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "loaded\n")
