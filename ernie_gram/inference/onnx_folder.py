"""The folder of a model in ONNX. No Paddle here.

model.onnx        the network with its parameters
onnx.json         what it reads and computes, and how text becomes token IDs (`Description`)
vocab.txt         the vocabulary, or spm.model of sentencepiece; and further files, as of an exported program
README.md         how to run it
checksums.json    SHA-256 of the files above
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.inference.description import (
    DESCRIPTION,
    FILL_MASK,
    PARAMETERS,
    PROGRAM,
    Description,
    load_description,
)
from ernie_gram.run.checkpoint import CHECKSUMS, write_checksums
from reader.batches.fields import SLOTS
from reader.errors import InputError
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.system.processes import lines_of_module
from reader.tokenization.vocabulary import MASK
from reader.tokenization.wordpiece import WordPieceVocabulary

TO, ONNX = "--to", "onnx"
FILE, DESCRIBED, CARD = "model.onnx", "onnx.json", "README.md"
# A file of protobuf is smaller than this.
MAX_BYTES = 2**31

RUN = """```python
import numpy as np, onnxruntime
from tokenizers import BertWordPieceTokenizer

texts = {texts}
tokenizer = BertWordPieceTokenizer("vocab.txt", lowercase={lowercase})
tokenizer.enable_padding()
encoded = tokenizer.encode_batch(texts)
ids, sentences, mask = (np.array([getattr(e, n) for e in encoded]) for n in ("ids", "type_ids", "attention_mask"))
feeds = {{"input_ids": ids, "lengths": mask.sum(1), "sentence_ids": sentences, "slots": np.flatnonzero({slots})}}
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
print(session.run(None, {{each.name: feeds[each.name] for each in session.get_inputs()}}))
```"""


def check_onnx() -> None:
    """Raise InputError unless what converts is installed."""
    missing = [name for name in ("paddle2onnx", "onnx") if find_spec(name) is None]
    require(not missing, TO, f"onnx: needs {' and '.join(missing)}: pip install 'ernie-gram[onnx]'")


def export_onnx(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a model in ONNX atomically, or nothing.

    Args:
        write: writes the model as an exported program (see description.py) into a new folder.

    Raises InputError as `write` and `check_onnx` do, if the folder exists, and if ONNX cannot hold the model.
    """
    check_onnx()
    check_new_folder(folder)
    with tempfile.TemporaryDirectory() as parent:
        program = Path(parent) / "program"
        write(program)
        size = (program / PARAMETERS).stat().st_size
        require(size < MAX_BYTES, TO, f"onnx: a file holds less than 2 GB, and the parameters have {size:,} bytes")
        description = load_description(program)
        reason = "onnx: a generator's samples cannot be repeated there; use --outputs encoder"
        require(not description.task.get("has_generator"), TO, reason)
        with atomic_folder(folder) as partial:
            try:
                for _ in lines_of_module("ernie_gram.inference.onnx_conversion", str(program), str(partial / FILE)):
                    pass  # what paddle2onnx prints
            except InputError as error:
                raise InputError(f"{TO}: onnx: paddle2onnx cannot convert this model: {error}") from error
            for path in program.iterdir():
                if path.name not in (PROGRAM, PARAMETERS, DESCRIPTION, CHECKSUMS):
                    shutil.copyfile(path, partial / path.name)
            (partial / DESCRIBED).write_text(replace(description, network={}).as_json(), encoding="utf-8")
            (partial / CARD).write_text(card(folder.name, description), encoding="utf-8")
            write_checksums(partial)


def card(name: str, description: Description) -> str:
    """Return how a model is run with ONNX Runtime, in Markdown."""
    pairs = [("reads", each) for each in description.feeds] + [("computes", each) for each in description.fetches]
    lines = [f"- {verb} `{each.name}`, {each.dtype} {list(each.shape)}" for verb, each in pairs]
    fills, text = description.outputs == FILL_MASK, description.text
    run = RUN.format(
        texts=f'["a {MASK} text", "{MASK} of {MASK}"]' if fills else '["a text", "another one"]',
        lowercase=text.lowercase,
        slots="ids == tokenizer.token_to_id('[MASK]')" if fills else "mask",
    )
    if text.vocabulary != WordPieceVocabulary.file_name:
        run = f"Texts are split by {text.vocabulary} of SentencePiece, Han characters before it by {text.segmenter}."
    slots = f"`{SLOTS.name}` are the numbers b * L + l of the slots that are computed.\n\n"
    head = f"# {name}\n\nA model in ONNX ({description.outputs}). B texts have L tokens each, padding included.\n\n"
    used = slots if any(each.name == SLOTS.name for each in description.feeds) else ""
    return head + "\n".join(lines) + "\n\n" + used + run + "\n"
