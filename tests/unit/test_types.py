"""Raw values as values of a column type: what is read, and what is refused with a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from weever_stream.model.types import ColumnType


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        ("long", "9007199254740993", 2**53 + 1),
        ("long", "1e3", 1000),
        ("long", Decimal("5.0"), 5),
        ("double", "NaN", None),
        ("decimal", Decimal("sNaN"), None),
        ("decimal(10,2)", "1.10", Decimal("1.10")),
        ("timestamp", "2020-01-01T01:00:00+01:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("timestamp", "2020-01-01 00:00:00", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_is_read(type_: str, raw: object, value: object) -> None:
    found = ColumnType.parse(type_).read(raw)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        ("byte", 128),
        ("long", "1e40"),
        ("long", Decimal("1E+30000")),
        ("long", float("inf")),
        ("long", "1.5"),
        ("double", "1_000"),
        ("double", True),
        ("date", "2020-02-30"),
        ("timestamp", "0001-01-01T00:00:00+05:00"),
        ("timestamp", "9999-12-31T23:59:59-05:00"),
        ("timestamp_ntz", "2020-01-01T00:00:00Z"),
        ("string", 5),
    ],
)
def test_what_does_not_fit_is_refused_with_the_type(type_: str, raw: object) -> None:
    with pytest.raises(ValueError, match=f" is no {type_}$"):
        ColumnType.parse(type_).read(raw)
