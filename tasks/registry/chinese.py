"""The Chinese tasks of the paper, as their authors distribute them and as upstream's task package does; and CLUE's.

CLUE (cluebenchmarks.com): labels are texts, even if they look like numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tasks.kinds.task import Split, Task, files
from tasks.layouts.benchmarks import C3, Chid, Cluener, CluewscMarked, Squad
from tasks.layouts.lines import JsonLines
from tasks.layouts.rows import Columns
from tasks.layouts.tables import Tsv
from tasks.registry.english import NLI_LABELS, SENTENCES

# XNLI's own download: one dev and one test file for 15 languages, and a train file with other columns.
XNLI_COLUMNS = {"text_a": "sentence1", "text_b": "sentence2", "label": "gold_label"}
XNLI_OFFICIAL = Tsv(XNLI_COLUMNS, where={"language": "zh"})
XNLI_OFFICIAL_TRAIN = Tsv({"text_a": "premise", "text_b": "hypo", "label": "label"})
XNLI_FOLDERS, MULTINLI = ("XNLI-1.0", "XNLI-MT-1.0"), "multinli/multinli.train.zh.tsv"
PAIRS = {"text_a": "text_a", "text_b": "text_b", "label": "label"}
TSV_FILES = {name: files(f"{name}.tsv") for name in ("train", "dev", "test")}

classification = partial(Task, language="zh", kind="classification", metric="accuracy")
# Upstream's task package has DuReader in SQuAD's format.
span = partial(Task, language="zh", kind="span", layout=Squad())

CHINESE = (
    classification(
        name="xnli",
        title="XNLI (zh)",
        layout=Tsv(PAIRS),
        splits={
            "train": files("train.tsv") | files("multinli.train.zh.tsv", MULTINLI, layout=XNLI_OFFICIAL_TRAIN),
            **{
                name: files(f"{name}.tsv") | files(f"xnli.{name}.tsv", layout=XNLI_OFFICIAL) for name in ("dev", "test")
            },
        },
        folders=(*XNLI_FOLDERS, "xnli", *(f"xnli/{name}" for name in XNLI_FOLDERS)),
        labels=("contradiction", "entailment", "neutral"),
        # The official train file says "contradictory", dev and test say "contradiction".
        label_aliases={"contradictory": "contradiction"},
        omitted_labels=("-",),
    ),
    classification(
        name="lcqmc",
        title="LCQMC",
        # The original has no header; upstream's copy has.
        layout=Tsv(PAIRS, header="auto", names=("text_a", "text_b", "label")),
        splits={name: files(f"{name}.tsv", f"{name}.txt") for name in ("train", "dev", "test")},
        folders=("lcqmc",),
        labels=("0", "1"),
    ),
    span(
        name="drcd",
        title="DRCD",
        metric="cmrc2018",
        splits={
            "train": files("DRCD_training.json", "train.json"),
            "dev": files("DRCD_dev.json", "dev.json"),
            "test": files("DRCD_test.json", "test.json"),
        },
        folders=("drcd",),
    ),
    span(
        name="cmrc2018",
        title="CMRC 2018",
        metric="cmrc2018",
        splits={
            "train": files("cmrc2018_train.json", "train.json", "cmrc2018_trial.json"),
            "dev": files("cmrc2018_dev.json", "dev.json"),
            "test": files("cmrc2018_test.json", "test.json", labelled=False),
        },
        folders=("cmrc2018", "cmrc2018_public", "clue/cmrc2018"),
        submission="json_object",
    ),
    span(
        name="dureader_robust",
        title="DuReader-robust",
        metric="dureader_robust",
        splits={
            "train": files("train.json"),
            "dev": files("dev.json"),
            "test": files("test.json", "test1.json", labelled=False),
        },
        folders=("dureader_robust", "dureader_robust-data"),
        submission="squad",
    ),
    span(
        name="dureader",
        title="DuReader, single document",
        metric="dureader_robust",
        splits={name: files(f"{name}.json") for name in ("train", "dev")},
        folders=("dureader",),
    ),
    Task(
        name="msra_ner",
        title="MSRA-NER",
        language="zh",
        kind="tagging",
        metric="conlleval",
        # Characters and tags are each joined in one field.
        layout=Tsv({"tokens": "text_a", "tags": "label"}, list_separator="\x02"),
        splits=TSV_FILES,
        folders=("msra_ner",),
        labels=("PER", "ORG", "LOC"),
    ),
    classification(
        name="chnsenticorp",
        title="ChnSentiCorp",
        layout=Tsv({"text_a": "text_a", "label": "label"}),
        splits=TSV_FILES,
        folders=("chnsenticorp",),
        labels=("0", "1"),
    ),
)


JSON_FILES: Mapping[str, Split] = {
    "train": files("train.json"),
    "dev": files("dev.json"),
    "test": files("test.json", labelled=False),
}
# CLUE 1.1 has new test files for TNEWS, CLUEWSC2020, C3 and ChID. The old ones, test1.0.json, are a split of their own.
TEST_1_0 = "test1.0"
TESTS: Mapping[str, Split] = {
    "test": files("test.json", "test1.1.json", labelled=False),
    TEST_1_0: files("test1.0.json", labelled=False),
}

# The IDs of TNEWS's 15 classes; 105 and 111 do not exist.
TNEWS_LABELS = tuple(str(number) for number in range(100, 117) if number not in (105, 111))
IFLYTEK_LABELS = tuple(str(number) for number in range(119))
CLUENER_TYPES = (
    *("address", "book", "company", "game", "government"),
    *("movie", "name", "organization", "position", "scene"),
)


def clue_task(name: str, title: str, **fields: Any) -> Task:
    """Return a task of CLUE with train.json, dev.json and test.json; `fields` override or extend its fields."""
    defaults = {
        "language": "zh",
        "splits": JSON_FILES,
        "folders": (name, f"{name}_public", f"clue/{name}"),
        "submission": "clue",
    }
    return Task(name=name, title=title, **{**defaults, **fields})


def clue_classification(name: str, title: str, columns: Columns, labels: tuple[str, ...], **fields: Any) -> Task:
    """Return a classification task of CLUE; see `clue_task`."""
    layout = JsonLines({"id": "id", **columns, "label": "label"})
    defaults = {"kind": "classification", "metric": "accuracy", "layout": layout, "labels": labels}
    return clue_task(name, title, **{**defaults, **fields})


CLUE = (
    clue_classification("afqmc", "AFQMC", SENTENCES, ("0", "1")),
    clue_classification("tnews", "TNEWS", {"text_a": "sentence"}, TNEWS_LABELS, splits={**JSON_FILES, **TESTS}),
    clue_classification("iflytek", "IFLYTEK", {"text_a": "sentence"}, IFLYTEK_LABELS),
    clue_classification("cmnli", "CMNLI", SENTENCES, NLI_LABELS, omitted_labels=("-",)),
    clue_classification(
        "ocnli",
        "OCNLI",
        SENTENCES,
        NLI_LABELS,
        omitted_labels=("-",),
        splits={
            **JSON_FILES,
            "train": files("train.50k.json", "train.json", "train.30k.json", "train.10k.json", "train.3k.json"),
        },
        submission_name="ocnli_50k",
    ),
    # The keywords, joined by spaces, are the first text, as in CLUE's baseline.
    clue_classification("csl", "CSL", {"text_a": "keyword", "text_b": "abst"}, ("0", "1")),
    clue_classification(
        "cluewsc2020",
        "CLUEWSC2020",
        {},
        ("true", "false"),
        layout=CluewscMarked(),
        splits={**JSON_FILES, **TESTS},
        submission_name="cluewsc",
    ),
    clue_task(
        "c3",
        "C3",
        kind="multiple_choice",
        metric="accuracy_by_id",
        layout=C3(),
        splits={
            **{
                name: files((f"c3-d-{name}.json", f"c3-m-{name}.json"), (f"d-{name}.json", f"m-{name}.json"))
                for name in ("train", "dev")
            },
            "test": files("test.json", "test1.1.json", ("c3-d-test.json", "c3-m-test.json"), labelled=False),
            TEST_1_0: TESTS[TEST_1_0],
        },
    ),
    clue_task(
        "chid",
        "ChID",
        kind="multiple_choice",
        metric="accuracy_by_id",
        layout=Chid(),
        splits={**{name: files((f"{name}.json", f"{name}_answer.json")) for name in ("train", "dev")}, **TESTS},
        submission="json_object",
    ),
    clue_task("cluener", "CLUENER", kind="tagging", metric="cluener", layout=Cluener(), labels=CLUENER_TYPES),
)
