"""The model folder of upstream's static code: ernie_config.json, vocab.txt, and `params/` with one file a variable.

The released English models have this layout. The static model always has relative position. Sentence embeddings are off
unless `use_sentence_embedding` in ernie_config.json is true (a key of ours): upstream's code adds them for reading
comprehension only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ernie_gram.formats import upstream
from ernie_gram.formats.heads import has_token_head
from ernie_gram.formats.model import Model
from ernie_gram.formats.names import RELATIVE
from ernie_gram.formats.obstacle import Obstacle
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.formats.untrusted.paddle_variable import write_paddle_variable
from ernie_gram.model.config import NUM_BUCKETS

NAME = "upstream_static"
PARAMS = "params"
LOOKS_FOR = f"folder {PARAMS}/ beside {upstream.CONFIG}"


def detect(folder: Path) -> bool:
    """Return whether a folder has the folder of parameters."""
    return (folder / PARAMS).is_dir()


def read(folder: Path) -> Model:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    upstream.require_config(folder, PARAMS)
    has_relative = (folder / PARAMS / RELATIVE).is_file()
    settings = {"use_relative_position": has_relative, **upstream.read_settings(folder)}
    return upstream.read_upstream(folder, NAME, folder / PARAMS, "static", settings, always_read=(RELATIVE,))


def cannot_hold(model: Model) -> list[Obstacle]:
    """Return what the layout cannot hold of a model."""
    return upstream.obstacles(model, keeps_transform=True)


def write(model: Model, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config = model.config
    arrays = {RELATIVE: np.zeros((NUM_BUCKETS, config.num_attention_heads), np.float32)}
    arrays |= upstream.parameters(model)
    if config.out_emb_size and not has_token_head(model):
        # Upstream's heads for reading comprehension and tagging read it.
        arrays |= {key: model.parameters[key] for key in HEAD_TRANSFORM if key in model.parameters}
    upstream.write_files(model, folder, {})
    (folder / PARAMS).mkdir()
    for key, values in arrays.items():
        write_paddle_variable(folder / PARAMS / key, values)
