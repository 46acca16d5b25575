"""What is set before Paddle loads: the processor, and SIGTERM; how many processes meet; and the end of a rank."""

from __future__ import annotations

import re
import signal

import pytest

from ernie_gram import paddle_private
from ernie_gram.distributed import world
from ernie_gram.distributed.processor import no_bfloat16, processor_settings
from reader.errors import InputError
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
        pytest.param(AMD, {"MKL_DEBUG_CPU_TYPE": ""}, {}, id="amd-switched_off_by_the_user"),
        pytest.param(AMD_AVX2.replace(" avx2", ""), {}, {}, id="amd-without_avx2"),
        pytest.param(INTEL.replace("Intel(R) Xeon(R)", "vendor_id : AuthenticAMD"), {}, {}, id="amd_in_another_line"),
        pytest.param("", {}, {}, id="unknown"),
    ],
)
def test_amd_processors_get_the_fastest_path_of_mkl_that_they_can_run(
    cpuinfo: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert processor_settings(cpuinfo, environment) == expected


AMX = re.sub(r"avx512f", "avx512f avx512dq avx512cd avx512bw avx512vl amx_bf16", INTEL)
BF16 = AMX.replace("amx_bf16", "avx512_bf16")


@pytest.mark.parametrize(
    ("cpuinfo", "reason"),
    [
        pytest.param(AMD, "", id="amd-avx512_bf16"),
        pytest.param(AMX, "", id="intel-amx"),
        pytest.param(BF16, "Intel(R) Xeon(R) Pro", id="intel-avx512_bf16"),
        pytest.param(INTEL, "Intel(R) Xeon(R) Processor @ 2.10GHz", id="intel"),
        pytest.param(AMD_AVX2, "AMD EPYC 9654 96-Core Processor", id="amd-avx2"),
        pytest.param("", "unknown processor", id="unknown"),
    ],
)
def test_products_in_bfloat16_are_refused_where_they_would_be_slower(cpuinfo: str, reason: str) -> None:
    found = no_bfloat16(cpuinfo)
    assert reason in found
    assert bool(reason) == bool(found)


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


class Store(dict[str, str]):
    """The store in which processes find each other; what they write is also there before."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def get(self, key: str) -> str:  # type: ignore[override]
        return super().get(key, "2")


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_machines_with_different_numbers_of_processes_are_refused(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise some ranks would wait for ever, and in others gloo would fail with a message about addresses."""
    monkeypatch.setattr(paddle_private, "first_store", Store)
    monkeypatch.setattr(world, "RANK", rank)
    monkeypatch.setattr(world, "WORLD_SIZE", 2)
    world._meet()
    monkeypatch.setattr(world, "WORLD_SIZE", 4)
    with pytest.raises(InputError, match=r"^NPROC: 4 processes .* 2 "):
        world._meet()


def test_processes_that_do_not_all_come_end_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paddle 3.3.1 raises this after a quarter of an hour."""

    def wait() -> None:
        raise SystemError("(Fatal) _timeout:900 elapsed:901 (elapsed > _timeout)=1")

    monkeypatch.setattr(paddle_private, "first_store", wait)
    monkeypatch.setattr(world, "WORLD_SIZE", 2)
    monkeypatch.setattr(world, "_connect_first_group", pytest.fail)
    monkeypatch.setenv("PADDLE_MASTER", "node7:4567")
    with pytest.raises(InputError, match=r"node7:4567.*--master.*NPROC"):
        world.start_world("cpu")
