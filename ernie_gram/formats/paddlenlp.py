"""Model folders of PaddleNLP's ErnieGram classes, read and written without PaddleNLP.

    config.json                                     see paddlenlp_config.py
    model.safetensors, model_state.pdparams         the same parameters in both files; PaddleNLP prefers the first
    vocab.txt, tokenizer_config.json, special_tokens_map.json
    README.md                                       model card
    exact_relative_position.py                      only for a model with relative position, see `cannot_hold`
    community/ORGANISATION/NAME/                    README.md and files.json for PaddleNLP's listing of models

PaddleNLP's encoder is ours, with three differences, found in its source and confirmed by running it (tests/hub): it
creates the table of relative position, but never applies it; it always adds segment embeddings; its LayerNorm has 1e-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ernie_gram.formats.heads import epsilon_losses, held_parameters, lost_heads, width_obstacles
from ernie_gram.formats.model import Format, Model, Obstacle
from ernie_gram.formats.model_card import FILE_NAME, model_card
from ernie_gram.formats.names import RELATIVE, TOKEN_HEAD, from_ours
from ernie_gram.formats.paddlenlp_card import EXAMPLE, PUBLISHING, differences, loading
from ernie_gram.formats.paddlenlp_config import (
    CONFIG,
    ERNIE_GRAM,
    FAMILIES,
    LAYER_NORM_EPS,
    LEGACY_CONFIG,
    PDPARAMS,
    SAFETENSORS,
    TaskHead,
    config_json,
    encoder_settings,
    family_of,
    flat_config,
    is_paddlenlps,
)
from ernie_gram.formats.parameters import load_parameters
from ernie_gram.formats.settings import LOWERCASE, flag, model_config, write_settings
from ernie_gram.formats.untrusted.paddle_pickle import write_pdparams
from ernie_gram.formats.untrusted.safetensors_file import write_safetensors
from ernie_gram.formats.vocabularies import (
    assembled,
    read_vocabulary,
    special_tokens,
    tokenizer_settings,
    vocabulary_obstacles,
    write_vocabulary,
)
from ernie_gram.model import exact_relative_position
from reader.errors import InputError
from reader.system.untrusted_text import read_json

NAME = "paddlenlp"
LOOKS_FOR = f"{CONFIG} of ErnieGram, or of Ernie or Bert with {PDPARAMS} or paddlenlp_version"
TOKENIZER_CONFIG = "tokenizer_config.json"
ORGANISATION = "ORGANISATION"  # in community/; users put their own name in its place, see PUBLISHING
# The address from which PaddleNLP 3 downloads "ORGANISATION/NAME", and the keys of the listing.
ADDRESS = f"https://bj.bcebos.com/paddlenlp/models/community/{ORGANISATION}"
LISTED = {
    "model_config_file": CONFIG,
    "model_state": PDPARAMS,
    "tokenizer_config_file": TOKENIZER_CONFIG,
    "vocab_file": "vocab.txt",
}


def detect(folder: Path) -> bool:
    """Return whether a folder has a model of PaddleNLP; raises InputError if its settings are damaged."""
    path = _config_file(folder)
    if path is None or not any((folder / name).is_file() for name in (SAFETENSORS, PDPARAMS)):
        return False
    flat = flat_config(read_json(path))
    family = family_of(flat)
    return family is ERNIE_GRAM or (family is not None and is_paddlenlps(folder, flat))


def read(folder: Path) -> Model:
    """Return the model in a folder: the encoder as PaddleNLP computes it.

    A table of relative position is left out, with a note, because PaddleNLP never applies it, unless a key of ours in
    config.json says that the model was trained with it (see `encoder_settings`). Segment embeddings are kept unless
    they are zero in a model of ours. Heads of tasks are left out. Raises InputError if a file is damaged or missing, or
    if the files do not fit together.
    """
    path = _config_file(folder) or folder / CONFIG
    flat = flat_config(read_json(path))
    family = family_of(flat)
    if family is None:
        known = ", ".join(f"{family.name}Model" for family in FAMILIES)
        raise InputError(f"{path}: architectures: expected {known} or one of their models with a head")
    settings = encoder_settings(flat, family, str(path))
    config = model_config({**settings, "use_task_id": False}, str(path))
    adds_task = flag(settings, "use_task_id", False, str(path))
    weights = folder / (SAFETENSORS if (folder / SAFETENSORS).is_file() else PDPARAMS)
    lowercase = read_json(folder / TOKENIZER_CONFIG) if (folder / TOKENIZER_CONFIG).is_file() else {}
    vocabulary = read_vocabulary(folder, flag(lowercase, LOWERCASE, True, str(folder / TOKENIZER_CONFIG)))
    return assembled(folder, NAME, load_parameters(weights, "paddlenlp", config, adds_task), vocabulary)


def cannot_hold(model: Model) -> list[Obstacle]:
    """Return what PaddleNLP's classes cannot hold of a model, or compute differently.

    Relative position is a loss, because PaddleNLP never applies it, unless its table is zero. Another layer_norm_eps
    and prediction heads are losses too. A folder that PaddleNLP could not load is refused.
    """
    config, found = model.config, lost_heads(model, holds_token_head=False)
    found += width_obstacles(config, "PaddleNLP's ErnieGramModel")
    found += vocabulary_obstacles(model.vocabulary)
    if needs_mask(model):
        found.append(
            Obstacle(
                "relative position: PaddleNLP stores the table of the bias but never applies it, and computes "
                f"something else, unless it is given the attention mask that {EXAMPLE} makes"
            )
        )
    return [*found, *epsilon_losses(config, "PaddleNLP", LAYER_NORM_EPS)]


def needs_mask(model: Model) -> bool:
    """Return whether the model has a relative position bias that changes its output."""
    return model.config.use_relative_position and bool(model.parameters[RELATIVE].any())


def write(
    model: Model,
    folder: Path,
    name: str,
    head: TaskHead | None = None,
    max_tokens: int | None = None,
    different: Sequence[str] = (),
) -> None:
    """Write the files of a PaddleNLP model into an existing, empty folder.

    Args:
        model: without obstacles other than losses, see `cannot_hold`.
        name: the name under which the folder is published, for the card and the listing.
        head: the head of a fine-tuned model; None for the encoder alone.
        max_tokens: of an input, for the tokenizer; None means all positions.
        different: what else PaddleNLP does differently, for the card; one sentence each.
    """
    vocabulary, config = model.vocabulary, model.config
    held = {name: values for name, values in held_parameters(model).items() if name not in TOKEN_HEAD}
    arrays = from_ours(held, "paddlenlp", config.num_hidden_layers, with_prefix=head is not None)
    if head is not None:
        arrays |= {"classifier.weight": head.weight, "classifier.bias": head.bias}
    write_safetensors(folder / SAFETENSORS, arrays)
    write_pdparams(folder / PDPARAMS, arrays)
    write_settings(folder / CONFIG, config_json(config, len(held["word_embedding"]), vocabulary.pad, head))
    tokenizer = tokenizer_settings(vocabulary, "ErnieGramTokenizer", max_tokens or config.max_position_embeddings)
    write_settings(folder / TOKENIZER_CONFIG, tokenizer)
    write_settings(folder / "special_tokens_map.json", special_tokens())
    write_vocabulary(vocabulary, folder)
    if needs_mask(model):
        (folder / EXAMPLE).write_bytes(Path(exact_relative_position.__file__).read_bytes())
    lost = [obstacle.reason for obstacle in cannot_hold(model)]
    how = loading(needs_mask(model), head, model.training.task if model.training else "")
    numbers = sum(values.size for values in arrays.values())
    card = model_card(model, name, NAME, how, numbers, lost, [*differences(model), *different])
    (folder / FILE_NAME).write_text(card + PUBLISHING, encoding="utf-8")
    community = folder / "community" / ORGANISATION / name
    community.mkdir(parents=True)
    (community / FILE_NAME).write_text(card, encoding="utf-8")
    write_settings(community / "files.json", {key: f"{ADDRESS}/{name}/{file}" for key, file in LISTED.items()})


def _config_file(folder: Path) -> Path | None:
    return next((folder / name for name in (CONFIG, LEGACY_CONFIG) if (folder / name).is_file()), None)


FORMAT = Format(NAME, LOOKS_FOR, detect, read, cannot_hold, write)
