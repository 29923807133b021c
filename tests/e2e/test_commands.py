"""What a newcomer runs, as processes of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"
COMMAND = [str(Path(sys.executable).with_name("weever-stream"))]


def run(*arguments: str | Path, cwd: Path) -> str:
    done = subprocess.run([*arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_opens_and_ends_violations_and_checks_itself(tmp_path: Path) -> None:
    shown = run(sys.executable, "-m", "weever_stream.demo", cwd=tmp_path)
    assert "  new  zip_city: zip " in shown
    assert "retracted  " in shown
    opened, ended = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:violations opened|ended)", shown))
    still_open = sum(int(n.replace(",", "")) for n in re.findall(r"^  \w+: ([\d,]+)$", shown, re.M))
    assert opened - ended == still_open > 0
    assert "a recount from scratch finds the same" in shown


@pytest.mark.skipif(not DATASETS.exists(), reason="the shared datasets are not beside the repository")
def test_from_the_constraints_of_hospital_to_a_plan_on_its_table(tmp_path: Path) -> None:
    hospital = DATASETS / "hospital"
    run(*COMMAND, "rules", "import", hospital / "constraints.txt", "-o", "rules.yaml", cwd=tmp_path)
    assert "15 rules, no mistakes" in run(*COMMAND, "rules", "validate", "rules.yaml", cwd=tmp_path)
    shown = json.loads(run(*COMMAND, "rules", "show", "rules.yaml", "--json", cwd=tmp_path))
    assert {rule["class"] for rule in shown["rules"]} == {"functional dependency"}
    plan = json.loads(run(*COMMAND, "plan", "rules.yaml", hospital / "dirty.csv", "--json", cwd=tmp_path))
    assert plan["rows"] == 1_000
    assert sum(len(route["rules"]) for route in plan["routes"]) == 15
