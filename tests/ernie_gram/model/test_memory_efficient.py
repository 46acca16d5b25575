"""Memory-efficient attention: only that it is built as its kernel wants it. It has never been run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ernie_gram.distributed import device
from ernie_gram.pretraining.config import PretrainConfig
from reader.errors import InputError
from tests.support.configs import load
from tests.support.objectives import as_options
from tests.support.pretended_gpu import enter_kernels, pretend
from tests.support.pretended_gpu.placeholder_kernels import FLOAT32, register_placeholders


def config_of(precision: str, relative: bool) -> PretrainConfig:
    """Return a small model of the full objective."""
    shape = ["--model.hidden_size=32", "--model.num_hidden_layers=1", "--model.num_attention_heads=4"]
    more = [f"--model.use_relative_position={relative}".lower(), f"--optimizer.precision={precision}"]
    return load(*shape, *as_options("full"), *more, "--model.attention=memory_efficient")


@pytest.mark.parametrize(("precision", "relative"), [("float32", True), ("bfloat16", True), ("float16", False)])
def test_the_context_of_every_layer_uses_the_kernel_in_training_only(
    precision: str, relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(replace=monkeypatch.setattr)
    enter_kernels()
    monkeypatch.setattr(device, "_place", None)
    from ernie_gram.pretraining.job import PretrainNetwork
    from ernie_gram.pretraining.network import build_evaluation
    from ernie_gram.pretraining.sizes import CorpusSizes
    from tests.support.static_programs import fresh_scope, training_program

    assert PretrainNetwork
    config, sizes = config_of(precision, relative), CorpusSizes(50, 20)
    with fresh_scope("gpu"):
        program, others = training_program(config, sizes), []
        if precision == "float16":
            plain = replace(config, model=replace(config.model, attention="plain"))
            others = [training_program(plain, sizes), build_evaluation(config, sizes, 1)]
    operations = program.main.global_block().ops
    forward = [operation for operation in operations if operation.name() == "pd_op.memory_efficient_attention"]
    # A layer of the encoder and one of the generator; query rows attend to themselves as well, and stay plain.
    assert len(forward) == 2
    assert sum(operation.name() == "pd_op.memory_efficient_attention_grad" for operation in operations) == 2
    for operation in forward:
        query, key, value, bias = operation.operands_source()[:4]
        heads = 4 if query.shape[2] == 4 else 1  # of the generator
        assert query.shape == key.shape == value.shape == [-1, -1, heads, 8]
        assert len(bias.shape) == 4
        assert bias.shape[1] in (heads, -1)
        assert {each.dtype for each in (query, key, value, bias)} == {query.dtype}
        assert str(query.dtype).endswith(precision)
    for other in others:
        assert not any("memory_efficient" in operation.name() for operation in other.main.global_block().ops)


def test_an_entry_for_cpus_is_no_kernel_for_gpus() -> None:
    register_placeholders("CPU", ["only_for_this_test"], [FLOAT32])
    assert not device._has_kernel("only_for_this_test")


def test_what_lacks_the_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"model\.attention: memory_efficient needs a GPU"):
        device.check_device("cpu", attention="memory_efficient")
    pretend(replace=monkeypatch.setattr)
    enter_kernels()
    assert device.check_device("gpu", attention="memory_efficient")
    monkeypatch.setattr(device, "_has_kernel", lambda name: False)
    with pytest.raises(InputError, match=r"model\.attention: this Paddle has no kernel"):
        device.check_device("gpu", attention="memory_efficient")
