"""Reports for tests: the folder of a run that is made by hand, the page of the command, and its curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ernie_gram.report import main
from ernie_gram.run.run_log import RunLog
from tests.support.commands import Done, call
from tests.support.html_page import Page


def report(tmp_path: Path, *arguments: str | Path, examples: int = 0) -> tuple[Page, Done]:
    """Run the command; return its page and what it printed."""
    target = tmp_path / "report.html"
    done = call(main, *map(str, arguments), "--output", str(target), "--examples", str(examples), "--overwrite")
    assert done.returncode == 0, done.stderr
    return Page(target), done


def made_run(folder: Path, evaluations: dict[int, dict[str, Any]], **settings: Any) -> Path:
    """Write the folder of a pre-training with some evaluations, and a record of training before each."""
    folder.mkdir(parents=True)
    tree = {"seed": 1, "paths": {"output": str(folder)}, "data": {"batch_size": 8}, "trainer": {"max_steps": 20}}
    (folder / "config.yaml").write_text(yaml.safe_dump(tree | settings), encoding="utf-8")
    (folder / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    log = RunLog(folder, True, visualdl=False, start=0, max_steps=20)
    for step, values in evaluations.items():
        log.record("train", step, {"loss": 5.0 - step / 10, "coarse": 1.0, "learning_rate": 0.1})
        log.record("eval", step, values)
    log.close()
    return folder


def perplexities(units: float, ngrams: float) -> dict[int, dict[str, float]]:
    """Return the evaluations of a run whose perplexities end with the given ones."""
    return {
        0: {"perplexity": 2 * units, "ngram_perplexity": 9.5},
        20: {"perplexity": units, "ngram_perplexity": ngrams},
    }


def curves(page: Page) -> dict[str, dict[str, str]]:
    """Return the points of each chart by its title, those of each curve by its label."""
    found: dict[str, dict[str, str]] = {}
    for name, attributes in page.elements:
        if name == "svg":
            title = attributes["aria-label"].partition(". ")[0]
            found[title] = {}
        elif name == "path" and "data-p" in attributes:
            found[title][attributes["data-l"]] = attributes["data-p"]
    return found


def assert_self_contained(page: Page) -> None:
    """Check that a page loads nothing, and that all its links lead into itself."""
    assert page.unclosed == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len({*ids})
    for name, attributes in page.elements:
        assert name not in ("img", "link", "iframe", "object", "embed", "base", "form", "use"), name
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert attributes.get("href", "#")[1:] in ("", *ids)
        assert not [key for key in attributes if key.startswith("on")]
        assert "url(" not in attributes.get("style", "")
    assert len(page.attributes("script")) == 1
    [policy] = [each["content"] for each in page.attributes("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none';")
