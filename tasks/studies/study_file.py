"""The description of a study: a YAML file in conf/studies, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import flatten
from reader.errors import located, similar
from reader.system.installation import CONF, named_settings
from reader.system.untrusted_text import read_yaml
from tasks.registry.task_file import find_task

STUDIES = CONF / "studies"
TRAIN_TEXT, HELD_OUT_TEXT = "train", "held_out"
# `vocabulary: start` means the vocabulary of the given model.
OF_START = "start"
Options = Mapping[str, Any]


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus of a study.

    Attributes:
        text: the text from which it is made, "train" or "held_out".
        lexicon: the name of a lexicon of the study, or None for units that are tokens.
    """

    text: str = TRAIN_TEXT
    lexicon: str | None = None


@dataclass(frozen=True)
class Variant:
    """A model of a study.

    Attributes:
        what: a description for tables and figures.
        config: the file with the settings of its pre-training; None for the given model without further training.
        corpus, held_out: names of corpora of the study.
        options: settings that differ from that file, `section.key: value`.
        start: whether it starts from the given model.
        finetuning: settings of its fine-tunings that differ from those of the task.
    """

    what: str
    config: str | None
    corpus: str
    held_out: str
    options: Options
    start: bool
    finetuning: Options


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes:
        title: the title of its tables.
        seeds, finetuning_seeds: seeds of each pre-training, and of each fine-tuning of each model.
        reference: the variant with which the others are compared.
        vocabulary: options of `ernie-gram vocab`, or "start".
        lexicons: name -> options of `ernie-gram lexicon`.
        corpora, variants: by name.
        tasks: task -> settings that differ from conf/tasks.
    """

    title: str
    seeds: tuple[int, ...]
    finetuning_seeds: tuple[int, ...]
    reference: str
    vocabulary: Options | str
    lexicons: Mapping[str, Options]
    corpora: Mapping[str, CorpusPlan]
    variants: Mapping[str, Variant]
    tasks: Mapping[str, Options]

    @property
    def needs_start(self) -> bool:
        """Whether a model must be given."""
        return self.vocabulary == OF_START or any(variant.start for variant in self.variants.values())


def read_study(name: str) -> Study:
    """Return a study: the name of a file in conf/studies, or the path of a YAML file.

    Raises InputError that names the file and the key.
    """
    path = named_settings(name, STUDIES, "study")
    tree = read_yaml(path)
    with located(path):
        return _study(path.stem, tree)


def _study(name: str, tree: dict[str, Any]) -> Study:
    keys = ("title", "seeds", "reference", "vocabulary", "lexicons", "corpora", "variants", "finetuning")
    _check_keys("", tree, keys)
    finetuning = _mapping("finetuning", tree.get("finetuning"))
    _check_keys("finetuning.", finetuning, ("seeds", "options", "tasks"))
    vocabulary = tree.get("vocabulary", {})
    study = Study(
        str(tree.get("title", name)),
        _seeds("seeds", tree.get("seeds", [1])),
        _seeds("finetuning.seeds", finetuning.get("seeds", [1])),
        str(tree.get("reference", "")),
        OF_START if vocabulary == OF_START else _mapping("vocabulary", vocabulary),
        _each("lexicons", tree, _mapping),
        _each("corpora", tree, _corpus),
        _each("variants", tree, _variant),
        _tasks(finetuning),
    )
    require(bool(study.variants), "variants", "expected at least one variant")
    _check_name("reference", study.reference, study.variants)
    for key, corpus in study.corpora.items():
        _check_name(f"corpora.{key}.text", corpus.text, (TRAIN_TEXT, HELD_OUT_TEXT))
        if corpus.lexicon is not None:
            _check_name(f"corpora.{key}.lexicon", corpus.lexicon, study.lexicons)
    for key, variant in study.variants.items():
        for name in ("corpus", "held_out") if variant.config else ():
            _check_name(f"variants.{key}.{name}", getattr(variant, name), study.corpora)
    return study


def _corpus(where: str, value: Any) -> CorpusPlan:
    tree = _mapping(where, value)
    _check_keys(f"{where}.", tree, ("text", "lexicon"))
    return CorpusPlan(**tree)


def _variant(where: str, value: Any) -> Variant:
    tree = _mapping(where, value)
    _check_keys(f"{where}.", tree, ("what", "config", "corpus", "held_out", "options", "start", "finetuning"))
    config = tree.get("config")
    start = bool(tree.get("start", False))
    require(bool(config) or start, f"{where}.config", "must be given, or start: true for the given model as it is")
    options = flatten(_mapping(f"{where}.options", tree.get("options")))
    corpora = (str(tree.get("corpus", "corpus")), str(tree.get("held_out", "held_out")))
    finetuning = flatten(_mapping(f"{where}.finetuning", tree.get("finetuning")))
    return Variant(str(tree.get("what", "")), config, *corpora, options, start, finetuning)


def _tasks(finetuning: Mapping[str, Any]) -> dict[str, Options]:
    """Return the settings of each task: those of all tasks, and its own, which override them."""
    common = flatten(_mapping("finetuning.options", finetuning.get("options")))
    tasks = {str(task): own for task, own in _mapping("finetuning.tasks", finetuning.get("tasks")).items()}
    names = [find_task(task).name for task in tasks]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    require(not twice, "finetuning.tasks", f"two tasks have the name {', '.join(twice)}")
    return {task: common | flatten(_mapping(f"finetuning.tasks.{task}", own)) for task, own in tasks.items()}


def _each(key: str, tree: Mapping[str, Any], read: Callable[[str, Any], Any]) -> dict[str, Any]:
    return {str(name): read(f"{key}.{name}", value) for name, value in _mapping(key, tree.get(key)).items()}


def _mapping(where: str, value: Any) -> dict[str, Any]:
    require(value is None or isinstance(value, dict), where, "expected `key: value` lines")
    return value or {}


def _seeds(where: str, value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and bool(value) and all(type(seed) is int and seed >= 0 for seed in value)
    require(is_list and len(set(value)) == len(value), where, "expected a list of distinct seeds, such as [1, 2, 3]")
    return tuple(value)


def _check_keys(prefix: str, tree: Mapping[str, Any], keys: Iterable[str]) -> None:
    for key in tree:
        _check_name(f"{prefix}{key}", key, keys)


def _check_name(where: str, name: object, known: Iterable[str]) -> None:
    known = list(known)
    require(name in known, where, f"{name!r} is none of {', '.join(known)}{similar(name, known)}")
