"""The paper's own baseline: a PostgreSQL trigger for each rule that counts a new row's partners.

As in the paper, columns of inequalities get a B-tree and the others a hash index. The server is started here, in a
folder of its own on a free port, and stopped by its process.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from benchmarks.generate import Table
from benchmarks.rules import Case
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.predicate import Column, Constant, Predicate, Term

SQL_TYPES = {"long": "bigint", "double": "double precision", "string": "text"}
START_TIMEOUT = 30.0
TIME_LIMIT = 20.0
"""Seconds of inserts after which a case is cut off; what was done by then is what is reported."""


def find_binaries() -> Path | None:
    """The folder of the newest installed server, or None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def server() -> Iterator[psycopg.Connection]:
    """A fresh server; the folder and the process are gone at the end."""
    binaries = find_binaries()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="weever-pg-"))
    prefix = _as_postgres(folder)
    port = _free_port()
    subprocess.run([*prefix, binaries / "initdb", "-D", folder / "data", "-A", "trust", "-U", "bench", "-E", "UTF8"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    options = ["-c", f"unix_socket_directories={folder}", "-c", "fsync=off", "-c", "shared_buffers=512MB"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*prefix, binaries / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), *options],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        with _connect(port, process) as connection:
            yield connection
    finally:
        process.terminate()
        process.wait(timeout=START_TIMEOUT)
        shutil.rmtree(folder)


def _as_postgres(folder: Path) -> list[str | Path]:
    """PostgreSQL refuses to run as root; there the package's own user runs it."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, "postgres", "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _connect(port: int, process: subprocess.Popen[bytes]) -> psycopg.Connection:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            return psycopg.connect(host="127.0.0.1", port=port, user="bench", dbname="postgres", autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            with suppress(subprocess.TimeoutExpired):  # waits a little, and no longer for a server that has died
                raise RuntimeError(f"PostgreSQL ended with {process.wait(timeout=0.1)}") from None


def measure(connection: psycopg.Connection, case: Case, rows: int, inserts: int, seed: int) -> dict[str, float]:
    """Loads `rows` without the trigger, then times single inserts with it: a statement each, one transaction."""
    table = case.table(rows + inserts, seed)
    constraints = list(case.load())
    _create(connection, table, constraints)
    _copy(connection, table, rows)
    connection.execute("vacuum analyze bench")
    connection.execute("create trigger check_rules before insert on bench for each row execute function check_rules()")
    done, seconds = _insert(connection, table, rows, inserts)
    found = connection.execute("select sum(n) from found").fetchone()
    return {"rows": rows, "inserts": done, "us": seconds / done * 1e6, "violations": int(found[0] or 0) if found else 0}


def _create(connection: psycopg.Connection, table: Table, constraints: list[DenialConstraint]) -> None:
    columns = ", ".join(f"{name} {SQL_TYPES[kind]}" for name, kind in table.types.items())
    connection.execute("drop table if exists bench, found")
    connection.execute(f"create table bench (id bigint, {columns})")
    connection.execute("create table found (rule text, n bigint)")
    ordered, hashed = _index_columns(constraints)
    for name in ordered:
        connection.execute(f"create index on bench using btree ({name})")
    for name in hashed:
        connection.execute(f"create index on bench using hash ({name})")
    body = "\n".join(_statement(constraint) for constraint in constraints)
    head = "create or replace function check_rules() returns trigger language plpgsql"
    connection.execute(f"{head} as $$ begin {body} return new; end $$")


def _index_columns(constraints: list[DenialConstraint]) -> tuple[list[str], list[str]]:
    cross = [c for constraint in constraints for c in constraint.conditions if c.is_cross]
    ordered = {column.name for c in cross if isinstance(c, Predicate) and c.op.is_inequality for column in c.columns}
    return sorted(ordered), sorted({column.name for c in cross for column in c.columns} - ordered)


def _statement(constraint: DenialConstraint) -> str:
    """Counts the new row's violations, as t and (where that is another question) as u."""
    if constraint.is_single:
        return f"if {_where(constraint, 't')} then insert into found values ('{constraint.id}', 1); end if;"
    roles = "t" if constraint.is_symmetric else "tu"
    counts = " + ".join(f"(select count(*) from bench b where {_where(constraint, role)})" for role in roles)
    return f"insert into found select '{constraint.id}', n from (select {counts} as n) c where n > 0;"


def _where(constraint: DenialConstraint, role: str) -> str:
    """The rule's condition in SQL, where the new row stands as `role` and `b` as the other row."""
    parts = [c for c in constraint.conditions if isinstance(c, Predicate)]
    assert len(parts) == len(constraint.conditions), "the benchmark's rules have no FD with several right columns"
    return " and ".join(f"{_term(p.left, role)} {p.op} {_term(p.right, role)}" for p in parts)


def _term(term: Term, role: str) -> str:
    if isinstance(term, Column):
        return f"{'new' if term.row == role else 'b'}.{term.name}"
    assert isinstance(term, Constant)
    return str(term)


def _copy(connection: psycopg.Connection, table: Table, rows: int) -> None:
    with connection.cursor().copy("copy bench from stdin") as copy:
        for row in table.tuples(0, rows):
            copy.write_row(row)


def _insert(connection: psycopg.Connection, table: Table, start: int, inserts: int) -> tuple[int, float]:
    statement = f"insert into bench values ({', '.join(['%s'] * (len(table.types) + 1))})"
    done, begin = 0, time.perf_counter()
    with connection.transaction(), connection.cursor() as cursor:
        for row in table.tuples(start, start + inserts):
            cursor.execute(statement, row, prepare=True)
            done += 1
            if time.perf_counter() - begin > TIME_LIMIT:
                break
    return done, time.perf_counter() - begin
