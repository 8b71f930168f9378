# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a table begins, which decimal sign it has, and the facts and numbers that an audit refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxbench.errors import UserError
from jaxbench.features.audit import checks, table
from jaxbench.features.audit.checks import CANNOT_TELL, CONSISTENT, INCONSISTENT, Audited

HEADER = "model,params,seq_len,device,gpus,global batch,step time (s),tokens/s"
# The same two rows. Every number agrees: 8 x 2 x 4096 / 1.297 = 50,529 tokens/s.
COMMA = (
    "model;params;seq_len;device;gpus;global batch;step time (s);tokens/s\n"
    "a;7B;4096;H100;8;16;1,297;50529\nb;7B;4096;H100;16;32;1,31;100053\n"
)
POINT = f"{HEADER}\na,7B,4096,H100,8,16,1.297,50529\nb,7B,4096,H100,16,32,1.31,100053\n"
RIGHT = {
    "semicolons and decimal commas": COMMA,
    "only numbers that may be thousands": COMMA.replace("1,31;100053", "1,310;100053"),
    "points for thousands": COMMA.replace("50529", "50.529").replace("100053", "100.053"),
    "narrow spaces for thousands": COMMA.replace("50529", "50\u202f529").replace("100053", "100\u00a0053"),
    "apostrophes for thousands": POINT.replace("50529", "50'529").replace("100053", "100\u2019053"),
    "semicolons and decimal points": COMMA.replace("1,297", "1.297").replace("1,31", "1.31"),
    "a decimal comma in quotation marks": POINT.replace("1.297", '"1,297"').replace("1.31", '"1,31"'),
    "thousands in quotation marks": POINT.replace("50529", '"50,529"').replace("100053", '"100,053"'),
    "tabs and decimal commas": COMMA.replace(";", "\t"),
    "tabs, points and thousands": POINT.replace(",", "\t").replace("50529", "50,529"),
    "a byte order mark and carriage returns": "\ufeff" + COMMA.replace("\n", "\r\n"),
    "a comment with the header's words": "# step time (s), tokens/s and params as printed\n" + POINT,
    "a comment with as many cells": "# gpus,in,the,order,of,their,arrival,here\n" + POINT,
    "a title without a sign": "Results of our cluster, measured in May\n\n" + COMMA,
    "a comment of another sign": "// efficiency; see the text; and below\n" + POINT,
    "comments between rows": POINT.replace("b,7B", "# the larger machine\nb,7B"),
    "Markdown below prose": "Our results, all in bf16:\n\n"
    + "\n".join(f"| {line.replace(',', ' | ')} |" for line in (HEADER, "-,-,-,-,-,-,-,-", *POINT.splitlines()[1:])),
    "Markdown without outer bars": "\n".join(
        line.replace(",", " | ") for line in (HEADER, "-,-,-,-,-,-,-,-", *POINT.splitlines()[1:])
    ),
}


def judged(path: Path, *facts: str) -> list[Audited]:
    return checks.audit(table.read(path, facts))[0]


@pytest.mark.parametrize("name", RIGHT)
def test_numbers_mean_the_same_however_a_table_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(RIGHT[name].encode())
    rows = judged(path)
    assert [row.verdict for row in rows] == [CONSISTENT] * 2, [row.contradictions for row in rows]
    assert [row.row.values["step_s"].value for row in rows] == [1.297, 1.31]
    assert [row.row.values["tokens_s"].value for row in rows] == [50529, 100053]


def test_a_wrong_number_is_wrong_in_every_notation(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for text in (COMMA.replace("1,297", "1,397"), POINT.replace("1.297", "1.397")):
        path.write_text(text)
        assert [row.verdict for row in judged(path)] == [INCONSISTENT, CONSISTENT]


def test_text_of_a_spreadsheet_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(COMMA.replace(";", "\t").encode("utf-16"))
    assert [row.verdict for row in judged(path)] == [CONSISTENT] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COMMA.replace("1,31", "1.31").replace("1,297", "1,29"), "'1,29' and '1.31' in its column 'step time"),
        (POINT.replace("params", "tokens/s"), "two columns 'tokens/s'"),
        (f'model,gpus\n"{"x" * 140_000}",3\n', "field larger than field limit"),
    ],
)
def test_a_table_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        table.read(path)


FACTS = {
    "seq_len=nan": "no number above 0", "seq_len=-1": "no number above 0", "params=1e400": "no number above 0",
    "params=0": "write params=7B", "mfu=inf": "write mfu=0.42", "gpus=2.5": "no whole number: write gpus=2",
    "seq_len=4096 seq_len=4096": "same fact twice", "seq_len=4096 context=8192": "same fact twice",
    "gpu=H100 hardware=A100": "same fact twice", "precision=bf16 dtype=fp8": "same fact twice",
}  # fmt: skip


@pytest.mark.parametrize("facts", FACTS)
def test_impossible_facts_and_facts_given_twice_are_refused(tmp_path: Path, facts: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text("model,tokens/s/gpu\nm,3400\n")
    with pytest.raises(UserError, match=FACTS[facts]):
        table.read(path, facts.split())


@pytest.mark.parametrize("cell", ["-2.41", "inf", "-inf", "1e400", "-1", "∞", "−3"])
def test_a_number_that_nothing_can_have_makes_its_row_inconsistent(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{POINT}c,7B,4096,H100,16,32,{cell},100053\n")
    rows = judged(path)
    assert [row.verdict for row in rows] == [CONSISTENT, CONSISTENT, INCONSISTENT]
    assert rows[2].contradictions == [f"step time (s) ({cell}) is no finite number above 0"]


# 8 x 8192 / 2.41 s = 3,399 tokens/s a device, whatever the model is. 6N gives an MFU of 0.14.
UNEXPLAINED = (
    "model,params,device,gpus,global batch,seq_len,step time (s),tokens/s/gpu,{}\nm,{},H100,8,16,4096,2.41,3400,{}\n"
)


@pytest.mark.parametrize(
    ("params", "column", "printed", "facts", "verdict"),
    [
        ("7e9", "MFU", "0.42", (), CANNOT_TELL),
        ("6.74e9", "MFU", "0.42", ("precision=bf16",), CANNOT_TELL),
        ("6.74e9", "MFU", "0.95", ("precision=bf16",), INCONSISTENT),
        ("6.74e9", "MFU", "0.04", ("precision=bf16",), CANNOT_TELL),  # may be a mixture of experts
        ("7e9", "TFLOP/s/gpu", "415", (), CANNOT_TELL),
        ("1.24e8", "TFLOP/s/gpu", "415", (), INCONSISTENT),
        ("7e9", "MFU", "0.14", (), CONSISTENT),
    ],
)
def test_a_row_that_no_formula_explains_is_not_consistent(
    tmp_path: Path, params: str, column: str, printed: str, facts: tuple[str, ...], verdict: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(UNEXPLAINED.format(column, params, printed))
    (row,) = judged(path, *facts)
    assert row.verdict == verdict, (row.contradictions, row.doubt)
    if verdict == CANNOT_TELL:
        assert "the nearest formula, " in row.doubt and "a factor of" in row.doubt
