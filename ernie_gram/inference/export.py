"""Write a static program, its parameters and its tokenizer settings as a folder for `predictor.Predictor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle

from ernie_gram.inference.description import (
    DESCRIPTION,
    PARAMETERS,
    PROGRAM,
    ArraySpec,
    Description,
    TextSettings,
    feed_specs,
    write_checksums,
)
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.corpus.memmap import LEXICON
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.tokenization.vocabulary import Vocabulary


def describe(
    outputs: str, program: Program, fetches: dict[str, str], text: TextSettings, task: dict[str, Any] | None = None
) -> Description:
    """Return the description of a program that was built from batch fields.

    Args:
        outputs: the kind of its outputs.
        fetches: the shape of each fetch in letters, in the order of `program.fetches`; all are float32.
        text, task: see Description.
    """
    assert list(fetches) == list(program.fetches)
    specs = tuple(ArraySpec(name, shape, "float32") for name, shape in fetches.items())
    return Description(outputs, feed_specs(program.feeds), specs, text, task or {})


def export_program(
    folder: Path,
    program: Program,
    parameters: Arrays,
    description: Description,
    vocabulary: Vocabulary,
    place: paddle.base.core.Place,
    source: str,
    lexicon: Lexicon | None = None,
    further: Mapping[str, bytes] | None = None,
) -> None:
    """Write an exported model (see description.py) atomically.

    Only the operations and parameters that the fetches depend on are written.

    Args:
        program: without dropout; its feeds and fetches are those of `description`.
        parameters: values for all parameters of the program; others are ignored.
        source: the name of the model, for errors.
        vocabulary: the file that `description.text` names.
        lexicon: the n-grams among the classes of the fetches; None if there are none.
        further: content of other files of the folder, by name.

    Raises InputError if the folder exists or cannot be written, or if a parameter is missing or has another shape.
    """
    check_new_folder(folder)
    description = replace(description, paddle=paddle.__version__)
    # A scope of its own: the parameters of another model in this process keep their values.
    with paddle.static.scope_guard(paddle.static.Scope()):
        set_parameters(program.main, parameters, source, place)
        feeds = _placeholders(program.main)
        with atomic_folder(folder) as partial:
            paddle.static.save_inference_model(
                str(partial / Path(PROGRAM).stem),
                [feeds[spec.name] for spec in description.feeds],
                [program.fetches[spec.name] for spec in description.fetches],
                paddle.static.Executor(place),
                program=program.main,
            )
            assert {path.name for path in partial.iterdir()} == {PROGRAM, PARAMETERS}
            (partial / vocabulary.file_name).write_bytes(vocabulary.content)
            if lexicon is not None:
                lexicon.save(partial / LEXICON)
            for name, content in (further or {}).items():
                (partial / name).write_bytes(content)
            (partial / DESCRIPTION).write_text(description.as_json(), encoding="utf-8")
            write_checksums(partial)


def _placeholders(program: paddle.static.Program) -> dict[str, paddle.Tensor]:
    """Return the placeholders of a program by name."""
    operations = (op for op in program.global_block().ops if op.name() == "pd_op.data")
    return {op.attrs()["name"]: op.result(0) for op in operations}
