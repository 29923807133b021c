"""`rules validate`, `rules import` and `rules show`, run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weever_stream import Rules

GOOD = """\
version: 1
dataset: tax
key: [id]
columns: {id: long, zip: string, city: string, salary: double, rate: double, ssn: string}
rules:
  - id: zip_city
    deny: t.zip = t'.zip and t.city != t'.city
  - id: salary_rate
    deny: t.salary < t'.salary and t.rate > t'.rate and t.salary <= t'.salary
"""
BAD = """\
version: 1
dataset: tax
key: [idd]
columns: {id: long, zip: string, city: string}
rules:
  - id: zip_city
    deny: t.ziip = t'.zip and t.city != t'.city
    severity: critcal
  - id: second
    deny: t.id = 'a'
    wher: t.id > 1
  - id: third
    fd: zip - city
"""
IMPLIED = GOOD + "  - {id: narrow, fd: 'zip, salary -> city'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(BAD, encoding="utf-8")
    (tmp_path / "implied.yaml").write_text(IMPLIED, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str, width: int = 200) -> subprocess.CompletedProcess[str]:
    program = "from weever_stream.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=os.environ | {"COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_a_good_file_is_said_to_be_good(folder: Path) -> None:
    done = run(folder, "rules", "validate", "good.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "good.yaml: 2 rules, no mistakes\n", "")


def test_validate_as_json_holds_the_warnings(folder: Path) -> None:
    done = run(folder, "rules", "validate", "implied.yaml", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "dataset": "tax",
        "rules": 3,
        "warnings": ["rule narrow adds nothing: each of its violations is also one of rule zip_city"],
    }


def test_warnings_go_to_stderr_and_do_not_fail(folder: Path) -> None:
    done = run(folder, "rules", "validate", "implied.yaml")
    assert done.returncode == 0
    assert done.stderr.startswith("implied.yaml: warning: rule narrow adds nothing")


def test_all_mistakes_of_a_file_are_told_with_their_place(folder: Path) -> None:
    done = run(folder, "rules", "validate", "bad.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        'bad.yaml:3:7: unknown column "idd" in key: did you mean "id"?',
        'bad.yaml:7:11: unknown column "ziip" in rule zip_city: did you mean "zip"?',
        'bad.yaml:8:15: severity is info, warning or critical, not "critcal": did you mean "critical"?',
        "bad.yaml:10:11: rule second: cannot compare id (long) with the string 'a'",
        'bad.yaml:11:5: unknown key "wher": did you mean "where"?',
        'bad.yaml:13:13: rule third: expected "," or "->", found "-"',
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "f.yaml: cannot be read: No such file or directory\n"),
        (b"version: 1 \xff", "f.yaml: is not UTF-8 (byte 11): save the file as UTF-8\n"),
        (b"", "f.yaml:1:1: a rule file starts with keys such as version, dataset, key and rules\n"),
        (b"rules: [", "f.yaml:1:9: not valid YAML: "),
        (b"rules: " + b"[" * 2000 + b"]" * 2000, "f.yaml:1:1: lists and mappings within each other, too deep"),
    ],
)
def test_what_is_no_rule_file_is_one_line_and_exit_2(tmp_path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / "f.yaml").write_bytes(content)
    done = run(tmp_path, "rules", "validate", "f.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rules", "validate"), "weever-stream rules validate: Missing argument 'FILE'."),
        (("rules", "validate", "a", "b"), "weever-stream rules validate: Got unexpected extra argument (b)"),
        (("plan", "--jsn", "a"), "weever-stream plan: No such option '--jsn'. Did you mean '--json'?"),
        (("rules", "nothing"), "weever-stream rules: No such command 'nothing'."),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(folder: Path, arguments: tuple[str, ...], told: str) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_help_is_an_answer_and_no_command_is_none(folder: Path) -> None:
    done = run(folder, "plan", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: weever-stream plan [OPTIONS] RULES [DATA]")
    assert run(folder, "--version").stdout.startswith("weever-stream, version ")
    assert run(folder).returncode == 2


def test_show_prints_a_sentence_for_each_rule(folder: Path) -> None:
    done = run(folder, "rules", "show", "good.yaml")
    assert done.returncode == 0
    assert "No two rows with the same zip have a different city." in done.stdout
    assert "functional dependency" in done.stdout
    assert "not evaluated: t.salary <= t'.salary (it follows from t.salary < t'.salary)" in done.stdout


def test_show_cuts_no_long_name(tmp_path: Path) -> None:
    name = "a_very_long_name_of_a_rule_that_must_be_readable_in_full_all_the_same"
    text = f"version: 1\ndataset: d\nkey: []\nrules:\n  - {{id: {name}, unique: [a, b, c]}}\n"
    (tmp_path / "long.yaml").write_text(text, encoding="utf-8")
    shown = run(tmp_path, "rules", "show", "long.yaml", width=40).stdout
    assert "…" not in shown
    first_column = "".join(line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│"))
    assert first_column == name


def test_show_as_json(folder: Path) -> None:
    shown = json.loads(run(folder, "rules", "show", "good.yaml", "--json").stdout)
    assert shown["dataset"] == "tax"
    assert shown["warnings"] == []
    assert shown["rules"][0] == {
        "rule": "zip_city",
        "sentence": "No two rows with the same zip have a different city.",
        "deny": "not(t.zip = t'.zip and t.city != t'.city)",
        "class": "functional dependency",
        "symmetric": True,
        "dropped": [],
    }
    assert shown["rules"][1]["class"] == "order dependency"
    assert shown["rules"][1]["dropped"] == ["t.salary <= t'.salary (it follows from t.salary < t'.salary)"]


@pytest.mark.parametrize("name", ["[red]", "\\[red]", "a\\"])
def test_show_takes_no_name_for_markup(tmp_path: Path, name: str) -> None:
    text = f"version: 1\ndataset: d\nkey: []\nrules:\n  - {{id: r, unique: ['{name}']}}\n"
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    assert f"have the same {name}." in run(tmp_path, "rules", "show", "r.yaml").stdout


def test_show_hides_constants_of_redacted_columns(folder: Path) -> None:
    text = GOOD.replace("rules:\n", "redact: [ssn]\nrules:\n", 1) + (
        "  - {id: secret, deny: \"t.ssn = '123-45' and t.ssn >= '123-45' and t.zip = 'open'\"}\n"
    )
    (folder / "secret.yaml").write_text(text, encoding="utf-8")
    for arguments in ((), ("--json",)):
        done = run(folder, "rules", "show", "secret.yaml", *arguments)
        assert done.returncode == 0
        assert "123-45" not in done.stdout + done.stderr
        assert "ssn = (hidden)" in done.stdout
        assert "zip = 'open'" in done.stdout


def test_a_holoclean_file_becomes_a_rule_file(tmp_path: Path) -> None:
    lines = 't1&t2&EQ(t1.ZipCode,t2.ZipCode)&IQ(t1.City,t2.City)\n\nt1&EQ(t1.State,"AL")&GTE(t1.Score,5)\n'
    (tmp_path / "hospital.txt").write_text(lines, encoding="utf-8")
    done = run(tmp_path, "rules", "import", "hospital.txt", "--key", "Id")
    assert (done.returncode, done.stderr) == (0, "")
    rules = Rules.loads(done.stdout)
    assert (rules.dataset, rules.key) == ("hospital", ("Id",))
    assert {rule.id: str(rule) for rule in rules} == {
        "zip_code_city": "not(t.ZipCode = t'.ZipCode and t.City != t'.City)",
        "state_score": "not(t.State = 'AL' and t.Score >= 5)",
    }
    assert "fd: ZipCode -> City" in done.stdout
    assert [rule.conditions for rule in Rules.load(tmp_path / "hospital.txt")] == [rule.conditions for rule in rules]


def test_a_list_as_papers_print_it_becomes_a_rule_file(tmp_path: Path) -> None:
    lines = [
        "# the rules of the paper",
        "φ1: ∀ t, t' ∈ Tax: ¬(t.zip = t'.zip ∧ t.city ≠ t'.city)",
        "(2) ∀ tα, tβ ∈ Tax, not(tα.state = tβ.state and tα.salary < tβ.salary and tα.rate ≥ tβ.rate)",
        "phone_twice: ¬(t1.area = t2.area ∧ t1.phone = t2.phone)",
        "- t.zip = t'.zip and t.area = t'.area and t.city != t'.city",
    ]
    (tmp_path / "paper.txt").write_text("\n".join(lines), encoding="utf-8")
    done = run(tmp_path, "rules", "import", "paper.txt", "--dataset", "tax", "-o", "tax.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert "tax.yaml: 4 rules" in done.stderr
    assert "warning: rule zip_area_city adds nothing" in done.stderr
    rules = Rules.load(tmp_path / "tax.yaml")
    assert rules.dataset == "tax"
    assert {rule.id: rule.rule_class.value for rule in rules} == {
        "zip_city": "functional dependency",
        "state_salary_rate": "order dependency",
        "phone_twice": "key",
        "zip_area_city": "functional dependency",
    }


LATEX = r"""
$\varphi_1 : \forall t, t' : \neg(t.id = t'.id)$
 $\varphi_2: \forall t, t': \neg(t.\text{from} = t'.\text{to} \\ \land t.\text{to} = t'.\text{from})$
(3) $\neg (s. \texttt{received} \ge t. \texttt{shipped} \land s. \texttt{shipped} \le t. \texttt{received});$
$\forall s, t \in R, s \neq t : \neg (\texttt{s}.\text{zip\_code} = t.zip\_code \wedge s.\text{A B} < t.\text{A B})$
$$\begin{split} \varphi_{4}: \neg(t.a = t'.a) \\ \varphi_{4,1}: \neg(t.b = t'.c \land t.c = t'.b) \end{split}$$
$\psi \colon \forall t, t' \colon & \neg \big(t[d] = t'[d] \land t[\mathsf{D-Code}] \neq t'[\mathsf{D-Code}]\big)$
φ_6	\neg (t_{1}.e = t_{2}.e \land t_1.f \neq t_2.f)
\neg(t_\alpha.g = t_\beta.g \land t_\alpha.h > t_\beta.h)
\neg(t.i = t^{\prime}.i \land t.j \leq t^\prime.j)
∀ tx, ty ∈ R, tx ≠ ty: ¬(tx.k = ty.k ∧ tx."l$" ≠ ty."l$").
"""


def test_lists_are_read_as_papers_typeset_them(tmp_path: Path) -> None:
    (tmp_path / "paper.tex").write_text(LATEX, encoding="utf-8")
    done = run(tmp_path, "rules", "import", "paper.tex")
    assert (done.returncode, done.stderr) == (0, "")
    assert {rule.id: str(rule) for rule in Rules.loads(done.stdout)} == {
        "id_unique": "not(t.id = t'.id)",
        "from_to": "not(t.from = t'.to and t.to = t'.from)",
        "received_shipped": "not(t.received >= t'.shipped and t.shipped <= t'.received)",
        "zip_code_a_b": 'not(t.zip_code = t\'.zip_code and t."A B" < t\'."A B")',
        "a_unique": "not(t.a = t'.a)",
        "b_c": "not(t.b = t'.c and t.c = t'.b)",
        "d_d_code": 'not(t.d = t\'.d and t."D-Code" != t\'."D-Code")',
        "e_f": "not(t.e = t'.e and t.f != t'.f)",
        "g_h": "not(t.g = t'.g and t.h > t'.h)",
        "i_j": "not(t.i = t'.i and t.j <= t'.j)",
        "k_l": 'not(t.k = t\'.k and t."l$" != t\'."l$")',
    }


def test_a_mistake_in_latex_has_its_column(tmp_path: Path) -> None:
    lines = [
        r"$\varphi_{12}: \neg(t.\text{a} = v.\text{b})$",
        r"$\neg(t.\text{a} = 5 \lor t.b = 6)$",
        r"$\neg(t.a \foo 5)$",
    ]
    (tmp_path / "l.txt").write_text("\n".join(lines), encoding="utf-8")
    assert run(tmp_path, "rules", "import", "l.txt").stderr.splitlines() == [
        f'l.txt:1:{lines[0].index("v.") + 1}: unknown row "v": the rows are called t and t\'',
        f'l.txt:2:{lines[1].index("lor")}: "∨" is no part of a rule: write one rule for each alternative',
        f'l.txt:3:{lines[2].index("foo")}: expected a comparison (= != < <= > >=), found "\\\\"'.replace("\\\\", "\\"),
    ]


def test_import_of_one_rule_counts_one_rule(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("t1&t2&EQ(t1.a,t2.a)\n", encoding="utf-8")
    assert run(tmp_path, "rules", "import", "one.txt", "-o", "one.yaml").stderr == "one.yaml: 1 rule\n"


def test_mistakes_of_a_list_have_their_line_and_column(tmp_path: Path) -> None:
    lines = ["t1&t2&EQ(t1.a,t2.a)&EQQ(t1.b,t2.b)", "  t1&t2&EQ(t1.a,t3.a)", "∀ t1, t2, t3: ¬(t1.a = t3.a)"]
    (tmp_path / "l.txt").write_text("\n".join(lines), encoding="utf-8")
    done = run(tmp_path, "rules", "import", "l.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        'l.txt:1:21: unknown operation "EQQ": did you mean "EQ"?',
        'l.txt:2:17: unknown row "t3": the rows are called t1 and t2',
        "l.txt:3:17: a rule is over two rows at most, not t1, t2, t3",
    ]


def test_a_key_that_does_not_fit_the_list_is_told_without_a_false_place(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text("t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)\n", encoding="utf-8")
    done = run(tmp_path, "rules", "import", "l.txt", "--key", "a")
    assert (done.returncode, done.stdout) == (2, "")
    never = "it can never be violated: no two rows have the same a, which is the key"
    assert done.stderr == f"l.txt: rule a_b: {never}\n"


def test_import_refuses_what_it_cannot_use(folder: Path) -> None:
    done = run(folder, "rules", "import", "good.yaml")
    assert (done.returncode, done.stderr) == (2, "good.yaml: is a rule file already: there is nothing to import\n")
    (folder / "empty.txt").write_text("# nothing\n", encoding="utf-8")
    done = run(folder, "rules", "import", "empty.txt")
    assert (done.returncode, done.stderr) == (2, "empty.txt: holds no rule\n")
    (folder / "one.txt").write_text("t1&t2&EQ(t1.a,t2.a)\n", encoding="utf-8")
    done = run(folder, "rules", "import", "one.txt", "-o", "no/such/file.yaml")
    assert (done.returncode, done.stderr) == (2, "no/such/file.yaml: cannot be written: No such file or directory\n")
