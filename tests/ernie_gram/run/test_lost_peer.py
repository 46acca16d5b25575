"""Which errors of an exchange mean that another process is gone; all others are this process's own."""

from __future__ import annotations

import re

import pytest

from ernie_gram.run.lost_peer import LOST_PEER_STATUS, lost_peer_error


@pytest.mark.parametrize(
    "message",
    [
        "std::exception",
        "(External) NCCL error(6), remote process exited or there was a network error.",
        "(External) NCCL error(2), unhandled system error (run with NCCL_DEBUG=INFO for details).",
        "[gloo/transport/tcp/pair.cc] Connection closed by peer",
    ],
)
def test_a_lost_connection_ends_the_process_with_its_own_status(
    message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, lost_peer_error(2):
        raise OSError(message)
    assert ended.value.code == LOST_PEER_STATUS
    assert message in capsys.readouterr().err
    with pytest.raises(OSError, match=re.escape(message)), lost_peer_error(1):
        raise OSError(message)


@pytest.mark.parametrize(
    "message",
    [
        "(External) NCCL error(1), unhandled cuda error.",
        "(External) NCCL error(5), invalid usage.",
        "(PreconditionNotMet) The third-party dynamic library (libnccl.so) is not configured correctly.",
        "(External) CUDA error(719), unspecified launch failure.",
    ],
)
def test_errors_with_their_cause_in_this_process_are_raised(message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)), lost_peer_error(2):
        raise RuntimeError(message)
