"""The tasks of CLUE (cluebenchmarks.com). Labels are texts, even if they look like numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.kinds.task import Split, Task, files
from tasks.layouts.clue import C3, Chid, Cluener, CluewscMarked
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.rows import Columns
from tasks.registry.glue import NLI_LABELS, SENTENCES

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
