"""The examples of the documentation work as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weever_stream import Rules
from weever_stream.model.rules.holoclean import load_listing

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RULE_FILES = [text for language, text in BLOCKS if language == "yaml" and "rules:" in text]
LISTS = [text for language, text in BLOCKS if language == "text" and re.search(r"EQ\(|∀|\\neg", text)]


@pytest.mark.parametrize("text", RULE_FILES)
def test_the_rule_files_load_without_a_warning(text: str) -> None:
    rules = Rules.loads(text)
    assert len(rules) >= 1
    assert rules.warnings == ()


@pytest.mark.parametrize("text", LISTS)
def test_the_lists_can_be_imported(text: str) -> None:
    assert len(load_listing(text, "tax.txt")) == 2


def test_the_page_has_its_examples() -> None:
    assert (len(RULE_FILES), len(LISTS)) == (3, 3)
