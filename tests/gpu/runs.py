"""Small pre-training runs whose losses and parameters are compared."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import paddle

from ernie_gram.config.loading import load_config
from ernie_gram.pretrain import train
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.run import checkpoint
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.run.run_log import Record, read_log
from tests.support import runs
from tests.support.objectives import as_options

QUICK = os.environ.get("GPU_CHECK_QUICK") == "1"
STEPS = 10
# An objective without random samples, because each device draws different ones.
WITHOUT_DRAWING = "cnp"
# Largest relative differences. Two ways of computing float32 products on a CPU differ by 1e-7 in losses and 2e-6 in
# parameters after ten steps; bfloat16 and float16 have 8 and 11 bits.
FLOAT32, HALF = 1e-4, 2e-2
# Softmax does not change when a number is added to all scores of a row, so the gradient of the bias of the keys is only
# rounding error.
WITHOUT_GRADIENT = "_key_fc.b_0"
# In the names of AdamW's running means of gradients.
MEAN = "_moment1_"


def options(folder: Path, name: str, *more: str, steps: int = STEPS, rung: str = WITHOUT_DRAWING) -> list[str]:
    """Return the options of `ernie-gram pretrain` for a run in FOLDER/NAME, of a rung of the ablation.

    There is no dropout, because each device draws different masks. `more` may override any option.
    """
    given = dict.fromkeys(("model.max_position_embeddings", "data.max_seq_len"), 128)
    given |= {"model.hidden_size": 256, "data.batch_size": 32, "model.num_hidden_layers": 2}
    return [
        *runs.options(folder, folder / name, *as_options(rung), *runs.NO_DROPOUT),
        *("--paths.held_out=null", "--model.use_relative_position=true", "--optimizer.learning_rate=1e-3"),
        *(["--model.num_hidden_layers=1"] if QUICK else [f"--{key}={value}" for key, value in given.items()]),
        # The learning rate must not depend on where a run stops.
        *("--optimizer.decay_steps=1000", f"--trainer.max_steps={steps}", f"--trainer.save_every={steps}"),
        *more,
    ]


def start_of(folder: Path, rung: str = WITHOUT_DRAWING) -> str:
    """Return the option with which all runs of a rung start from the same parameters: each device would draw others."""
    return f"--paths.start={_train(options(folder, f'start_{rung}', '--trainer.device=cpu', steps=1, rung=rung))}"


def trained(folder: Path, name: str, device: str, *more: str, steps: int = STEPS, rung: str = WITHOUT_DRAWING) -> Path:
    """Return the folder of a run on a device, "cpu" or "gpu", from the parameters of `start_of`; made once."""
    more = (f"--trainer.device={device}", start_of(folder, rung), *more)
    return _train(options(folder, name, *more, steps=steps, rung=rung))


def _train(arguments: list[str]) -> Path:
    """Train or resume a run, unless it is done; return its folder."""
    config, given = load_config(PretrainConfig, arguments)
    run = prepare(config, 1, given=given)
    if run.resume_from is None or checkpoint.step_of(run.resume_from) != config.trainer.max_steps:
        with run.claim_output(), paddle.static.scope_guard(paddle.static.Scope()):
            train(run)
    return run.output


def steps_of(output: Path) -> list[Record]:
    """Return the logged records of all steps of a run."""
    return [record for record in read_log(output) if record["kind"] == "train"]


def parameters(output: Path) -> Arrays:
    """Return the parameters of the last checkpoint of a run by name."""
    return checkpoint.load_model(checkpoint.checkpoints(output)[-1])


def mean_gradients(output: Path) -> Arrays:
    """Return AdamW's running means of the gradients by parameter, in the last checkpoint of a run.

    Its updates do not depend on the scale of a gradient, so the parameters do not show a gradient with a wrong scale.
    """
    moments = checkpoint.load_optimizer(checkpoint.checkpoints(output)[-1])
    return {name.partition(MEAN)[0]: array for name, array in moments.items() if MEAN in name}


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the norm of the difference of two arrays, divided by the norm of the expected one."""
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-12))


def assert_equal_runs(found: Path, expected: Path, tolerance: float, by_name: bool = True) -> None:
    """Compare losses, norms of the gradient, last parameters and mean gradients of two runs.

    With `by_name`, the tolerance applies to each parameter, otherwise to all of them as one vector. Prints the largest
    difference of each quantity.
    """
    one, two = steps_of(found), steps_of(expected)
    assert [record["step"] for record in one] == [record["step"] for record in two]
    for key in ("loss", "grad_norm"):
        values, others = (np.array([record[key] for record in records]) for records in (one, two))
        worst = np.max(np.abs(values - others) / np.abs(others))
        print(f"{key}: {worst:.1e}")
        assert worst <= tolerance, key
    for what, arrays_of in (("parameter", parameters), ("mean gradient", mean_gradients)):
        arrays, expected_arrays = arrays_of(found), arrays_of(expected)
        names = sorted(name for name in expected_arrays if not name.endswith(WITHOUT_GRADIENT))
        assert arrays.keys() == expected_arrays.keys()
        if by_name:
            differences = {name: difference(arrays[name], expected_arrays[name]) for name in names}
        else:
            joined_up = [np.concatenate([each[name].ravel() for name in names]) for each in (arrays, expected_arrays)]
            differences = {"all": difference(*joined_up)}
        name = max(differences, key=lambda each: differences[each])
        print(f"{what}: {differences[name]:.1e} ({name})")
        # Not "<", so that NaN fails.
        assert all(value <= tolerance for value in differences.values()), f"{what} of {name}: {differences[name]}"
