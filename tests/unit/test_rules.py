"""The rule language: what is read, what is refused and with which words, and what the rules say in plain English."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from weever_stream import Rules
from weever_stream.model.errors import RuleError
from weever_stream.model.rules.constraint import DenialConstraint, Emit, RuleClass, Severity, Tolerance
from weever_stream.model.rules.message import Message
from weever_stream.model.rules.predicate import Constant, Differ, Predicate
from weever_stream.model.rules.sentences import denial, not_evaluated, sentence

HEAD = """\
version: 1
dataset: tax
key: [id]
columns:
  id: long
  zip: string
  city: string
  state: string
  ssn: string
  salary: double
  rate: double
  amount: decimal(10,2)
  n: int
  flag: bool
  hired: date
  ended: date
  seen: timestamp
  "Zip Code": string
rules:
"""
FIRST_RULE_LINE = HEAD.count("\n") + 1
NO_NOT = '"not" stands only before a whole rule in parentheses: elsewhere write the opposite comparison'
ODD_NAME = '; the name of a column that is no plain word goes in quotes, such as t."Zip Code"'
ZIP_CITY = "not(t.zip = t'.zip and t.city != t'.city)"


def load(*rules: str, head: str = HEAD) -> Rules:
    """Each rule is the inside of a YAML mapping in braces, or several lines."""
    return Rules.loads(head + "".join(f"  - {rule}\n" for rule in rules))


def one(body: str, head: str = HEAD) -> DenialConstraint:
    return load(f"{{id: r, {body}}}", head=head).constraints[0]


def deny(text: str, *more: str) -> DenialConstraint:
    lines = ["id: r", "deny: |", f"  {text}", *more]
    return load("\n    ".join(lines)).constraints[0]


def refused(*rules: str) -> list[str]:
    """What is told of each mistake, without its place."""
    with pytest.raises(RuleError) as caught:
        load(*rules)
    return [problem.message for problem in caught.value.problems]


def refused_deny(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        deny(text)
    (problem,) = caught.value.problems
    assert problem.message.startswith("rule r: ")
    return problem.message.removeprefix("rule r: ")


@pytest.mark.parametrize(
    "text",
    [
        "t.zip = t'.zip and t.city != t'.city",
        "not(t.zip = t'.zip and t.city != t'.city)",
        "NOT (t.zip == t'.zip AND t.city <> t'.city)",
        "!(t.zip = u.zip && u.city != t.city)",
        "¬(s.zip = t.zip ∧ s.city ≠ t.city)",
        "t1.zip=t2.zip and t1.city!=t2.city",
        "T1.zip = T2.zip & T1.city != T2.city",
        "(t.zip = t’.zip) and ((t.city != t′.city))",
        "t.\"zip\" = t'.`zip` and t.city != t'.city",
        "t.zip = t'.zip and t.city != t'.city and t.zip = t'.zip",
    ],
)
def test_deny_in_all_its_spellings(text: str) -> None:
    rule = deny(text)
    assert str(rule) == ZIP_CITY
    assert rule.version == one("fd: zip -> city").version


@pytest.mark.parametrize("text", ["!(t.zip = t'.zip and t.city != t'.city)", "¬(t.zip = t'.zip ∧ t.city ≠ t'.city)"])
def test_a_negation_needs_no_quotes_in_yaml(text: str) -> None:
    assert str(load(f"id: r\n    deny: {text}").constraints[0]) == ZIP_CITY


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("t.n ≤ t'.n", "t.n <= t'.n"),
        ("t.n ≥ t'.n", "t.n >= t'.n"),
        ("t'.n < t.n", "t.n > t'.n"),
        ("5 < t.n", "t.n > 5"),
        ("t'.n > 5", "t.n > 5"),
        ("s.zip = t.state", "t.zip = t'.state"),
        ("t.hired > t.ended", "t.ended < t.hired"),
        ("t.zip = t'.state", "t.zip = t'.state"),
        ("t.\"Zip Code\" = 'it''s'", "t.\"Zip Code\" = 'it''s'"),
        ("t.flag = TRUE and t.n = -3", "t.flag = true and t.n = -3"),
        ("t.amount > t'.rate", "t.amount > t'.rate"),
    ],
)
def test_what_a_text_means(text: str, meaning: str) -> None:
    assert str(deny(text)) == f"not({meaning})"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("t.n = 5", 5),
        ("t.salary = 0.1", 0.1),
        ("t.amount = 0.1", Decimal("0.1")),
        ("t.amount = 1e2", 100),
        ("t.salary < 1e300", 1e300),
        ("t.flag = false", False),
        ("t.zip = ''", ""),
        ("t.hired = '2020-02-29'", date(2020, 2, 29)),
        ("t.seen < '2020-01-01T00:00:00+02:00'", datetime(2019, 12, 31, 22, tzinfo=UTC)),
        ("t.seen < '2020-01-01'", datetime(2020, 1, 1, tzinfo=UTC)),
        ("t.id = 9007199254740993", 2**53 + 1),
    ],
)
def test_constants_take_the_type_of_their_column(text: str, value: object) -> None:
    (condition,) = deny(text).conditions
    assert isinstance(condition, Predicate)
    assert isinstance(condition.right, Constant)
    assert (condition.right.value, type(condition.right.value)) == (value, type(value))


def test_numbers_of_different_types_compare_by_exact_value() -> None:
    rule = deny("t.id = t'.salary")
    assert rule.holds({"id": 2**53}, {"salary": 2.0**53})
    assert not rule.holds({"id": 2**53 + 1}, {"salary": 2.0**53})


def test_a_comparison_with_null_or_nan_is_never_true() -> None:
    rule = deny("t.salary != t'.salary")
    assert rule.holds({"salary": 1.0}, {"salary": 2.0})
    assert not rule.holds({"salary": None}, {"salary": 2.0})
    assert not rule.holds({"salary": float("nan")}, {"salary": 2.0})


def test_unique_and_fd() -> None:
    assert str(one("unique: [zip, n]")) == "not(t.zip = t'.zip and t.n = t'.n)"
    assert str(one("fd: 'zip, n -> city'")) == "not(t.zip = t'.zip and t.n = t'.n and t.city != t'.city)"
    several = one("fd: '\"Zip Code\" → state, city'")
    assert Differ(("city", "state")) in several.conditions
    row = {"Zip Code": "1", "city": "LA", "state": "CA"}
    assert several.holds(row, row | {"city": "SF"})
    assert several.holds(row, row | {"city": None, "state": "NV"})
    assert not several.holds(row, row | {"city": None})


def test_an_fd_forgets_the_columns_that_cannot_differ() -> None:
    rule = one("fd: 'zip -> zip, city'")
    assert str(rule) == ZIP_CITY
    assert not_evaluated(rule) == ["t.zip != t'.zip (it can never hold here)"]


def test_where_filters_both_rows_and_stays_known() -> None:
    rule = one("fd: zip -> city, where: t.n > 1")
    assert str(rule) == "not(t.zip = t'.zip and t.city != t'.city and t.n > 1 and t'.n > 1)"
    assert [str(p) for p in rule.where] == ["t.n > 1"]
    assert rule.is_symmetric
    assert str(one("deny: t.hired > t.ended, where: t.n > 1")) == "not(t.ended < t.hired and t.n > 1)"
    assert str(one("deny: \"t'.hired > t'.ended\", where: t.n > 1")) == ("not(t.ended < t.hired and t.n > 1)")


def test_settings_and_their_defaults() -> None:
    plain = one("unique: [zip]")
    assert (plain.severity, plain.emit, plain.max_pairs, plain.tolerate) == (
        Severity.WARNING,
        Emit.PAIRS,
        10_000,
        Tolerance(),
    )
    full = one(
        "unique: [zip], severity: critical, description: One., tags: {owner: me, x: 1}, tolerate: 0.1%, "
        "emit: groups, max_pairs: 5"
    )
    assert (full.severity, full.description, full.emit, full.max_pairs) == (Severity.CRITICAL, "One.", Emit.GROUPS, 5)
    assert full.tags == {"owner": "me", "x": "1"}
    assert full.tolerate.allowed(5_000) == 5
    assert one("unique: [zip], tolerate: 3").tolerate.allowed(5_000) == 3


def test_without_columns_any_name_will_do() -> None:
    head = "version: 1\ndataset: d\nkey: []\nrules:\n"
    assert str(one("deny: t.anything < t'.other", head=head)) == "not(t.anything < t'.other)"
    assert str(one("deny: t.no = 'x'", head=head)) == "not(t.no = 'x')"


def test_holoclean_notation_is_read() -> None:
    lines = [
        "t1&t2&EQ(t1.zip,t2.zip)&IQ(t1.city,t2.city)",
        "# a comment",
        "t1&t2&EQ(t1.State Name, t2.State Name)&LT(t1.a,t2.a)&GTE(t1.b,t2.b)",
        't1&EQ(t1.kind,"x")&GT(t1.n,5)&LTE(t1.m,-1.5)',
        "t1&t2&EQ(t1.zip,t2.zip)&IQ(t1.state,t2.state)",
        "t1&t2&EQ(t1.zip,t2.zip)&LT(t1.city,t2.city)&IQ(t1.n,t2.n)",
    ]
    rules = Rules.loads("\n".join(lines), file="data/tax_dc.txt")
    assert (rules.dataset, rules.key) == ("tax_dc", ())
    assert {rule.id: str(rule) for rule in rules} == {
        "zip_city": ZIP_CITY,
        "state_name_a_b": 'not(t."State Name" = t\'."State Name" and t.a < t\'.a and t.b >= t\'.b)',
        "kind_n_m": "not(t.kind = 'x' and t.n > 5 and t.m <= -1.5)",
        "zip_state": "not(t.zip = t'.zip and t.state != t'.state)",
        "zip_city_n": "not(t.zip = t'.zip and t.city < t'.city and t.n != t'.n)",
    }
    assert rules.warnings == ("rule zip_city_n adds nothing: each of its violations is also one of rule zip_city",)


def test_the_same_rule_twice_in_a_list_is_refused() -> None:
    with pytest.raises(RuleError, match="l:2:1: this rule means the same as the one in line 1"):
        Rules.loads("t1&t2&EQ(t1.a,t2.a)\nt1&t2&EQ(t2.a,t1.a)", file="l")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("t.n < t'.n and t.n > t'.n", "it can never be violated: t.n < t'.n and t.n > t'.n cannot both hold"),
        ("t.n > 1 and t.n < 2", "it can never be violated: t.n > 1 and t.n < 2 cannot both hold"),
        ("t.n < t.n", "it can never be violated: t.n < t.n never holds"),
        ("t.n = 9999999999", "it can never be violated: t.n = 9999999999 never holds"),
        ("t.zip < ''", "it can never be violated: t.zip < '' never holds"),
        (
            "t.flag != true and t.flag != false",
            "it can never be violated: t.flag != true and t.flag != false cannot both hold",
        ),
        (
            "t.n = 3 and t'.n = 3 and t.n != t'.n",
            "it can never be violated: t.n = 3 and t'.n = 3 and t.n != t'.n cannot all hold",
        ),
        ("t.id = t'.id and t.n != t'.n", "it can never be violated: no two rows have the same id, which is the key"),
        ("t.id != t'.id", "every pair of rows violates it: any two differ in id, which is the key"),
        ("t.n = t.n", "every row with a value in n violates it"),
        ("t.n = t.n and t'.zip >= ''", "every pair of rows with a value in n, zip violates it"),
        ("1 = 1", "every row violates it"),
        ("t.n = 'a'", "cannot compare n (int) with the string 'a'"),
        ("t.zip > t'.n", "cannot compare zip (string) with n (int)"),
        ("t.hired = t'.seen", "cannot compare hired (date) with seen (timestamp)"),
        ("t.flag = 1", "cannot compare flag (bool) with the number 1"),
        ("t.zip = 90001", "cannot compare zip (string) with the number 90001: write '90001' in quotes"),
        ("t.zip = true", "cannot compare zip (string) with the bool true: write 'true' in quotes"),
        ("t.n = '5'", "cannot compare n (int) with the string '5': write 5 without quotes"),
        ("t.hired > '9999-12-31'", "it can never be violated: t.hired > '9999-12-31' never holds"),
        ('t.zip = "LA"', '"LA" is the name of a column: write t."LA", or \'LA\' for a text'),
        ("t.D-Code = 5", f'expected a comparison (= != < <= > >=), found "-"{ODD_NAME}'),
        ("t.Zip Code = 'a'", f'expected a comparison (= != < <= > >=), found "Code"{ODD_NAME}'),
        ("t.1st = 'a'", f'expected a column name, found "1st"{ODD_NAME}'),
        ("t.zip like 'a'", 'expected a comparison (= != < <= > >=), found "like"'),
        ("t.n = 1 and not(t.zip = 'a')", NO_NOT),
        ("not t.n = 1", NO_NOT),
        ("t.flag = 'True'", "cannot compare flag (bool) with the string 'True': write true without quotes"),
        ("t.hired < 'soon'", "'soon' is no date"),
        ("t.n = null", "a rule cannot ask for NULL: a comparison with it is never true, so such rows break no rule"),
        ("t.n is null", "a rule cannot ask for NULL: a comparison with it is never true, so such rows break no rule"),
        ("t.n = 1 or t.n = 2", '"or" is no part of a rule: write one rule for each alternative'),
        ("t.zip = x.zip", 'unknown row "x": the rows are called t and t\''),
        ("t.zip = t1.zip", "the rows are called t, t1: use one pair of names, such as t and t'"),
        ("t.zip = 'a", "the quote ' is not closed"),
        ("t.zip t'.zip", 'expected a comparison (= != < <= > >=), found "t"'),
        ("t.zip = t'.zip and", "expected a column such as t.zip or a constant, found the end of the text"),
        ("t.zip = zip", "zip is no constant: write t.zip or 'zip'"),
        ("t.n < 1e999999999", "the number 1e999999999 is out of range"),
        ("t.amount < 1e99999999999999999999", "the number 1e99999999999999999999 is out of range"),
        ("t.n = " + "9" * 5000, "the number " + "9" * 37 + "... is out of range"),
    ],
)
def test_a_deny_that_is_refused_says_why(text: str, told: str) -> None:
    assert refused_deny(text) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("deny: t.ziip = t'.zip", 'unknown column "ziip" in rule r: did you mean "zip"?'),
        ("unique: [zip, citty]", 'unknown column "citty" in rule r: did you mean "city"?'),
        ("fd: zip -> qqq", 'unknown column "qqq" in rule r'),
        ("fd: zip -> city, where: t.stat = 'x'", 'unknown column "stat" in rule r: did you mean "state"?'),
        (
            "fd: zip -> city, where: u.n = 1",
            "rule r: where may name only the first row, t: it is applied to both rows alike",
        ),
        ("fd: zip -> zip", "rule r: it can never be violated: t.zip = t'.zip and t.zip != t'.zip cannot both hold"),
        ("unique: [id, zip]", "rule r: it can never be violated: no two rows have the same id, which is the key"),
        (
            "deny: t.n < t'.n, emit: groups",
            "rule r: emit: groups needs an equality of the two rows, such as t.zip = t'.zip",
        ),
        ("unique: [zip], fd: zip -> city", "rule r has unique and fd: give exactly one of deny, unique and fd"),
        ("severity: info", "rule r says nothing: give exactly one of deny, unique and fd"),
        ("unique: [zip], emit: pair", 'emit is pairs, rows, groups or counts, not "pair": did you mean "pairs"?'),
        ("unique: [zip], max_pairs: 0", 'max_pairs must be a whole number from 1, not "0"'),
        ("unique: []", "unique must be a list of columns, such as [area_code, phone]"),
        ("unique: [zip], tags: x", 'tags must map names to texts, such as {owner: data-eng}, not "x"'),
        ("unique: [zip], description: ", '"description" has no value'),
        ("deny: ''", "deny must be a text, such as t.zip = t'.zip and t.city != t'.city, not \"\""),
        ("deny: [t.n = 1]", "deny must be a text, such as t.zip = t'.zip and t.city != t'.city"),
        ("fd: [zip, city]", "fd must be a text, such as zip -> city"),
        ("unique: [zip], where: ''", "where must be a text, such as t.status = 'live', not \"\""),
        ("unique: [zip], severity: [info]", "severity is info, warning or critical"),
        ("unique: [zip], where: not(t.n = 1)", f"rule r: {NO_NOT}"),
        (
            "unique: [zip], where: t.n = 6 and t.n != 6",
            "rule r: it can never be violated: t.n = 6 and t.n != 6 cannot both hold",
        ),
    ],
)
def test_a_rule_that_is_refused_says_why(body: str, told: str) -> None:
    assert refused(f"{{id: r, {body}}}") == [told]


@pytest.mark.parametrize("given", ["nan", "inf", "-1", "1.5", "101%", "nan%", "1e30", "few"])
def test_a_tolerance_is_a_count_or_a_share(given: str) -> None:
    told = f'tolerate must be a whole number from 0, or a share of the rows such as 0.1%, not "{given}"'
    assert refused(f"{{id: r, unique: [zip], tolerate: {given}}}") == [told]


def test_what_stands_under_an_id_is_told_as_it_is_on_one_line() -> None:
    must = "id must consist of a-z, 0-9 and _"
    assert refused("{id: [a], unique: [n]}", "{id: {a: b}, unique: [zip]}") == [must, must]
    assert refused("{deny: t.x = 1}") == ['"id" is missing', 'unknown column "x" in rule without id']
    with pytest.raises(RuleError) as caught:
        load('{id: "a\\n", unique: [n]}')
    assert str(caught.value).endswith(f'{must}, not "a\\n"')
    assert "\n" not in str(caught.value)


def test_a_column_without_a_type_and_a_decimal_cut_by_its_comma_are_told() -> None:
    text = "version: 1\ndataset: d\nkey: []\ncolumns: {a: , b: decimal(10,2)}\nrules: [{id: r, unique: [a]}]\n"
    with pytest.raises(RuleError) as caught:
        Rules.loads(text, file="f")
    empty, cut, rest = str(caught.value).splitlines()
    assert empty.startswith("f:4:13: a column needs a type: the types are bool, byte")
    assert cut == (
        'f:4:19: unknown type "decimal(10": a comma ends it within { }, '
        "so write it in quotes, such as 'decimal(10,2)'"
    )
    assert rest.startswith("f:4:32: a column needs a type")


def test_that_two_rows_differ_in_the_key_need_not_be_evaluated() -> None:
    rule = deny("t.id != t'.id and t.zip = t'.zip")
    assert (str(rule), rule.rule_class) == ("not(t.zip = t'.zip)", RuleClass.KEY)
    assert not_evaluated(rule) == ["t.id != t'.id (no two rows have the same id, which is the key)"]
    assert one("fd: 'zip -> id, city'").conditions == rule.conditions
    assert str(deny("t.id != t'.id and t.n > 1")) == "not(t.id != t'.id and t.n > 1)"
    composite = HEAD.replace("key: [id]", "key: [id, n]")
    assert str(one("deny: t.id != t'.id and t.zip = t'.zip", head=composite)) == "not(t.id != t'.id and t.zip = t'.zip)"


def test_the_same_rule_or_id_twice_is_refused() -> None:
    same = refused("{id: a, fd: zip -> city}", '{id: b, deny: "t1.city != t2.city and t2.zip = t1.zip"}')
    assert same == [f"rule b means the same as rule a in line {FIRST_RULE_LINE}"]
    mirrored = refused('{id: a, deny: "t.n < t\'.n"}', '{id: b, deny: "t.n > t\'.n"}')
    assert mirrored == [f"rule b means the same as rule a in line {FIRST_RULE_LINE}"]
    assert refused("{id: a, fd: zip -> city}", "{id: a, unique: [n]}") == [
        f'the id "a" is taken by the rule in line {FIRST_RULE_LINE}'
    ]
    assert refused("{id: A-b, unique: [n]}") == ['id must consist of a-z, 0-9 and _, not "A-b"']


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("version: 2\ndataset: d\nkey: []\nrules: []\n", ["1:10 version must be 1", "4:8 rules must be a list"]),
        ("version: 1\nrules: [{id: a, unique: [x]}]\n", ['1:1 "dataset" is missing', '1:1 "key" is missing']),
        (
            "version: 1\ndataset: d\nkey: [a, a]\nrules: [3]\n",
            ['3:10 key names the column "a" twice', "4:9 a rule has keys"],
        ),
        (
            "version: 1\ndataset: d\nkey: []\ncolumns: {a: strng}\nredact: [b]\nrules: [{id: r, unique: [a]}]\n",
            ['4:14 unknown type "strng": did you mean "string"?', '5:10 unknown column "b" in redact'],
        ),
        (
            "version: 1\nversion: 1\ndataset: d\nkey: []\nrules: [{id: r, unique: [a]}]\n",
            ['2:1 "version" is given twice'],
        ),
    ],
)
def test_mistakes_of_the_file_itself(text: str, places: list[str]) -> None:
    with pytest.raises(RuleError) as caught:
        Rules.loads(text)
    told = [f"{problem.line}:{problem.column} {problem.message}" for problem in caught.value.problems]
    assert len(told) == len(places)
    assert all(said.startswith(place) for said, place in zip(told, places, strict=True)), told


def test_the_place_of_a_mistake_within_a_folded_text() -> None:
    with pytest.raises(RuleError) as caught:
        load("id: r\n    deny: >\n      t.zip = t'.zip\n      and t.ctiy != t'.city")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (FIRST_RULE_LINE + 3, 11)


@pytest.mark.parametrize(
    ("text", "kept", "dropped"),
    [
        ("t.n < 5 and t.n < 7", "t.n < 5", ["t.n < 7 (it follows from t.n < 5)"]),
        ("t.n = t'.n and t.n <= t'.n", "t.n = t'.n", ["t.n <= t'.n (it follows from t.n = t'.n)"]),
        ("t.n > 1 and 1 = 1", "t.n > 1", ["1 = 1 (it is always true)"]),
        (
            "t.n <= t'.n and t.n != t'.n",
            "t.n < t'.n",
            ["t.n <= t'.n (with t.n != t'.n it says t.n < t'.n)", "t.n != t'.n (with t.n <= t'.n it says t.n < t'.n)"],
        ),
        ("t.n = t'.n and t'.n = t.n", "t.n = t'.n", ["t.n = t'.n (it is written twice)"]),
    ],
)
def test_predicates_that_need_no_evaluation_are_dropped(text: str, kept: str, dropped: list[str]) -> None:
    rule = deny(text)
    assert str(rule) == f"not({kept})"
    assert not_evaluated(rule) == dropped


def test_a_predicate_that_keeps_null_out_is_not_dropped() -> None:
    assert str(deny("t.n = t.n and t.zip = t'.zip")) == "not(t.n = t.n and t.zip = t'.zip)"


def test_a_rule_that_adds_nothing_is_warned_about() -> None:
    rules = load(
        "{id: wide, fd: zip -> city}", "{id: narrow, fd: 'zip, state -> city'}", "{id: own, fd: city -> state}"
    )
    assert rules.warnings == ("rule narrow adds nothing: each of its violations is also one of rule wide",)


@pytest.mark.parametrize(
    ("text", "kind", "symmetric"),
    [
        ("t.zip = t'.zip", RuleClass.KEY, True),
        ("t.zip = t'.zip and t.n = 1 and t'.n = 1", RuleClass.KEY, True),
        ("t.zip = t'.zip and t.n = 1", RuleClass.OTHER, False),
        ("t.zip = t'.zip and t.city != t'.city", RuleClass.FUNCTIONAL, True),
        ("t.salary < t'.salary and t.rate > t'.rate", RuleClass.ORDER, False),
        ("t.zip = t'.zip and t.salary < t'.salary and t.rate >= t'.rate", RuleClass.ORDER, False),
        ("t.zip = t'.state", RuleClass.OTHER, False),
        ("t.zip = t'.state and t.state = t'.zip", RuleClass.OTHER, True),
        ("t.city != t'.city and t.zip != t'.zip", RuleClass.OTHER, True),
        ("t.hired > t.ended", RuleClass.OTHER, False),
        ("t.n = t'.n and t.n = 3", RuleClass.KEY, True),
    ],
)
def test_class_and_symmetry(text: str, kind: RuleClass, symmetric: bool) -> None:
    rule = deny(text)
    assert (rule.rule_class, rule.is_symmetric) == (kind, symmetric)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t.zip = t'.zip and t.city != t'.city", "No two rows with the same zip have a different city."),
        ("t.zip = t'.zip and t.n = t'.n", "No two rows have the same zip and n."),
        (
            "t.zip = t'.zip and t.city != t'.city and t.n > 1 and t'.n > 1",
            "No two rows, both with n > 1, with the same zip have a different city.",
        ),
        (
            "t.salary < t'.salary and t.rate >= t'.rate",
            "No row t has, towards another row t', a smaller salary and a greater or equal rate.",
        ),
        ("t.zip = t'.state", "No row t has, towards another row t', a zip that equals the state of t'."),
        (
            "t.amount > t'.rate and t.n = 1",
            "No row t has, towards another row t', an amount that is greater than the rate of t', where t has n = 1.",
        ),
        ("t.n = 1 and t'.n = 2", "No row has n = 1 while another row has n = 2."),
        ("t.n = 1 and t'.n = 1", "No two rows both have n = 1."),
        ("t.hired > t.ended and t.zip = 'x'", "No row has ended < hired and zip = 'x'."),
    ],
)
def test_sentences(text: str, said: str) -> None:
    assert sentence(deny(text)) == said


def test_the_sentence_of_an_fd_with_several_columns() -> None:
    assert sentence(one("fd: 'zip -> state, city'")) == "No two rows with the same zip have a different city or state."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t.ssn = '123' and t.zip = 'a'", "No row has ssn = (hidden) and zip = 'a'."),
        ("t.ssn = '123' and t'.ssn = '124'", "No row has ssn = (hidden) while another row has ssn = (hidden)."),
        (
            "t.zip = t'.zip and t.ssn = '123' and t'.ssn = '123'",
            "No two rows, both with ssn = (hidden), have the same zip.",
        ),
        (
            "t.n < t'.n and t'.ssn > '12' and t'.ssn >= '1'",
            "No row t has, towards another row t', a smaller n, where t' has ssn > (hidden).",
        ),
    ],
)
def test_constants_of_redacted_columns_are_not_said(text: str, said: str) -> None:
    rule = deny(text)
    assert sentence(rule, ["ssn"]) == said
    assert "'1" not in denial(rule, ["ssn"]) + "".join(not_evaluated(rule, ["ssn"]))
    assert denial(rule) == str(rule)


Shown = tuple[dict[str, object], dict[str, object]]


def shown(key: int, **row: object) -> Shown:
    return {"id": key}, row


def told(message: Message, t: Shown, u: Shown | None) -> str:
    return message.of(message.said(*t, "t"), None if u is None else message.said(*u, "u"))


def test_messages() -> None:
    fd = Message(one("fd: zip -> city"))
    first, second = shown(17, zip="90001", city="LA"), shown(42, zip="90001", city="SF")
    assert told(fd, first, second) == "zip 90001 has city LA (id 17) and city SF (id 42)"
    assert told(fd, first, None) == "id 17 breaks r: zip 90001, city LA"
    assert fd.of_group({"zip": "90001"}, 12, 5) == "zip 90001: 5 rows in 12 pairs break r"
    assert fd.of_group({"zip": "90001"}, 1, 2) == "zip 90001: 2 rows in 1 pair break r"
    assert told(Message(one("unique: [zip]")), first, second) == "zip 90001 is in id 17 and in id 42"
    order = Message(deny("t.salary < t'.salary and t.rate > t'.rate"))
    assert told(order, shown(1, salary=5, rate=2.5), shown(2, salary=6, rate=2)) == (
        "id 1 and id 2: salary 5 is less than salary 6 and rate 2.5 is greater than rate 2"
    )
    single = Message(deny("t.hired > t.ended"))
    assert told(single, shown(3, hired="2020-01-02", ended="2020-01-01"), None) == (
        "id 3 breaks r: ended 2020-01-01, hired 2020-01-02"
    )


def test_the_message_of_an_fd_with_several_columns_says_which_differ() -> None:
    rule = Message(deny("t.n < t'.n and t.zip = t'.state"))
    assert told(rule, shown(1, n=1, zip="a", state="x"), shown(2, n=2, zip="y", state="a")) == (
        "id 1 and id 2: n 1 is less than n 2 and zip a equals state a"
    )
    several = Message(one("fd: 'zip -> city, state'"))
    assert told(several, shown(1, zip="z", city="LA", state=None), shown(2, zip="z", city="SF", state=None)) == (
        "zip z has city LA, state NULL (id 1) and city SF, state NULL (id 2)"
    )


def test_the_message_of_a_rule_that_compares_with_constants_alone() -> None:
    rule = Message(deny("t.n = 1 and t'.n = 2"), ["id"])
    assert told(rule, shown(1, n=1), shown(2, n=2)) == "id (hidden) (n 1) and id (hidden) (n 2) break r"


def test_messages_never_show_redacted_values() -> None:
    fd = Message(one("fd: ssn -> city"), ["ssn", "id"])
    said = told(fd, shown(7, ssn="h4sh", city="LA"), shown(8, ssn="h4sh", city="SF"))
    assert said == "ssn (hidden) has city LA (id (hidden)) and city SF (id (hidden))"
    assert fd.of_group({"ssn": "h4sh"}, 1, 2) == "ssn (hidden): 2 rows in 1 pair break r"
    assert told(fd, shown(7, ssn="h4sh", city="LA"), None) == "id (hidden) breaks r: ssn (hidden), city LA"


def test_messages_say_once_what_both_rows_share() -> None:
    order = Message(deny("t.state = t'.state and t.salary > t'.salary and t.rate < t'.rate"))
    assert told(order, shown(1, state="AL", salary=6, rate=2), shown(2, state="AL", salary=5, rate=3)) == (
        "with state AL, id 1 and id 2: salary 6 is greater than salary 5 and rate 2 is less than rate 3"
    )


def test_values_in_the_form_of_events_are_not_compared_again() -> None:
    """A hash has no order, and a decimal or a date may come as text."""
    hashed = Message(deny("t.salary < t'.salary and t.rate > t'.rate"), ["salary"])
    assert told(hashed, shown(1, salary="ff", rate=2), shown(2, salary="00", rate=1)) == (
        "id 1 and id 2: salary (hidden) is less than salary (hidden) and rate 2 is greater than rate 1"
    )
    text = Message(deny("t.amount > t'.amount and t.n > t'.n"))
    assert told(text, shown(1, amount="10.00", n=2), shown(2, amount="9.00", n=1)) == (
        "id 1 and id 2: amount 10.00 is greater than amount 9.00 and n 2 is greater than n 1"
    )
    crossed = Message(deny("t.amount > t'.rate"), ["amount"])
    assert told(crossed, shown(1, amount="ff", rate=1), shown(2, amount="00", rate=1)) == (
        "id 1 and id 2: amount (hidden) is greater than rate 1"
    )
