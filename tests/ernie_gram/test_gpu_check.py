"""`python -m ernie_gram.gpu_check` on pretended GPUs: all of it, and with faults put in from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ernie_gram.gpu_checks.check import NAMES
from tests.support.commands import call, python
from tests.support.further_cases import FURTHER
from tests.support.gpu_faults import HANG, PARAMETER, WRONG_GRADIENT, environment

SKIPPED_HERE = {"attention": "model.attention: this Paddle has no kernel for memory_efficient; use plain"}
SEVERAL_GPUS = ["two_gpus", "row_exchange", "killed_rank"]
# Of each check; more than any needs, because other tests run at the same time.
PATIENCE = ("--limit", "900")


class Checked(NamedTuple):
    """What the command prints and writes: the table as name -> (status, reason)."""

    status: int
    table: dict[str, tuple[str, str]]
    console: str
    document: dict[str, Any]


def check(folder: Path, *arguments: str, **variables: str) -> Checked:
    """Run the command in a new process; its own folder for files is in `folder`."""
    output = folder / "gpu_check.json"
    command = ["-m", "ernie_gram.gpu_check", "--quick", "--output", str(output), *arguments]
    done = python(*command, timeout=500, TMPDIR=str(folder), **variables)
    assert done.stderr == ""
    words = (
        line.split(maxsplit=4) for line in done.stdout.splitlines() if line.startswith(("PASS", "FAIL", "SKIPPED"))
    )
    table = {name: (status, reason) for status, name, _, _, reason in words}
    return Checked(done.returncode, table, done.stdout, json.loads(output.read_text()))


@FURTHER
def test_every_check_passes_or_is_skipped_with_a_reason(tmp_path: Path) -> None:
    checked = check(tmp_path, *PATIENCE, **environment(gpus=2))
    assert list(checked.table) == list(NAMES)
    assert {name: reason for name, (status, reason) in checked.table.items() if status == "SKIPPED"} == SKIPPED_HERE
    assert [name for name, (status, _) in checked.table.items() if status == "FAIL"] == []
    assert checked.status == 0
    assert "2 x Pretended GPU, capability 8.0, 80 GiB" in checked.table["device"][1]
    assert "SIGKILL" in checked.table["killed_rank"][1]
    # The document has what the table has, and numbers.
    document = checked.document
    assert [(each["name"], each["status"], each["reason"]) for each in document["checks"]] == [
        (name, *cells) for name, cells in checked.table.items()
    ]
    numbers = {each["name"]: each["numbers"] for each in document["checks"]}
    assert numbers["device"]["paddle"].startswith("3.")
    assert numbers["kernels"]["programs"] > 50
    assert numbers["kernels"]["precisions"] == ["float32", "bfloat16", "float16"]
    assert numbers["copies"]["full, float32"]["places"]["cpu"] > 500
    # The same kernels compute both, but biases are added in other ways; and 16 bits are not 32.
    assert 0 < numbers["float32"]["gradients"] < 1e-5 < numbers["bfloat16"]["gradients"]
    assert 0 < numbers["overflow"]["skipped"] < numbers["overflow"]["steps"]
    assert numbers["memory"]["allocated"] > 0
    assert numbers["speed"]["host_ms"] > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "gpu_check.json"]


@pytest.mark.parametrize(
    ("fault", "name", "reason"),
    [
        (WRONG_GRADIENT, "float32", f"the mean gradient of {PARAMETER} differs by 1.0e-02, more than 0.0001"),
        pytest.param(HANG, "two_gpus", "rank 1 hangs: no progress for 20 s (trainer.hang_seconds)", marks=FURTHER),
    ],
)
def test_a_fault_fails_with_its_reason(tmp_path: Path, fault: str, name: str, reason: str) -> None:
    limit = ("--limit", "80") if fault == HANG else PATIENCE
    checked = check(tmp_path, "--only", name, *limit, **environment(2, fault))
    assert checked.table.keys() == {name}
    status, found = checked.table[name]
    assert (status, found[: len(reason)]) == ("FAIL", reason)
    assert checked.status == 1
    assert "log" in checked.document["checks"][0]["numbers"]
    kept = checked.console.splitlines()[-1].rpartition(": ")[2]
    assert (Path(kept) / f"{name}.log").is_file()


def test_checks_of_several_gpus_are_skipped_on_a_machine_with_one(tmp_path: Path) -> None:
    checked = check(tmp_path, "--only", ",".join(SEVERAL_GPUS), *PATIENCE, **environment(gpus=1))
    assert checked.table == dict.fromkeys(SEVERAL_GPUS, ("SKIPPED", "needs 2 GPUs, and Paddle sees 1"))
    assert checked.status == 0


def test_without_a_gpu_the_first_check_fails_and_the_others_are_skipped(tmp_path: Path) -> None:
    checked = check(tmp_path, *PATIENCE)
    (first, cells), *others = checked.table.items()
    assert first == "device"
    assert cells[0] == "FAIL"
    assert cells[1].startswith("trainer.device: gpu asked for, but ")
    assert {cells for _, cells in others} == {("SKIPPED", "see device")}
    assert checked.status == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "device,speeed"], "error: --only: no check 'speeed'; the checks are device, kernels, copies, "),
        (["--limit", "-1"], "error: --limit: -1 must be positive, or 0 for the limit of each check"),
        (["--output", "/no/folder/x.json"], "error: /no/folder/x.json: there is no folder /no"),
        (["--output", __file__], f"error: {__file__}: already exists; choose another --output or pass --overwrite"),
    ],
)
def test_invalid_arguments_are_refused(arguments: list[str], message: str) -> None:
    from ernie_gram.gpu_check import main

    done = call(main, *arguments)
    assert done.returncode != 0
    assert done.stderr.startswith(message)
