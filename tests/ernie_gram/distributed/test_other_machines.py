"""Launchers on several machines tell each other that they failed, and notice one that is gone."""

from __future__ import annotations

import threading
import time

import pytest

from ernie_gram.distributed import other_machines
from ernie_gram.distributed.other_machines import OtherMachines


class FakeStore:
    """A store in memory that can be out of reach."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.is_reached = True

    def put(self, key: str, value: str) -> bool:
        if self.is_reached:
            self.values[key] = value
        return self.is_reached

    def get_prefix(self, key: str) -> dict[str, str] | str:
        found = {name: value for name, value in self.values.items() if name.startswith(key)}
        return found if self.is_reached else ""


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[FakeStore, OtherMachines, OtherMachines]:
    """Two machines, each of which has found the other."""
    for name, value in (("POLL", 0.02), ("SILENT", 2.0), ("LINGER", 0.06)):
        monkeypatch.setattr(other_machines, f"{name}_SECONDS", value)
    store = FakeStore()
    machines = OtherMachines(store, "job", "0-a"), OtherMachines(store, "job", "1-b")
    time.sleep(0.1)
    assert [machine.failure for machine in machines] == ["", ""]
    return store, *machines


def wait_for_failure(machine: OtherMachines) -> str:
    deadline = time.monotonic() + 10
    while not machine.failure and time.monotonic() < deadline:
        time.sleep(0.01)
    return machine.failure


def test_a_failure_is_reported_to_the_other_machine(pair: tuple[FakeStore, OtherMachines, OtherMachines]) -> None:
    _, first, second = pair
    second.fail("rank 3 was killed by SIGKILL")
    second.fail("another reason")
    assert wait_for_failure(first) == "machine 1-b: rank 3 was killed by SIGKILL"
    threads = [threading.Thread(target=machine.end) for machine in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert second.failure == ""


def test_a_machine_that_has_finished_is_no_failure(pair: tuple[FakeStore, OtherMachines, OtherMachines]) -> None:
    store, first, second = pair
    second.end()
    time.sleep(2.5)
    assert first.failure == ""
    first.end()
    store.is_reached = False


def test_a_machine_without_a_sign_of_life_is_taken_for_dead(
    pair: tuple[FakeStore, OtherMachines, OtherMachines],
) -> None:
    _, first, second = pair
    second._ended.set()  # as if its launcher had been killed
    assert wait_for_failure(first) == "machine 1-b: no sign of life from its launcher for 2 s"
    first.end()


def test_a_store_out_of_reach_ends_the_job(pair: tuple[FakeStore, OtherMachines, OtherMachines]) -> None:
    store, first, second = pair
    store.is_reached = False
    assert wait_for_failure(second) == "the launcher on the machine of --master has been out of reach for 2 s"
    for machine in (first, second):
        machine.end()
