"""YAML in which every value knows its line and column.

All scalars become strings (or None for an empty value): a column may be called `no` or `on`, and whoever wants a
number asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from weever_stream.model.errors import Problem, RuleError

Path = tuple[str | int, ...]
_NULL = "tag:yaml.org,2002:null"
_TOO_DEEP = "lists and mappings within each other, too deep to be read"
_QUOTE_HINT = "; a rule that holds ': ', ' #' or starts with '!' goes on its own line after `deny: |`"


class Document:
    """One YAML document: `data` as plain Python values, and the place of each of them."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.problems: list[Problem] = []
        self._values: dict[Path, yaml.Node] = {}
        self._keys: dict[Path, yaml.Node] = {}
        try:
            root = self._compose()
            self.data = None if root is None else self._convert(root, (), ())
        except RecursionError:
            raise RuleError((Problem(1, 1, _TOO_DEEP, file),)) from None

    def problem(self, message: str, path: Path, *, key: bool = False, offset: int | None = None) -> Problem:
        """A mistake at a value, at its key, or at a character of its text."""
        line, column = self._line_column(self._index(path, key, offset))
        return Problem(line, column, message, self.file)

    def line(self, path: Path) -> int:
        return self._line_column(self._index(path, False, None))[0]

    def _index(self, path: Path, key: bool, offset: int | None) -> int:
        if key and path in self._keys:
            return int(self._keys[path].start_mark.index)
        while path and path not in self._values:
            path = path[:-1]
        node = self._values.get(path)
        if node is None:
            return 0
        if offset is None or not isinstance(node, yaml.ScalarNode):
            return int(node.start_mark.index)
        return _source_index(self.text, node, _scalar_text(self.text, node), offset)

    def _line_column(self, index: int) -> tuple[int, int]:
        before = self.text[:index]
        return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1

    def _compose(self) -> yaml.Node | None:
        try:
            return yaml.compose(self.text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            message = f"not valid YAML: {error.problem or error.context}{_QUOTE_HINT}"
            raise RuleError((Problem(line, column, message, self.file),)) from None
        except yaml.YAMLError as error:
            message = "not valid YAML: " + " ".join(str(error).split())
            raise RuleError((Problem(1, 1, message, self.file),)) from None

    def _convert(self, node: yaml.Node, path: Path, parents: tuple[int, ...]) -> Any:
        self._values[path] = node
        if id(node) in parents:
            self.problems.append(self.problem("this value holds itself", path))
            return None
        parents = (*parents, id(node))
        if isinstance(node, yaml.MappingNode):
            return {name: self._convert(value, (*path, name), parents) for name, value in self._items(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self._convert(child, (*path, count), parents) for count, child in enumerate(node.value)]
        return None if node.tag == _NULL else _scalar_text(self.text, node)

    def _items(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, yaml.Node]]:
        seen: dict[str, int] = {}
        for key, value in node.value:
            line, column = self._line_column(key.start_mark.index)
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(Problem(line, column, "a key must be a plain word", self.file))
            elif name in seen:
                message = f'"{name}" is given twice, first in line {seen[name]}'
                self.problems.append(Problem(line, column, message, self.file))
            else:
                seen[name] = line
                self._keys[(*path, name)] = key
                yield name, value


def _scalar_text(text: str, node: yaml.Node) -> str:
    """The value of a scalar. `!(t.a = ...)` looks like a tag to YAML; here it is text."""
    if isinstance(node, yaml.ScalarNode) and node.tag.startswith("!") and not node.style:
        return " ".join(text[node.start_mark.index : node.end_mark.index].split())
    return str(node.value)


def _source_index(text: str, node: yaml.ScalarNode, value: str, offset: int) -> int:
    """Where in the file the character `offset` of a scalar's value stands: folding and escapes undone."""
    index, end = _content_start(text, node), int(node.end_mark.index)
    place = index
    for count, character in enumerate(value[: offset + 1]):
        if not character.isspace():
            found = text.find(character, index, end)
            place = found if found >= 0 else index
            index = place + _width(node.style, character)
        elif count == offset:
            place = index
    return place if offset < len(value) else min(index, end)


def _width(style: str | None, character: str) -> int:
    return 2 if style == "'" and character == "'" else 1


def _content_start(text: str, node: yaml.ScalarNode) -> int:
    start = int(node.start_mark.index)
    if node.style in ("'", '"'):
        return start + 1
    return text.index("\n", start) + 1 if node.style in ("|", ">") else start
