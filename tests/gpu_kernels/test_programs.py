"""All programs have kernels for GPUs, and copy nothing between GPU and host but what is listed with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ernie_gram.gpu_checks.programs import PRECISIONS, RUNGS, Case, other_cases, pretraining_cases
from tasks.kernels import HEADS, task_cases
from tests.gpu_kernels.compare import faults
from tests.gpu_kernels.placement import simulate
from tests.gpu_kernels.table import read_table
from tests.support.further_cases import only


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
    # In every mode one program that trains and one that draws the parameters; with accumulation three of each.
    assert len(check(pretraining_cases(rung, precision, gpu))) == 2 * (3 + 3) + 1


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
