"""Which device a process uses, and what is refused before anything is created: no GPU, too few, and one too old."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.distributed import device as our_device
from ernie_gram.distributed.device import check_device, gpu_number, is_gpu_package, visible_gpus
from reader.errors import InputError
from tests.support.commands import python
from tests.support.pretended_gpu import pretend


def test_the_package_for_cpus_is_recognised_without_loading_it() -> None:
    code = "import sys; from ernie_gram.distributed.device import *; print(visible_gpus(), 'paddle' in sys.modules)"
    assert python("-c", code).stdout == "0 False\n"


def test_the_package_for_gpus_is_recognised_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_gpu_package()
    (tmp_path / "paddlepaddle_gpu-3.3.1.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert is_gpu_package()


def test_what_two_gpus_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(2, (7, 5), monkeypatch.setattr)
    assert visible_gpus() == 2
    assert check_device("auto", "float16", 2) is True
    assert check_device("gpu", "float32", 1) is True
    for device in ("gpu", "auto"):
        with pytest.raises(InputError, match=r"^NPROC: "):
            check_device(device, "float32", 3)
    # More processes than GPUs, and a precision that the GPUs lack: neither matters on the CPU.
    monkeypatch.setattr(our_device, "no_bfloat16", lambda: "")
    assert check_device("cpu", "bfloat16", 9) is False
    monkeypatch.setenv("FLAGS_selected_gpus", "1,0")
    assert gpu_number() == 1
    assert check_device("auto") is True
    pretend(2, (8, 0), monkeypatch.setattr)
    assert check_device("auto", "bfloat16") is True


def test_a_package_for_gpus_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a CPU that has no bfloat16, which says why."""
    monkeypatch.setattr(our_device, "no_bfloat16", lambda: "X has no AMX")
    assert check_device("cpu", "float32") is False
    with pytest.raises(InputError, match=r"^--precision: .*X has no AMX"):
        check_device("cpu", "bfloat16", precision_key="--precision")
    pretend(0, replace=monkeypatch.setattr)
    assert check_device("auto", "float32", 9) is False
    with pytest.raises(InputError, match=r"^--device: .* sees none; use cpu"):
        check_device("gpu", key="--device")
    with pytest.raises(InputError, match=r"^optimizer\.precision: "):
        check_device("auto", "float16")


def test_in_static_mode_the_device_is_that_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    import paddle

    from ernie_gram.graph import static_mode
    from ernie_gram.paddle_private import RUN_IN_ORDER

    monkeypatch.setattr(our_device, "_place", None)
    flags = paddle.get_flags(list(RUN_IN_ORDER))
    with static_mode(paddle.static.Scope()):
        assert our_device.on_cpu()
        assert paddle.get_flags(list(flags)) == RUN_IN_ORDER
    assert paddle.get_flags(list(flags)) == flags
