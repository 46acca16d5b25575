"""BERT in the layout of Hugging Face's transformers: config.json, weights, vocab.txt or tokenizer.json.

A folder of sentence-transformers is read too: the BERT in it, without the pooling and normalisation after it. So is
ERNIE (`model_type` "ernie") without the embeddings of tasks, because its network is that of BERT.
"""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats.heads import has_token_head, held_arrays, losses, read_foreign
from ernie_gram.formats.model import Format, ModelRecord
from ernie_gram.formats.paddlenlp import family_of, is_paddlenlps
from ernie_gram.formats.parameters import BERT_DEFAULTS, bert_settings, write_settings
from ernie_gram.formats.vocabularies import read_tokenizer, write_tokenizer
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import InputError
from reader.system.untrusted_text import read_json

NAME = "bert"
CONFIG = "config.json"
# The first one that is there is read.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# Values of model_type; old files name only the class, in `architectures`.
MODEL_TYPES = ("bert", "ernie", "Bert")


def detect(folder: Path) -> bool:
    """Return whether a folder has the settings of a BERT; raises InputError if config.json is damaged."""
    settings = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    is_bert = settings.get("model_type", family_of(settings)) in MODEL_TYPES
    return is_bert and not is_paddlenlps(folder, settings)


def read(folder: Path) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    settings = BERT_DEFAULTS | read_json(folder / CONFIG) | {"use_relative_position": False}
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise InputError(f"{folder}: no weights in one file; looked for {', '.join(WEIGHTS)}")
    vocabulary, notes = read_tokenizer(folder)
    return read_foreign(NAME, weights, "bert", settings, str(folder / CONFIG), vocabulary, *notes)


def lost(model: ModelRecord) -> list[str]:
    """Return what a BERT cannot hold of a model; raises InputError if it can hold nothing."""
    return losses(model, "bert", "BERT", "BERT has no bias by distance, so the outputs change")


def write(model: ModelRecord, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    has_head = has_token_head(model)
    # transformers refuses a file that does not say that it holds PyTorch's layout.
    save_safetensors(folder / WEIGHTS[0], held_arrays(model, "bert", with_prefix=has_head), "pt")
    settings = {
        "architectures": ["BertForMaskedLM" if has_head else "BertModel"],
        "model_type": "bert",
        **bert_settings(model),
        "position_embedding_type": "absolute",
        "pad_token_id": model.vocabulary.pad,
    }
    write_settings(folder / CONFIG, settings)
    write_tokenizer(model.vocabulary, folder, "BertTokenizer", model.config.max_position_embeddings)


FORMAT = Format(NAME, f"{CONFIG} with model_type bert", detect, read, lost, write)
