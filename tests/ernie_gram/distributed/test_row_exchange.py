"""The exchange of used rows gives the dense sum, on every rank, in two and in four processes.

Four processes are started only if the variable FOUR_PROCESSES is set: on two cores they take 40 seconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ernie_gram.distributed import collectives
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.resources import prediction
from tests.support.commands import in_ranks, python
from tests.support.row_exchange_ranks import BUCKET_NUMBERS, CONFIG, NGRAMS, STEPS, WIDTH, gradients_of
from tests.support.small_model import TOKENS


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.needs("FOUR_PROCESSES"))])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, np.ndarray]]:
    """What each rank of tests/support/row_exchange_ranks.py writes. Starting the processes takes most of the time."""
    ranks, folder = request.param, tmp_path_factory.mktemp("ranks")
    python(*in_ranks(folder / "log", "tests/support/row_exchange_ranks.py", ranks), str(folder)).ok()
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(ranks)]


def of(arrays: dict[str, np.ndarray], way: str) -> dict[str, np.ndarray]:
    """Return the arrays of "row", "dense", "row sum" or "dense sum" by name."""
    return {key.split("/", 1)[1]: value for key, value in arrays.items() if key.startswith(f"{way}/")}


def test_all_ranks_have_the_same_bits(written: list[dict[str, np.ndarray]]) -> None:
    for other in written[1:]:
        assert all(np.array_equal(other[name], written[0][name], equal_nan=True) for name in written[0])


@pytest.mark.parametrize(("way", "tolerance"), [("", 2e-4), (" sum", 1e-6)])
def test_results_are_those_of_the_dense_exchange(
    written: list[dict[str, np.ndarray]], way: str, tolerance: float
) -> None:
    """20 steps of the full objective, or single sums. The same bits with two ranks; rounding differs with four."""
    by_row, dense = of(written[0], "row" + way), of(written[0], "dense" + way)
    assert len(dense) > 5
    assert by_row.keys() == dense.keys()
    for name in by_row.keys() - {"sent"}:
        if len(written) == 2:
            assert np.array_equal(by_row[name], dense[name], equal_nan=True), name
        np.testing.assert_allclose(by_row[name], dense[name], rtol=tolerance, atol=tolerance, err_msg=name)


def test_sums_are_those_of_the_gradients(written: list[dict[str, np.ndarray]]) -> None:
    for name, found in of(written[0], "row sum").items():
        expected = np.sum([gradients_of(rank)[name].astype(np.float64) for rank in range(len(written))], axis=0)
        # Terms of opposite signs may cancel, but not in the case of tiny numbers.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-35 if name == "tiny" else 1e-6, err_msg=name)


def test_bytes_are_as_predicted(written: list[dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = len(written)
    # Three sequences per rank, with three masked slots each.
    config = replace(CONFIG, data=replace(CONFIG.data, batch_size=3 * ranks))
    sizes, shape = CorpusSizes(TOKENS, NGRAMS), BatchShape(3, 20, 3.0, 6, 13 / 3)
    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", BUCKET_NUMBERS)
    by_row, expected_rows = prediction.step_exchange(config, sizes, shape, ranks)
    monkeypatch.setattr(prediction, "is_summed_by_row", lambda size: False)
    dense, _ = prediction.step_exchange(config, sizes, shape, ranks)
    found = {way: written[0][f"{way}/sent"] for way in ("row", "dense")}
    ring = 2 * (ranks - 1) / ranks
    # Losses, and a number for each bucket, are exchanged too.
    assert found["dense"].tolist() == [pytest.approx(ring * dense, abs=200)] * STEPS
    assert found["row"].mean() == pytest.approx(ring * by_row, rel=0.01)
    # The difference is that of the rows, and of a mark per row. An untrained generator samples all units equally often.
    table = NGRAMS * WIDTH * 4 * 2 * (ranks - 1) / ranks
    rows = (found["row"] - found["dense"] + table) / (table / NGRAMS)
    marks = NGRAMS / WIDTH
    assert (rows - marks).mean() == pytest.approx(expected_rows, rel=0.1)
