"""The model folder of upstream's dygraph code: ernie_config.json, vocab.txt and saved_weights.pdparams.

The released Chinese models have this layout. The dygraph model always adds sentence embeddings, and has relative
position if `rel_pos_size` is set.
"""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats import upstream
from ernie_gram.formats.model import Model
from ernie_gram.formats.names import SEGMENTS, from_ours
from ernie_gram.formats.obstacle import Obstacle
from ernie_gram.formats.untrusted.paddle_pickle import write_pdparams
from ernie_gram.model.config import NUM_BUCKETS

NAME = "upstream_dygraph"
WEIGHTS = "saved_weights.pdparams"
LOOKS_FOR = f"{WEIGHTS} beside {upstream.CONFIG}"


def detect(folder: Path) -> bool:
    """Return whether a folder has the file of parameters."""
    return (folder / WEIGHTS).is_file()


def read(folder: Path) -> Model:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    upstream.require_config(folder, WEIGHTS)
    settings = upstream.read_settings(folder)
    settings = {"use_sentence_embedding": True, **settings, "use_relative_position": bool(settings.get("rel_pos_size"))}
    always_read = (SEGMENTS,)
    return upstream.read_upstream(folder, NAME, folder / WEIGHTS, "dygraph", settings, always_read)


def cannot_hold(model: Model) -> list[Obstacle]:
    """Return what the layout cannot hold of a model."""
    config, found = model.config, upstream.obstacles(model, keeps_transform=False)
    if config.embedding_size != config.hidden_size:
        reason = f"emb_size {config.embedding_size}: upstream's dygraph model has embeddings of hidden_size"
        found.append(Obstacle(reason, is_loss=False))
    return found


def write(model: Model, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config = model.config
    settings = {
        "rel_pos_size": NUM_BUCKETS if config.use_relative_position else None,
        "max_seq_len": config.max_position_embeddings,
        "has_pooler": config.use_pooler,
    }
    upstream.write_files(model, folder, settings)
    arrays = from_ours(upstream.parameters(model), "dygraph", config.num_hidden_layers, with_prefix=False)
    write_pdparams(folder / WEIGHTS, arrays)
