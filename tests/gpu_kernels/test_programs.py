"""All programs have kernels for GPUs, and copy nothing between GPU and host but what is listed with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from ernie_gram.gpu_checks.programs import PRECISIONS, RUNGS, Case, other_cases, pretraining_cases
from tasks.kernels import HEADS, task_cases
from tests.gpu_kernels.placement import Copy, Placement, simulate
from tests.gpu_kernels.table import read_table
from tests.support.further_cases import only

# Copies between GPU and host that a step may make, with the largest number of each, and the reason; those from the GPU,
# for which the host waits, only in the cases whose names have one of these words.
FROM_GPU = {
    # AdamW reads on the host whether an update is skipped (UpdateGuard). The host reads the values of such a step too.
    "memcpy(x) from reshape": (1, ("float16, ",)),
    # How many rows of a gradient are used is the size of the tensor that is exchanged (row_exchange.sum_gradients).
    "nonzero(its number of rows) from nonzero": (1, ("two ranks", "accumulation: update")),
}
# Numbers of rows and of bytes follow from shapes, which the host knows. Nothing waits for a copy to the GPU.
TO_GPU = {
    # The number of rows of a term, by which its loss is divided; there are four terms at most.
    "divide(y) from slice": 4,
    "divide_grad(y) from slice": 4,
    "stack(x) from cast": 4,
    "concat(x) from flatten": 1,
    # The number of bytes that a rank sends.
    "add_n(inputs) from scale": 1,
}


def faults(case: Case, found: Placement) -> list[str]:
    """Return what a program should not do, one line each."""
    lines = [f"no kernel for GPUs: {kernel} of {dtype}" for kernel, dtype in sorted(found.fallbacks)]
    if case.is_step:
        accepted = {
            copy: count for copy, (count, words) in FROM_GPU.items() if any(word in f", {case.name}" for word in words)
        }
        lines += [f"copied from the GPU: {line}" for line in _beyond(found.to_host, accepted)]
        lines += [f"copied to the GPU: {line}" for line in _beyond(found.to_gpu, TO_GPU)]
    return [f"{case.name}: {line}" for line in lines]


def _beyond(copies: Iterable[Copy], accepted: Mapping[str, int]) -> Iterator[str]:
    for copy, count in Counter(map(str, copies)).items():
        if count > accepted.get(copy, 0):
            yield f"{count} x {copy}"


def check(cases: Iterable[Case]) -> list[str]:
    """Assert that programs have no faults; return their names."""
    table, names, found = read_table(), [], []
    for case in cases:
        placement = simulate(case.program, table)
        assert placement.keys or not case.is_step, case.name
        found += faults(case, placement)
        names.append(case.name)
    assert found == []
    assert len(set(names)) == len(names)
    return names


@pytest.mark.parametrize("precision", PRECISIONS)
# The last rung has the parts of all, and "contiguous" none of them.
@pytest.mark.parametrize("rung", only(["contiguous", "full"], RUNGS))
def test_programs_of_a_rung_have_kernels_and_copy_nothing(rung: str, precision: Any, gpu: Any) -> None:
    # In every mode one program that trains and one that draws the parameters; with accumulation two of each.
    assert len(check(pretraining_cases(rung, precision, gpu))) == 2 * (3 + 2) + 1


@pytest.mark.parametrize("precision", PRECISIONS)
def test_programs_of_tasks_have_kernels_and_copy_nothing(precision: Any, gpu: Any) -> None:
    assert len(check(case for head in HEADS for case in task_cases(head, precision, gpu))) == 3 * len(HEADS)


def test_programs_of_exports_have_kernels_and_copy_nothing(gpu: Any) -> None:
    assert len(check(other_cases(RUNGS))) == len(RUNGS) + 4


def test_a_row_that_is_missing_in_the_table_is_named(gpu: Any) -> None:
    case = next(pretraining_cases("explicit", "float16", gpu))
    table = read_table()
    row = table["softmax"]
    table["softmax"] = row._replace(dtypes=row.dtypes - {"float16"})
    assert f"{case.name}: no kernel for GPUs: softmax of float16" in faults(case, simulate(case.program, table))
