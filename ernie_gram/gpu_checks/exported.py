"""Check that an exported model computes the same on the GPU as the executor that is used for training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle

from ernie_gram.distributed.world import World, start_world
from ernie_gram.export_inference import export_model
from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import read_model
from ernie_gram.gpu_checks.check import Setup, require
from ernie_gram.gpu_checks.equal_numbers import FLOAT32, on_gpu
from ernie_gram.gpu_checks.runs import not_nan
from ernie_gram.inference.description import ENCODER, KINDS
from ernie_gram.inference.export import build_encoder
from ernie_gram.inference.exported_program import ExportedProgram
from ernie_gram.pretraining.config import prediction_config
from ernie_gram.pretraining.programs import build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.variables import set_parameters
from reader.batches import fields
from reader.batches.fields import Batch

LENGTHS = (19, 3, 24)


def export(setup: Setup) -> str:
    """Compare the outputs of both kinds of exported models for a batch with padding."""
    model, world, found = read_model(on_gpu(setup)), start_world("gpu"), setup.numbers
    for outputs in KINDS:
        for name, difference in _differences(model, outputs, setup.folder / f"exported_{outputs}", world).items():
            found[f"{outputs}: {name}"] = difference
    worst = max(found, key=lambda name: found[name])
    require(found[worst] <= FLOAT32, f"{worst} differs by {found[worst]:.1e}, more than {FLOAT32:g}")
    return f"{len(found)} outputs differ by at most {found[worst]:.1e} ({worst})"


def _differences(model: Model, outputs: str, folder: Path, world: World) -> dict[str, float]:
    """Export a model, and return for each output the largest difference, relative to its largest value."""
    tokens, ngrams = len(model.vocabulary), len(model.lexicon or ())
    if outputs == ENCODER:
        program = build_encoder(model.config, model.config.vocab_size or tokens)
    else:
        program = build_prediction(prediction_config(model), CorpusSizes(tokens, ngrams))
    width, random = max(LENGTHS), np.random.default_rng(1)
    batch: Batch = {
        fields.INPUT_IDS.name: random.integers(0, tokens, (len(LENGTHS), width)),
        fields.LENGTHS.name: np.array(LENGTHS),
        fields.SLOTS.name: np.arange(len(LENGTHS)) * width + 1,
    }
    export_model(model, outputs, folder, world)
    found = ExportedProgram(folder).run(batch)
    with paddle.static.scope_guard(paddle.static.Scope()):
        set_parameters(program.main, model.parameters, str(model.source), world.place)
        expected = program.run(paddle.static.Executor(world.place), batch)
    if outputs == ENCODER:
        # The values of padding slots have no meaning.
        is_real = np.arange(width) < np.array(LENGTHS)[:, np.newaxis]
        found["hidden"], expected["hidden"] = found["hidden"][is_real], expected["hidden"][is_real]
    return {
        name: not_nan(float(np.abs(found[name] - value).max() / np.abs(value).max()))
        for name, value in expected.items()
    }
