"""The environment variables with which Paddle is loaded."""

from __future__ import annotations

import os

import pytest

from ernie_gram.distributed.loading import THREADS, loading_settings


def test_a_process_has_a_thread_for_each_core_that_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8})
    assert loading_settings()[THREADS] == "3"
    monkeypatch.setenv(THREADS, "")
    assert loading_settings()[THREADS] == "3"
    monkeypatch.setenv(THREADS, "7")
    assert THREADS not in loading_settings()
