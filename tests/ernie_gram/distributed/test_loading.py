"""The environment variables with which Paddle is loaded."""

from __future__ import annotations

import os

import pytest

from ernie_gram.distributed.loading import THREADS, loading_settings
from ernie_gram.distributed.processor import MKL_SETTING
from tests.support.commands import python


def test_a_process_has_a_thread_for_each_core_that_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8})
    assert loading_settings()[THREADS] == "3"
    monkeypatch.setenv(THREADS, "")
    assert loading_settings()[THREADS] == "3"
    monkeypatch.setenv(THREADS, "7")
    assert THREADS not in loading_settings()


# Paths that MKL does not choose by itself on a processor with AVX2; see processor_settings.
PATH = """if True:
    from ernie_gram.distributed import loading
    from ernie_gram.distributed.processor import read_mkl_setting

    loading.processor_settings = lambda *_: {"MKL_DEBUG_CPU_TYPE": "4"}
    import paddle
    paddle = loading.import_paddle()
    paddle.matmul(paddle.ones([2, 2]), paddle.ones([2, 2]))
    print(read_mkl_setting())
"""


def test_the_path_of_mkl_is_chosen_although_paddle_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MKL_SETTING, raising=False)
    done = python("-W", "ignore", "-c", PATH)
    if done.stdout == "None\n":
        pytest.skip("Paddle brings no MKL")
    assert done.stdout == "4\n", done.stderr
