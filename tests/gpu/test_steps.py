"""What a training step copies between GPU and host, and how long it takes."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest

from tests.benchmarks.pretrain_step import MODELS, measure_one
from tests.gpu.runs import QUICK
from tests.gpu.steps import STEP
from tests.gpu.test_numbers import require_precision
from tests.support.commands import shell

pytestmark = pytest.mark.gpu

# Makes Paddle name each operation before and after it runs, and each copy of memory with its two places.
LOG = {"GLOG_minloglevel": "0", "GLOG_vmodule": "memcpy=4,pir_interpreter=2"}
# Operations that may copy, found in Paddle's sources. memcpy: whether an update is skipped, which AdamW's kernels read
# on the host.
FROM_DEVICE = {"memcpy"}
FEEDING = "before the first operation"
TO_DEVICE = {
    # The batch.
    *(FEEDING, "shadow_feed"),
    # Addresses of many operands; the host does not wait.
    *("concat", "stack", "add_n", "split", "unbind", "check_finite_and_unscale"),
    # The number of rows of a term, which follows from shapes.
    *("divide", "divide_grad"),
}
_BEGIN = re.compile(r"^begin: RunInstructionBase OP id:\d+ name:(?:\w+\.)?(\w+)")
_PLACE = re.compile(r"^Before: Place\((\w+)")
_COPY = re.compile(r"memory::Copy \d+ Bytes from Place\((\w+)[^)]*\) to Place\((\w+)[^)]*\)")
_TRANSFERS = ("memcpy_d2h", "memcpy_h2d")


def copies_in(text: str) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return in Paddle's log the places of operations, and the operations that copy "gpu to cpu" and "cpu to gpu".

    If Paddle has inserted a copy before an operation, it counts as this operation's: one without a kernel for GPUs
    runs on the host, with such copies.
    """
    places, ways = Counter[str](), {"gpu to cpu": Counter[str](), "cpu to gpu": Counter[str]()}
    operation, inserted = FEEDING, Counter[str]()
    for line in text.splitlines():
        if begins := _BEGIN.search(line):
            operation = begins[1]
        elif ran := _PLACE.search(line):
            places[ran[1]] += 1
            if operation not in _TRANSFERS:
                for way, count in inserted.items():
                    ways[way][operation] += count
                inserted.clear()
        elif (copy := _COPY.search(line)) and (way := f"{copy[1]} to {copy[2]}") in ways:
            if operation in _TRANSFERS:
                inserted[way] += 1
            else:
                ways[way][operation] += 1
    return places, ways


@pytest.mark.parametrize(
    ("precision", "rung"),
    [("float32", "full"), ("float32", "full+recompute"), ("bfloat16", "full"), ("float16", "full")],
)
def test_a_step_copies_nothing_but_what_is_listed(precision: str, rung: str) -> None:
    require_precision(precision)
    done = shell(sys.executable, "-m", "tests.gpu.steps", precision, rung, **LOG)
    assert done.returncode == 0, done.stderr[-2000:]
    places, ways = copies_in(done.stderr.partition(STEP)[2])
    print(f"{precision}: {dict(places)}")
    assert places.total() > 100, "Paddle logs no operations with GLOG_vmodule"
    # "add_n_" works in place.
    for way, listed in (("gpu to cpu", FROM_DEVICE), ("cpu to gpu", TO_DEVICE)):
        assert {name.removesuffix("_") for name in ways[way]} <= listed, way


@pytest.mark.parametrize("precision", ["float32", "16 bits"])
def test_the_speed_of_a_step_of_the_base_model_is_printed(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 is without TF32 here."""
    import paddle

    if precision != "float32":
        precision = "bfloat16" if paddle.device.cuda.get_device_capability() >= (8, 0) else "float16"
    if QUICK:
        monkeypatch.setattr("ernie_gram.distributed.measure.PRODUCTS_ON_GPU", 2)
    name = "tiny" if QUICK else "base_en_16g"
    with paddle.static.scope_guard(paddle.static.Scope()):
        found = measure_one(name, "full", precision, 5, "gpu")
    _, _, _, sequences, length, *_ = MODELS[name]
    share = found["flops"] / found["seconds"] / found["product"]
    print(
        f"{precision}: {1e3 * found['seconds']:.0f} ms, {sequences * length / found['seconds']:,.0f} tokens/s, "
        f"{share:.0%} of {found['product'] / 1e12:.1f} TFLOP/s, {found['allocated']:.1f} GB"
    )
