"""What Paddle prints and logs about a program is read correctly."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks import kernels
from ernie_gram.gpu_checks.check import Failed, Setup
from ernie_gram.gpu_checks.copies import StepLog
from ernie_gram.gpu_checks.kernels import STDERR, STDOUT, Kernel, kernels_in, kernels_of, missing_kernels, written_to
from tasks.kernels import HEADS
from tests.support.gpu_faults import register_kernels
from tests.support.static_programs import fresh_scope

# As Paddle 3.3.1 logs it, with the places of a GPU.
LOG = """\
I1123 05:16:05.796072  9528 memcpy.cc:120] memory::Copy 4096 Bytes from Place(cpu) to Place(gpu:0)
I1123 05:16:05.796082  9528 pir_interpreter.cc:1947]
begin: RunInstructionBase OP id:0 name:pd_op.matmul type:kGpuAsync runs on MainThread
Before: Place(gpu:0) Op(pd_op.matmul), inputs:{a:[dtype=float;place=Place(gpu:0);dim=2, 4;lod={};]}, outputs:{}.
I1123 05:16:05.796125  9528 pir_interpreter.cc:1988]
done: RunInstructionBase OP id:0 name:pd_op.matmul type:kGpuAsync runs on MainThread
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
begin: RunInstructionBase OP id:4 name:pd_op.add_n type:kGpuAsync runs on MainThread
Before: Place(gpu:0) Op(pd_op.add_n), inputs:{}, outputs:{}.
I1123 05:16:05.811604  9528 memcpy.cc:700] memory::Copy 24 Bytes from Place(cpu) to Place(gpu:0) by stream(0x55d0)
begin: RunInstructionBase OP id:5 name:pd_op.multiply_ type:kGpuAsync runs on MainThread
I1123 05:16:05.811604  9528 memcpy.cc:700] memory::Copy 24 Bytes from Place(cpu) to Place(gpu:0)
begin: RunInstructionBase OP id:6 name:pd_op.memcpy type:kCpuSync runs on MainThread
Before: Place(gpu:0) Op(pd_op.memcpy), inputs:{}, outputs:{}.
I1123 05:16:05.811604  9528 memcpy.cc:650] memory::Copy 1 Bytes from Place(gpu:0) to Place(cpu)
"""


def test_copies_belong_to_the_operation_that_needs_them() -> None:
    log = StepLog.of(LOG)
    assert log.places == {"gpu": 5, "cpu": 1}
    assert log.from_device == {"reshape": 1, "erfinv": 1, "memcpy": 1}
    assert log.to_device == {"before the first operation": 1, "add_n": 1, "multiply_": 1}
    assert log.unexpected() == [
        "reshape: 1 from the device",
        "erfinv: 1 from the device",
        "multiply_: 1 to the device",
    ]


def test_another_format_is_an_error() -> None:
    with pytest.raises(ValueError, match="logs no operations"):
        StepLog.of("I1123 memory::Copy 32 Bytes from Place(cpu) to Place(cpu)\n")
    with pytest.raises(ValueError, match="prints no kernels"):
        kernels_in("IR after lowering = {\n}")


def test_the_kernels_of_a_program_are_those_that_paddle_chooses() -> None:
    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = paddle.static.data("x", [None, 4], "float32")
            table = paddle.static.create_parameter([4, 3], "float32", name="table")
            total = paddle.nn.functional.gelu(x @ table).astype("bfloat16").sum()
        found = kernels_of(main, executor.place)
        wanted = {Kernel("matmul", "float32"), Kernel("gelu", "float32"), Kernel("cast", "float32")}
        assert wanted | {Kernel("sum", "bfloat16")} <= found
        assert {kernel.name for kernel in found} <= {"matmul", "gelu", "cast", "sum", "full_int_array", "shadow_feed"}
        # The program is not changed: it runs as before.
        executor.run(startup)
        assert np.isfinite(executor.run(main, feed={"x": np.ones((2, 4), np.float32)}, fetch_list=[total])[0]).all()


def test_every_line_with_a_kernel_is_read() -> None:
    with fresh_scope() as executor:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            paddle.nn.functional.softmax(paddle.static.data("x", [None, 4], "float32"))
        paddle.set_flags({"FLAGS_print_ir": True})
        try:
            feed = {"x": np.ones((2, 4), np.float32)}
            text = written_to(STDOUT, lambda: executor.run(main, feed=feed, fetch_list=[]))
        finally:
            paddle.set_flags({"FLAGS_print_ir": False})
    after = text.partition("IR after lowering")[2]
    assert len(kernels._KERNEL.findall(after)) == after.count("kernel_key") > 0


def test_what_is_written_to_a_descriptor_is_returned_and_restored(capfd: pytest.CaptureFixture[str]) -> None:
    import os

    def fail() -> None:
        os.write(STDERR, b"inside")
        raise KeyError

    assert written_to(STDERR, lambda: os.write(STDERR, b"one line\n")) == "one line\n"
    with pytest.raises(KeyError):
        written_to(STDERR, fail)
    os.write(STDERR, b"outside")
    assert capfd.readouterr().err == "outside"


def test_a_kernel_needs_an_entry_of_its_type_for_gpus() -> None:
    registered = {
        "gelu": ["(CPU, Undefined(AnyLayout), float16)", "(GPU, Undefined(AnyLayout), float32)"],
        "softmax": ["(GPUDNN, Undefined(AnyLayout), float32)"],
        "full_int_array": ["(CPU, Undefined(AnyLayout), int64)"],
    }
    good = [Kernel("gelu", "float32"), Kernel("softmax", "float32"), Kernel("full_int_array", "int64")]
    bad = [Kernel("gelu", "float16"), Kernel("erfinv", "float32")]
    found = missing_kernels({"a": good, "b": [*good, *bad], "c": bad[:1]}, registered)
    assert found == {bad[0]: ["b", "c"], bad[1]: ["b"]}


def test_a_kernel_that_is_missing_fails_with_the_name_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a package for GPUs, with the programs of one objective and of one head in place of all."""
    # No kernels for CPUs in the programs.
    monkeypatch.setenv("ERNIE_GRAM_ONEDNN", "0")
    world = start_world("cpu")
    monkeypatch.setattr(kernels, "precisions", lambda: ("float32",))
    monkeypatch.setattr(kernels, "start_world", lambda device: world)
    monkeypatch.setattr(kernels, "RUNGS", ("contiguous",))
    monkeypatch.setattr(kernels, "other_cases", lambda rungs: [])
    monkeypatch.setattr("tasks.kernels.HEADS", {"regression": HEADS["regression"]})
    setup = Setup(tmp_path, quick=False, limit=0)
    register_kernels(replace=monkeypatch.setattr)
    kernels.kernels(setup)
    num_programs = setup.numbers["programs"]
    register_kernels(["gelu_grad"], monkeypatch.setattr)
    expected = "no GPU kernel: gelu_grad float32 (contiguous, float32, plain: training)"
    with pytest.raises(Failed, match=f"^{re.escape(expected)}$"):
        kernels.kernels(setup)
    # One pre-trains, one evaluates, one fine-tunes on a task, and one predicts.
    assert setup.numbers["programs"] == num_programs == 4
