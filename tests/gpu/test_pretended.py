"""The tests of GPUs on two pretended ones: all of them pass, faults that are put in are found, and logs are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gpu.test_steps import copies_in
from tests.support.commands import python
from tests.support.further_cases import FURTHER
from tests.support.gpu_faults import PARAMETER, WRONG_GRADIENT, environment

NUMBERS = "tests/gpu/test_numbers.py::"
# As Paddle 3.3.1 logs it, with the places of a GPU.
PAGE = """\
I1123 05:16:05.796072  9528 memcpy.cc:120] memory::Copy 4096 Bytes from Place(cpu) to Place(gpu:0)
begin: RunInstructionBase OP id:0 name:pd_op.matmul type:kGpuAsync runs on MainThread
Before: Place(gpu:0) Op(pd_op.matmul), inputs:{a:[dtype=float;place=Place(gpu:0);dim=2, 4;lod={};]}, outputs:{}.
After: Place(gpu:0) Op(pd_op.matmul), inputs:{}, outputs:{}.
begin: RunInstructionBase OP id:1 name:pd_op.reshape type:kGpuAsync runs on MainThread
Before: Place(gpu:0) Op(pd_op.reshape), inputs:{}, outputs:{}.
I1123 05:16:05.811604  9528 memcpy.cc:650] memory::Copy 32 Bytes from Place(gpu:0) to Place(cpu) by stream(0x55d0)
I1123 05:16:05.811604  9528 memcpy.cc:981] memory::Copy 32 Bytes from Place(cpu) to Place(cpu)
begin: RunInstructionBase OP id:2 name:pd_op.memcpy_d2h type:kCpuSync runs on MainThread
Before: Place(gpu:0) Op(pd_op.memcpy_d2h), inputs:{}, outputs:{}.
I1123 05:16:05.811604  9528 memcpy.cc:650] memory::Copy 64 Bytes from Place(gpu:0) to Place(cpu)
begin: RunInstructionBase OP id:3 name:pd_op.erfinv type:kCpuSync runs on MainThread
Before: Place(cpu) Op(pd_op.erfinv), inputs:{}, outputs:{}.
"""


def check(folder: Path, *arguments: str, fault: str = "", gpus: int = 2) -> tuple[int, str]:
    """Run tests of GPUs on pretended ones; return the exit status and what was printed."""
    variables = environment(gpus, fault) | {"GPU_CHECK_QUICK": "1"}
    options = ("-m", "gpu", "-rA", "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}")
    done = python("-m", "pytest", *options, *(arguments or ["tests/gpu"]), timeout=550, **variables)
    return done.returncode, done.stdout + done.stderr


@FURTHER
def test_all_pass_or_are_skipped_with_a_reason(tmp_path: Path) -> None:
    status, printed = check(tmp_path)
    assert status == 0, printed
    assert len(re.findall("^PASSED", printed, re.MULTILINE)) > 15
    skipped = re.findall(r"^SKIPPED .*", printed, re.MULTILINE)
    assert len(skipped) == 1, skipped
    assert "memory_efficient" in skipped[0]
    assert "2 x Pretended GPU" in printed
    assert "tokens/s" in printed


def test_a_wrong_gradient_is_found_and_other_gpus_are_not_needed(tmp_path: Path) -> None:
    chosen = f"{NUMBERS}test_ten_steps_in_float32_are_those_of_a_cpu", "tests/gpu/test_ranks.py"
    status, printed = check(tmp_path, *chosen, fault=WRONG_GRADIENT, gpus=1)
    assert status == 1, printed
    assert f"mean gradient of {PARAMETER}" in printed
    assert len(re.findall("^FAILED", printed, re.MULTILINE)) == 1
    assert "needs 2 GPUs, and Paddle sees 1" in printed


def test_without_a_gpu_the_device_is_not_found() -> None:
    done = python(
        "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", f"{NUMBERS}test_the_device_is_there_and_adds_up_numbers"
    )
    assert done.returncode == 1
    assert "InputError: trainer.device: gpu asked for" in done.stdout


def test_copies_belong_to_the_operation_that_needs_them() -> None:
    places, ways = copies_in(PAGE)
    assert places == {"gpu": 3, "cpu": 1}
    assert ways == {"gpu to cpu": {"reshape": 1, "erfinv": 1}, "cpu to gpu": {"before the first operation": 1}}


@pytest.mark.parametrize("text", ["", "memory::Copy 32 Bytes from Place(cpu) to Place(cpu)\n"])
def test_a_log_without_operations_has_no_places(text: str) -> None:
    assert not copies_in(text)[0]
