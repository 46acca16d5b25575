"""The folder of an exported model, its description, and the model in it. No Paddle here.

model.json        Paddle's program; model.pdiparams: its parameters
inference.json    what the program reads and computes, how text becomes token IDs (`TextSettings`), and the network
vocab.txt         the vocabulary, or spm.model of sentencepiece
lexicon.tsv       the n-grams, with lexicon.tsv.json; only if there are any, and units are predicted
checksums.json    SHA-256 of the files above
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.ours import checked_heads, checked_record
from ernie_gram.formats.parameters import model_config
from ernie_gram.formats.untrusted.reading import read_program
from ernie_gram.formats.vocabularies import check_vocabulary
from ernie_gram.pretraining.config import max_tokens
from ernie_gram.run.checkpoint import verify
from reader.corpus.memmap import LEXICON
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, segmenter_of
from reader.system.untrusted_text import read_json, record_of
from reader.tokenization.vocabulary_file import FILE_NAMES, load_vocabulary

NAME = "exported"
PROGRAM, PARAMETERS = "model.json", "model.pdiparams"
DESCRIPTION, ONNX_DESCRIPTION = "inference.json", "onnx.json"
FORMAT_VERSION = 1
# The kinds of outputs of a model without a task.
ENCODER, FILL_MASK = "encoder", "fill_mask"
KINDS = (ENCODER, FILL_MASK)
# The name of the output of FILL_MASK.
PROBABILITIES = "probabilities"
# The precisions of matrix products that can be asked for.
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TextSettings:
    """How text becomes token IDs.

    Attributes:
        max_tokens: maximum number of tokens of a sequence, [CLS] and [SEP] included.
        vocabulary: name of the vocabulary file in the folder.
        lowercase: whether text is first converted to lower case and stripped of accents.
        segmenter: how Han characters are split into words (see basic_tokenizer.py).
    """

    max_tokens: int
    vocabulary: str
    lowercase: bool
    segmenter: str


def text_settings(model: ModelRecord) -> TextSettings:
    """Return how text becomes token IDs for a model that was not exported."""
    vocabulary = model.vocabulary
    return TextSettings(max_tokens(model), vocabulary.file_name, vocabulary.lowercase, segmenter_of(model.lexicon))


def read_exported(folder: Path) -> tuple[ModelRecord, TextSettings]:
    """Verify the folder of an exported model, and return the model, with the parameters that its outputs need.

    Raises InputError if a file is missing or altered, for a description of another format version, and for invalid
    settings and parameters that do not fit them.
    """
    try:
        verify(folder, (DESCRIPTION, PROGRAM, PARAMETERS), "exported model", listed=True)
    except InputError as error:
        raise InputError(f"{error}; export it again") from error
    path = folder / DESCRIPTION
    tree = read_json(path)
    if (version := tree.get("format_version")) != FORMAT_VERSION:
        raise InputError(f"{path}: has format version {version}, but this program reads {FORMAT_VERSION}")
    text, network = record_of(TextSettings, tree.get("text"), f"{path}: text"), tree.get("network")
    if text.vocabulary not in FILE_NAMES:
        raise InputError(f"{path}: text.vocabulary is {text.vocabulary!r}, not one of {', '.join(FILE_NAMES)}")
    if not isinstance(network, dict) or not isinstance(network.get("model"), dict):
        raise InputError(f"{path}: network is missing: an earlier version wrote it; export the model again")
    heads = checked_heads(network.get("pretraining"), f"{path}: network")
    arrays = read_program(folder / PROGRAM, folder / PARAMETERS)
    config = model_config(network["model"], f"{path}: network")
    config = replace(config, vocab_size=config.vocab_size or 1, use_pooler="pooled_fc.w_0" in arrays)
    if text.max_tokens > (most := config.max_position_embeddings):
        raise InputError(f"{path}: text.max_tokens is {text.max_tokens}, but the model has {most} positions")
    vocabulary = load_vocabulary(folder / text.vocabulary, text.lowercase)
    check_vocabulary(vocabulary, config.vocab_size or 1, folder)
    lexicon = Lexicon.load(folder / LEXICON) if (folder / LEXICON).is_file() else None
    heads = heads if tree.get("outputs") == FILL_MASK else None
    record = ModelRecord(folder, NAME, config, arrays, vocabulary, lexicon, heads)
    return checked_record(record, str(folder / PARAMETERS)), text
