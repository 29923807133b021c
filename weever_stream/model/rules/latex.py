"""LaTeX as papers print it, in the plain signs that the grammar knows.

Every part keeps its place, and what a command needs more room for than its sign is filled with spaces: a mistake is
told at the column where it stands in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SIGNS = {
    "¬": ("neg", "lnot", "urcorner"),
    "∧": ("land", "wedge"),
    "∨": ("lor", "vee"),
    "∀": ("forall",),
    "∈": ("in",),
    ":": ("colon",),
    "≠": ("ne", "neq"),
    "<": ("lt",),
    ">": ("gt",),
    "≤": ("le", "leq", "leqslant"),
    "≥": ("ge", "geq", "geqslant"),
    "'": ("prime",),
    "α": ("alpha",),
    "β": ("beta",),
    "φ": ("phi", "varphi"),
    "ψ": ("psi",),
    "": ("left", "right", "big", "bigl", "bigr", "Big", "Bigl", "Bigr", "quad", "qquad"),
}
_SIGN_OF = {command: sign for sign, commands in _SIGNS.items() for command in commands}
_FONT = re.compile(r"(\.?\s*)\\(?:text|math)(?:tt|it|sf|rm|bf|bb|cal)?\s*\{([^{}\\]*)\}")
_UNDERSCORED = re.compile(r"\w+(?:\\_\w+)+")
_PLAIN = re.compile(r"\s*\w+\s*")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_MARK = re.compile(r"_\{([\w,]+)\}|\^\{?(')\s*\}?")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{\w+\*?\}(?:\{\w+\})?")
_SPACING = re.compile(r"[$&~]|\\[,;:! ]")


def plain_rules(text: str) -> Iterator[tuple[int, str]]:
    r"""The rules of a line, each with its place in it: one, but for an array with one in each row.

    >>> [(place, " ".join(rule.split())) for place, rule in plain_rules(r"$\neg(t_{x}.\text{zip} = t_y.zip)$")]
    [(0, '¬ (t_x . zip = t_y.zip)')]
    """
    rules = _plain(text) if "\\" in text or text.lstrip().startswith("$") else text
    start = depth = 0
    for place, sign in enumerate(rules):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "\n" and depth <= 0:
            yield start, rules[start:place]
            start = place
    yield start, rules[start:]


def _plain(text: str) -> str:
    text = _ENVIRONMENT.sub(lambda found: " " * len(found[0]), text)
    text = _UNDERSCORED.sub(lambda found: found[0].replace("\\_", "_").ljust(len(found[0])), text)
    text = _FONT.sub(_content, text.replace("\\\\", " \n"))
    text = _COMMAND.sub(_sign, text)
    text = _MARK.sub(_mark, text)
    return _SPACING.sub(lambda found: " " * len(found[0]), text)


def _content(found: re.Match[str]) -> str:
    r"""What `\text{...}` holds; the name of a column that is no plain word goes in quotes."""
    name, room = found[2], found.start(2) - found.end(1)
    quoted = found[1].startswith(".") and not _PLAIN.fullmatch(name)
    shown = f'"{name}"'.rjust(room + len(name) + 1) if quoted else " " * room + name
    return (found[1] + shown).ljust(len(found[0]))


def _sign(found: re.Match[str]) -> str:
    """The sign of a command, close to the index that may follow."""
    sign, size = _SIGN_OF.get(found[1], found[0]), len(found[0])
    return sign.rjust(size) if found.string.startswith("_", found.end()) else sign.ljust(size)


def _mark(found: re.Match[str]) -> str:
    """An index or a prime, close to the letter it belongs to."""
    return (found[2] or "_" + found[1].replace(",", "_")).ljust(len(found[0]))
