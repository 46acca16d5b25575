"""The folder of an exported model, and its description. No Paddle here.

model.json        Paddle's program; model.pdiparams: its parameters
inference.json    what the program reads and computes, and how text becomes token IDs (`Description`)
vocab.txt         the vocabulary, or spm.model of sentencepiece
lexicon.tsv       the n-grams among the classes, with lexicon.tsv.json; only if a head predicts n-grams
checksums.json    SHA-256 of the files above
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ernie_gram.formats.model import ModelRecord
from ernie_gram.run.checkpoint import CHECKSUMS, verify
from reader.errors import InputError
from reader.system.untrusted_text import read_json, record_of
from reader.tokenization.vocabulary_file import FILE_NAMES

PROGRAM, PARAMETERS = "model.json", "model.pdiparams"
DESCRIPTION = "inference.json"
FORMAT_VERSION = 1
# The kinds of outputs of a model without a task.
ENCODER, FILL_MASK = "encoder", "fill_mask"
KINDS = (ENCODER, FILL_MASK)
# The name of the output of FILL_MASK.
PROBABILITIES = "probabilities"
# The precisions of matrix products that can be asked for.
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class ArraySpec:
    """An array that a program reads or computes.

    Attributes:
        name: of a feed, the name in the batch contract (fields.py).
        shape: one letter per dimension; the sizes B (sequences) and L (slots) may differ between calls.
        dtype: numpy's name.
    """

    name: str
    shape: str
    dtype: str


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


@dataclass(frozen=True)
class Description:
    """What an exported program reads and computes.

    Attributes:
        outputs: the kind of its outputs, for example "encoder", which decides how texts are answered.
        feeds, fetches: the arrays, in the order of the program's inputs and outputs.
        text: how text becomes token IDs.
        task: more settings for this kind of outputs, as JSON values.
        network: what the program was built from, as JSON values: it is built again, with the kernels for this device.
        paddle: version of Paddle that wrote the program.
    """

    outputs: str
    feeds: tuple[ArraySpec, ...]
    fetches: tuple[ArraySpec, ...]
    text: TextSettings
    task: dict[str, Any] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    paddle: str = ""

    @property
    def fetch_names(self) -> tuple[str, ...]:
        """Names of the fetches, in order."""
        return tuple(spec.name for spec in self.fetches)

    def as_json(self) -> str:
        """Return the content of `inference.json`."""
        return json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def load_description(folder: Path) -> Description:
    """Verify the folder of an exported model, and return its description.

    Raises InputError if a file is missing or altered, or if the description is invalid or of another format version.
    """
    path = folder / DESCRIPTION
    if not path.is_file() and not (folder / CHECKSUMS).is_file():
        reason = "not an exported model" if folder.is_dir() else "no such folder"
        raise InputError(f"{folder}: {reason}; write one with `ernie-gram convert --to inference`")
    try:
        verify(folder, (DESCRIPTION, PROGRAM, PARAMETERS), "exported model", listed=True)
    except InputError as error:
        raise InputError(f"{error}; export it again") from error
    tree = read_json(path)
    if (version := tree.pop("format_version", None)) != FORMAT_VERSION:
        raise InputError(f"{path}: has format version {version}, but this program reads {FORMAT_VERSION}")
    for part in ("feeds", "fetches"):
        specs = tree.get(part)
        if not isinstance(specs, list):
            raise InputError(f"{path}: {part}: expected a list of arrays")
        tree[part] = tuple(record_of(ArraySpec, spec, f"{path}: {part}") for spec in specs)
    tree["text"] = record_of(TextSettings, tree.get("text"), f"{path}: text")
    description = record_of(Description, tree, str(path))
    if description.text.vocabulary not in FILE_NAMES:
        name, known = description.text.vocabulary, ", ".join(FILE_NAMES)
        raise InputError(f"{path}: text.vocabulary is {name!r}, not one of {known}")
    if not description.network:
        raise InputError(f"{path}: network is missing: an earlier version wrote it; export the model again")
    return description


def check_exportable(model: ModelRecord, outputs: str) -> None:
    """Raise InputError if a model lacks the heads that these outputs need."""
    if outputs == FILL_MASK and model.pretraining is None:
        raise InputError(f"{model.source}: has no prediction heads; use --outputs {ENCODER}")
