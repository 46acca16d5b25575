"""Gradients of few rows: updates are those of whole gradients, to the bit where nothing is clipped.

Their exchange gives the dense sum, on every rank, in two and in four processes. Four are started only if the variable
FOUR_PROCESSES is set: on two cores they take 40 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.distributed.row_gradients import Lookups, take_lookups
from ernie_gram.distributed.world import World
from ernie_gram.model.parameters import count
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.accumulation import build_accumulation
from ernie_gram.training.optimization import clip_by_global_norm
from ernie_gram.training.program import Program, build_training
from ernie_gram.training.recompute import recompute_layers
from ernie_gram.training.step_values import STEP_VALUES
from ernie_gram.training.variables import get_arrays, optimizer_names, set_array
from tests.support import row_exchange_ranks as job
from tests.support.commands import in_ranks, python
from tests.support.small_model import MODEL, TOKENS, config_of, random_batch
from tests.support.static_programs import fresh_program, fresh_scope, job_of

NGRAMS, STEPS, MICRO_BATCHES = 300, 6, 3
TABLE = "ngram_embedding"
Arrays = dict[str, np.ndarray]


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a small table is larger than a bucket."""
    monkeypatch.setattr("ernie_gram.distributed.collectives.BUCKET_NUMBERS", NGRAMS * MODEL.hidden_size - 1)


def config_that_clips_at(max_norm: float) -> PretrainConfig:
    config = config_of("full", replace(MODEL, num_hidden_layers=1))
    return replace(config, optimizer=replace(config.optimizer, max_grad_norm=max_norm, learning_rate=1e-2))


@cache
def train(config: PretrainConfig, by_row: bool) -> Arrays:
    """Return the variables after some updates with one batch each; if the loss is scaled, the last one is infinite."""
    with fresh_scope() as executor:
        world = World(0, 1, executor.place)
        program = build_training(job_of(config, CorpusSizes(TOKENS, NGRAMS), by_row=by_row), world)
        made = [each for each in program.main.global_block().ops if each.name() == "pd_op.embedding_grad"]
        assert any(each.result(0).shape[0] == NGRAMS for each in made) != by_row
        paddle.seed(0)
        executor.run(program.startup)
        for step in range(STEPS):
            paddle.seed(step)
            program.step(executor, random_batch("both", step))
            if config.optimizer.loss_scale and step == STEPS - 2:
                set_array(TABLE, np.full_like(get_arrays([TABLE])[TABLE], np.inf))
        return variables(program)


def train_in_parts(config: PretrainConfig, by_row: bool) -> Arrays:
    """Return the variables after some updates with several micro-batches each."""
    with fresh_scope() as executor:
        training = job_of(config, CorpusSizes(TOKENS, NGRAMS), by_row=by_row)
        accumulating, updating = build_accumulation(training, World(0, 1, executor.place))
        paddle.seed(0)
        executor.run(accumulating.startup)
        executor.run(updating.startup)
        for step in range(STEPS):
            batches = [random_batch("both", step * MICRO_BATCHES + i) for i in range(MICRO_BATCHES)]
            counts = np.sum([training.network.row_counts(batch) for batch in batches], 0).astype(np.float32)
            for i, batch in enumerate(batches):
                paddle.seed(step * MICRO_BATCHES + i)
                accumulating.step(executor, {**batch, "row_counts": counts})
            updating.step(executor, {})
        return variables(accumulating)


def variables(program: Program) -> Arrays:
    """Return the parameters, the optimizer's variables and the kept values of the last step."""
    return get_arrays([*program.parameters, *optimizer_names(program.parameters), STEP_VALUES])


@pytest.mark.parametrize(("run", "clips"), [(train, False), (train, True), (train_in_parts, False)])
def test_updates_are_those_of_the_whole_gradient(run: Callable[..., Arrays], clips: bool) -> None:
    config = config_that_clips_at(0.01 if clips else 1e9)
    rows, whole = run(config, by_row=True), run(config, by_row=False)
    moment = rows[f"{TABLE}_moment1_0"]
    assert 0 < np.count_nonzero(moment.any(1)) < NGRAMS
    for name, values in whole.items():
        if clips or name == "step_values":  # the squares of the gradient's numbers are added in another order
            np.testing.assert_allclose(rows[name], values, rtol=1e-4, atol=1e-7, err_msg=name)
        else:
            np.testing.assert_array_equal(rows[name], values, err_msg=name)


def test_recomputed_layers_give_the_same_bits() -> None:
    config = config_that_clips_at(0.01)
    with patch("ernie_gram.training.program.recompute_layers", wraps=recompute_layers) as recomputing:
        recomputed = replace(config, trainer=replace(config.trainer, recompute=True))
        plain, again = train(config, by_row=True), train(recomputed, by_row=True)
    recomputing.assert_called_once()
    np.testing.assert_equal(again, plain)


def test_an_update_is_skipped_if_the_rows_are_not_finite() -> None:
    config = config_that_clips_at(1.0)
    skipped = train(replace(config, optimizer=replace(config.optimizer, loss_scale=1.0)), by_row=True)
    assert np.isinf(skipped[TABLE]).all()
    assert all(np.isfinite(skipped[name]).all() for name in skipped if name not in (TABLE, "step_values"))


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_row_that_is_looked_up_again_is_clipped_once(repeats: int) -> None:
    """Equal rows in a batch are one row of the gradient: the norm is that of their sum."""
    with fresh_program() as (executor, program, _):
        rows = paddle.assign(np.array([2, 0] + [4] * repeats))
        parts = paddle.static.data("parts", [2 + repeats, 3], "float32")
        gradient = Lookups([6, 3], rows, parts).by_row()
        norm = clip_by_global_norm([gradient], 0.5)
        given = np.random.default_rng(0).standard_normal((2 + repeats, 3)).astype(np.float32)
        size, found = executor.run(program, feed={"parts": given}, fetch_list=[norm, gradient.table])
    expected = np.zeros((6, 3))
    np.add.at(expected, np.array([2, 0] + [4] * repeats), given)
    assert size == pytest.approx(np.linalg.norm(expected), rel=1e-6)
    np.testing.assert_allclose(found, expected * 0.5 / np.linalg.norm(expected), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("is_read", [False, True])
def test_lookups_add_their_rows_to_other_gradients_of_a_table(is_read: bool) -> None:
    """The gradient of the product may be read elsewhere: then nothing is added in its memory."""
    values = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    with fresh_program() as (executor, program, startup):
        initial = paddle.nn.initializer.Assign(values)
        table = paddle.create_parameter([6, 3], "float32", default_initializer=initial)
        factor = paddle.static.data("factor", [1, 6], "float32")
        looked_up = [F.embedding(paddle.assign(np.array(rows)), table) for rows in ([1, 1, 5], [0, 1])]
        total = paddle.add_n([paddle.matmul(factor, table).sum(), *((each * each).sum() for each in looked_up)])
        (gradient,) = paddle.static.gradients([total], [table])
        parts = gradient.get_defining_op().operand_source(0).get_defining_op().operands_source()
        (dense,) = (part for part in parts if part.get_defining_op().name() != "pd_op.embedding_grad")
        others = [dense * 1] if is_read else []
        ((_, found),) = take_lookups([(table, gradient)], ())
        names = [operation.name() for operation in program.global_block().ops]
        assert names.count("pd_op.index_add_") == (0 if is_read else 2)
        assert names.count("pd_op.embedding_grad") == (2 if is_read else 0)
        executor.run(startup)
        feed = {"factor": np.arange(6, dtype=np.float32).reshape(1, 6)}
        result, *of_product = executor.run(program, feed=feed, fetch_list=[found, *others])
    expected = np.repeat(np.arange(6.0)[:, None], 3, 1)
    for array in of_product:
        np.testing.assert_array_equal(array, expected)
    np.add.at(expected, [1, 1, 5, 0, 1], 2.0 * values[[1, 1, 5, 0, 1]])
    np.testing.assert_allclose(result, expected, rtol=1e-6)


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
        expected = np.sum([job.gradients_of(rank)[name].astype(np.float64) for rank in range(len(written))], axis=0)
        # Terms of opposite signs may cancel, but not in the case of tiny numbers.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-35 if name == "tiny" else 1e-6, err_msg=name)


def test_bytes_are_those_of_the_gradients_and_of_the_rows_in_use(written: list[dict[str, np.ndarray]]) -> None:
    ranks = len(written)
    dense = 4 * count(parameter_shapes(job.CONFIG, CorpusSizes(TOKENS, job.NGRAMS)))
    found = {way: written[0][f"{way}/sent"] for way in ("row", "dense")}
    # Losses, and a number for each bucket, are exchanged too.
    assert found["dense"].tolist() == [pytest.approx(2 * (ranks - 1) / ranks * dense, abs=200)] * job.STEPS
    # Three sequences per rank, with three masked slots each.
    expected_rows = -job.NGRAMS * np.expm1(9 * ranks * np.log1p(-1 / (1 + TOKENS + job.NGRAMS)))
    # The difference is that of the rows, and of a mark per row. An untrained generator samples all units equally often.
    table = job.NGRAMS * job.WIDTH * 4 * 2 * (ranks - 1) / ranks
    rows = (found["row"] - found["dense"] + table) / (table / job.NGRAMS)
    marks = job.NGRAMS / job.WIDTH
    assert (rows - marks).mean() == pytest.approx(expected_rows, rel=0.1)
