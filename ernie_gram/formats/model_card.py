"""Model cards: what a model is, how to load it, what an export lost, how it was trained, and its scores.

They are Markdown with the YAML front matter that model hubs read. Unknown facts are left out, or called not stated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from ernie_gram.formats.heads import PREDICTION_SECTIONS
from ernie_gram.formats.model import Model, TrainingRecord
from reader.errors import InputError
from reader.system.untrusted_text import limited_text, yaml_value

FILE_NAME = "README.md"
FRONT_MATTER = "---"
# Where to look for the project: its distribution and the paper, as it has no address that a card could name.
PROJECT = """The folder was written by the Python distribution `ernie-gram`, an implementation on PaddlePaddle of
[ERNIE-Gram (Xiao et al., NAACL 2021)](https://aclanthology.org/2021.naacl-main.136/)."""


def model_card(
    model: Model, name: str, library: str, loading: str, numbers: int, lost: Iterable[str], different: Iterable[str]
) -> str:
    """Return the card of a model folder, in Markdown.

    Args:
        model: as it was before it was written.
        name: the title, usually the name of the folder.
        library: what loads the folder.
        loading: Markdown: how to load it.
        numbers: how many numbers its parameters have.
        lost: what the folder does not hold or the library computes differently, one sentence each.
        different: what the library does differently without a loss, one sentence each.
    """
    licence = licence_of(model.source)
    front = {"library_name": library, "tags": ["ernie-gram"], **({"license": licence} if licence else {})}
    sections = {
        "How to load it": loading.strip(),
        "What is lost": _bullets(lost) or "Nothing: the library computes the same numbers as the original model.",
        "What the library does differently": _bullets(different),
        "Training": _training(model),
        "Settings": f"```yaml\n{_yaml(_settings(model))}\n```",
        "Scores": _scores(model),
        "Licence": _licence(licence),
    }
    text = [f"{FRONT_MATTER}\n{_yaml(front)}\n{FRONT_MATTER}", f"# {name}", _summary(model, numbers)]
    text += [PROJECT, *(f"## {title}\n\n{content}" for title, content in sections.items() if content)]
    return "\n\n".join(text) + "\n"


def licence_of(source: Path) -> str | None:
    """Return the licence in the front matter of the card in a model folder, or None."""
    try:
        lines = limited_text(source / FILE_NAME).splitlines()
        if not lines or lines[0] != FRONT_MATTER:
            return None
        front = yaml_value("\n".join(lines[1 : lines.index(FRONT_MATTER, 1)]))
    except (OSError, ValueError, InputError):
        return None
    found = front.get("license") if isinstance(front, dict) else None
    return found if isinstance(found, str) else None


def _summary(model: Model, numbers: int) -> str:
    config, vocabulary = model.config, model.vocabulary
    text = (
        f"An ERNIE-Gram encoder of {config.num_hidden_layers} layers, width {config.hidden_size} and "
        f"{config.num_attention_heads} attention heads; {numbers:,} numbers. Converted from a folder in the format "
        f"`{model.format}`. Vocabulary: {len(vocabulary):,} tokens ({vocabulary.kind}), "
    )
    text += "lower case, without accents." if vocabulary.lowercase else "with case and accents."
    if model.lexicon is not None:
        own = model.lexicon.info.own
        origin = f" of the list `{own}`, which were not counted in a text," if own else ""
        text += f" It was pre-trained to predict {len(model.lexicon):,} n-grams{origin} beside the tokens."
    return text


def _training(model: Model) -> str:
    training = model.training or TrainingRecord()
    start = f", starting from the model `{training.start}`" if training.start else ""
    if training.task:
        return f"Fine-tuned on the task `{training.task}`{start}."
    if training.corpus:
        return f"Pre-trained on the corpus `{training.corpus}`{start}."
    return "The folder that it was converted from does not state the training text."


def _settings(model: Model) -> dict[str, Any]:
    prediction = {key: value for key, value in (model.pretraining or {}).items() if key in PREDICTION_SECTIONS}
    return {"model": asdict(model.config), **prediction, **(model.training.settings if model.training else {})}


def _scores(model: Model) -> str:
    scores = dict(model.training.scores) if model.training else {}
    step = scores.pop("step", None)
    if not scores:
        return "None recorded."
    shown = {key: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" for key, value in scores.items()}
    rows = "".join(f"\n| {key} | {value} |" for key, value in shown.items())
    at = "" if step is None else f", at step {step:,}"
    on = f"Of the task `{model.training.task}`" if model.training and model.training.task else "On held-out text"
    return f"{on}{at}:\n\n| | |\n|---|---:|{rows}"


def _licence(licence: str | None) -> str:
    text = "The licences of the training text, and of the model that training started from, apply to the weights."
    if licence is None:
        return f"Not stated. {text} Name one in the front matter (`license:`) before you publish this folder."
    return f"`{licence}`, as the folder that it was converted from states. {text}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False).strip()
