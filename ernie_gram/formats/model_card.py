"""Model cards: what a model is, what it was trained on, how it scores, what an export lost, and how to load it.

Markdown, with YAML front matter as model hubs read it. Nothing is invented: what is not known is left out or named as
not stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ernie_gram.formats.heads import PREDICTION_SECTIONS
from ernie_gram.formats.model import Model, TrainingRecord
from ernie_gram.model.config import ModelConfig

FILE_NAME = "README.md"
FRONT_MATTER = "---"


@dataclass(frozen=True)
class Usage:
    """The parts of a card that depend on the format of the folder.

    Attributes:
        toolkit: value of `library_name` in the front matter.
        loading: Markdown: how to load the folder, with an example.
        tokenizer: Markdown: how its tokenizer differs from ours; empty if it is ours.
        remarks: what its library does otherwise although nothing is lost, one sentence each.
        output_layer: Markdown: the output layer of a task that the folder has; empty without one.
        numbers: how many numbers the folder has, without prediction heads; None if it has all of the model.
    """

    toolkit: str
    loading: str
    tokenizer: str = ""
    remarks: tuple[str, ...] = ()
    output_layer: str = ""
    numbers: int | None = None


def model_card(
    model: Model,
    name: str,
    usage: Usage,
    losses: Iterable[str] = (),
    licence: str | None = None,
) -> str:
    """Return the card of a model folder, in Markdown.

    Args:
        model: the model that is described, as it was before it was written.
        name: the title, usually the name of the folder.
        losses: what the folder does not hold or what its library computes differently, one sentence each.
        licence: the identifier of the licence of the weights, as hubs spell it, such as "apache-2.0".
    """
    sections = {
        "What is lost": _lost(losses, usage.remarks),
        "How to load it": usage.loading.strip(),
        "Tokenizer": usage.tokenizer.strip(),
        "Training data": "\n\n".join(_data(model)),
        "Settings": _settings(model),
        "Scores": _scores(model),
        "Licence": _licence(licence),
    }
    text = [_front_matter(usage.toolkit, licence), f"# {name}", _summary(model, usage)]
    text += [f"## {title}\n\n{content}" for title, content in sections.items() if content]
    return "\n\n".join(text) + "\n"


def licence_of(source: Path) -> str | None:
    """Return the licence in the front matter of the card in a model folder, or None."""
    try:
        lines = (source / FILE_NAME).read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != FRONT_MATTER:
            return None
        front = yaml.safe_load("\n".join(lines[1 : lines.index(FRONT_MATTER, 1)]))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    found = front.get("license") if isinstance(front, dict) else None
    return found if isinstance(found, str) else None


def _front_matter(toolkit: str, licence: str | None) -> str:
    front = {"library_name": toolkit, "tags": ["ernie-gram"], **({"license": licence} if licence else {})}
    return "\n".join((FRONT_MATTER, yaml.safe_dump(front, sort_keys=False).strip(), FRONT_MATTER))


def _summary(model: Model, usage: Usage) -> str:
    config, numbers = model.config, usage.numbers
    has_heads = numbers is None and model.pretraining is not None
    if numbers is None:
        numbers = sum(int(np.size(values)) for values in model.parameters.values())
    parts = [
        f"An ERNIE-Gram encoder of {config.num_hidden_layers} layers, width {config.hidden_size} and "
        f"{config.num_attention_heads} attention heads; {numbers:,} numbers"
        f"{', prediction heads included' if has_heads else ''}.",
        *([usage.output_layer] if usage.output_layer else []),
        f"Converted from a folder in the format `{model.format}`.",
    ]
    if model.lexicon is not None:
        parts.append(f"It was pre-trained to predict {len(model.lexicon):,} n-grams beside the tokens.")
    return " ".join(parts)


def _data(model: Model) -> Iterator[str]:
    training = model.training or TrainingRecord()
    start = f", starting from the model `{training.start}`" if training.start else ""
    if training.corpus:
        yield f"Pre-trained on the corpus `{training.corpus}`{start}."
    if training.task:
        yield f"Fine-tuned on the task `{training.task}`{start}."
    if model.lexicon is not None:
        info = model.lexicon.info
        counted = ", ".join(f"{total:,} {order}-grams" for order, total in info.totals.items())
        yield (
            f"N-grams from a text with {counted}; digest of the text `{info.text}`, {info.han} segmentation of Han "
            "characters."
        )
    if model.vocabulary is not None:
        folding = "lower case, without accents" if model.vocabulary.lowercase else "with case and accents"
        yield f"Vocabulary: {len(model.vocabulary):,} tokens ({model.vocabulary.kind}), {folding}."
    if not training.corpus and not training.task:
        yield "The folder that it was converted from does not state the training text."


def _settings(model: Model) -> str:
    settings: dict[str, Any] = {"model": _differences(model.config)}
    settings |= {key: value for key, value in (model.pretraining or {}).items() if key in PREDICTION_SECTIONS}
    settings |= model.training.settings if model.training else {}
    return f"```yaml\n{yaml.safe_dump(settings, sort_keys=False).strip()}\n```"


def _differences(config: ModelConfig) -> dict[str, Any]:
    """Return the settings of the encoder; sizes always, others where they are not the default."""
    default, always = asdict(ModelConfig()), ("hidden_size", "num_hidden_layers", "num_attention_heads")
    return {key: value for key, value in asdict(config).items() if key in always or value != default[key]}


def _scores(model: Model) -> str:
    scores = dict(model.training.scores) if model.training else {}
    step = scores.pop("step", None)
    if not scores:
        return "None recorded."
    rows = "".join(f"\n| {key} | {value:.4g} |" for key, value in scores.items())
    at = "" if step is None else f", at step {step:,}"
    on = f"Of the task `{model.training.task}`" if model.training and model.training.task else "On held-out text"
    return f"{on}{at}:\n\n| | |\n|---|---:|{rows}"


def _licence(licence: str | None) -> str:
    text = "The licences of the training text, and of the model that training started from, apply to the weights."
    if licence is None:
        return f"Not stated. {text} Name one in the front matter (`license:`) before you publish this folder."
    return f"`{licence}`, as the folder that it was converted from states. {text}"


def _lost(losses: Iterable[str], remarks: Iterable[str]) -> str:
    """Return the losses, which the console lists too, and after them what is only different."""
    lost = _bullets(losses) or "Nothing: the library computes the same numbers as the original model."
    different = _bullets(remarks)
    return f"{lost}\n\nNot lost, but different in the library:\n\n{different}" if different else lost


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
