# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the one reader refuses, and damage that reports once accepted in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import numpy as np
import pytest

from jaxbench.core.store import MANIFEST, RunFolder, write_json, write_manifest
from jaxbench.errors import UserError
from jaxbench.features.training import checkpoint, trainings
from jaxbench.records import reading
from jaxbench.report import build


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "not finite: NaN"), ('{"a": [-Infinity]}', "not finite: -Infinity"), ("1e400", "not finite: 1e400"),
        ("1" * 400, "not finite: 111"), ("[" * 200 + "]" * 200, "more than 100 levels"), ("[" * 10**6, "100 levels"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "100 levels"), ('"\\ud800"', "surrogates not allowed"),
        (b"\xff", "can't decode"), ("", "Expecting value"), ("{} x", "Extra data"),
    ],
)  # fmt: skip
def test_what_json_does_not_have_is_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        reading.value(text)


def test_what_json_has_is_read() -> None:
    assert reading.value('[1e308, -0.0, "\\ud83d\\ude00", "[[[[", 12345678901234567890]') == [
        1e308, -0.0, "\U0001f600", "[[[[", 12345678901234567890
    ]  # fmt: skip
    assert reading.value(b'{"a": ' + b"[" * 90 + b"]" * 90 + b"}")["a"]


@pytest.mark.parametrize(
    ("name", "count"), [("0", 0), ("120", 120), ("²", None), ("٣", None), ("-1", None), ("1.5", None)]
)
def test_names_of_steps(name: str, count: int | None) -> None:
    assert reading.count_of(name) == count


def test_checkpoints_are_found_next_to_foreign_names(tmp_path: Path) -> None:
    for name in ("20", "5", "²", "٣", "x", "5.part"):
        (tmp_path / name).mkdir()
    assert checkpoint.saved_steps(tmp_path) == [20, 5]


def test_a_flipped_bit_of_a_manifest_is_found_and_an_older_one_is_read(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path / "run", devices=(1,), rounds=2)
    old = json.loads((path / MANIFEST).read_text())  # without a hash
    assert RunFolder(path).manifest() == old
    write_manifest(path, old)
    assert RunFolder(path).manifest() == old
    text = (path / MANIFEST).read_text()
    (path / MANIFEST).write_text(text.replace('"rounds": 2', '"rounds": 3', 1))
    with pytest.raises(UserError, match="manifest.json is damaged .its numbers were changed after it was written"):
        build.find(path)


def test_a_compile_report_under_its_older_name_is_read(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path / "run", devices=(1, 2), rounds=2)
    new = RunFolder(path).records()

    def older(line: dict[str, Any]) -> None:
        if line["kind"] == "point":
            line["passport"] = line.pop("compile_report")

    fabricate.edit(path, older)
    assert b'"passport"' in (path / "records.jsonl").read_bytes()
    assert RunFolder(path).records() == new


@pytest.mark.parametrize(
    "change",
    [
        dict(devices=-1), dict(devices=0), dict(devices=1.5), dict(devices="2"), dict(global_batch=-8),
        dict(processes=0), {"compile_report.parameters": -1}, {"compile_report.compile_s": -0.5},
    ],
)  # fmt: skip
def test_a_record_out_of_range_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = fabricate.run_folder(tmp_path / "run", devices=(1,), rounds=2)

    def edited(line: dict[str, Any]) -> None:
        for name, value in change.items() if line["kind"] == "point" else ():
            group, _, last = name.rpartition(".")
            (line[group] if group else line)[last] = value

    fabricate.edit(path, edited)
    (name,) = change
    with pytest.raises(UserError, match=f"line 1 is damaged .*{name.rpartition('.')[2]}: "):
        build.find(path)


def test_a_plan_out_of_range_is_refused(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path / "run", devices=(1,), rounds=2)
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["plan"]["points"][0]["devices"] = -1
    write_json(path / MANIFEST, manifest)
    with pytest.raises(UserError, match="plan: points: devices: -1 is not a finite number at least 1"):
        build.find(path)


def training(folder: Path, change: Callable[[list[str]], Any] = lambda lines: None, **train: Any) -> Path:
    folder.mkdir()
    asked = {"batch": 64, "target": 0.5} | train
    write_json(folder / "config.json", {"experiment": "cnn", "seed": 0, "train": asked})
    lines = [json.dumps({"step": 10 * n, "elapsed_s": 1.0 * n, "compile_s": 0.5, "test_loss": 0.1}) for n in (1, 2)]
    change(lines)
    (folder / trainings.METRICS).write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [("NaN", "not finite"), ("1e999", "not finite"), ('"x"', "test_loss: 'x' is not a number"), ("[]", "test_loss")],
)
def test_a_metric_that_is_no_number_is_refused(tmp_path: Path, text: str, said: str) -> None:
    def change(lines: list[str]) -> None:
        lines[1] = lines[1].replace("0.1", text)

    with pytest.raises(UserError, match=rf"metrics.jsonl, line 2 is damaged \(.*{said}"):
        trainings.read_curve(training(tmp_path / "a", change))
    for name in ("step", "elapsed_s"):
        (tmp_path / name).mkdir()
        path = training(tmp_path / name / "b", lambda lines, name=name: lines.append(f'{{"{name}": -1}}'))
        with pytest.raises(UserError, match="line 3 is damaged"):
            trainings.read_curve(path)


@pytest.mark.parametrize("change", [dict(batch=0), dict(batch=-1), dict(batch="x"), dict(target=None)])
def test_a_training_without_a_batch_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"config.json is damaged .{next(iter(change))}: "):
        trainings.read_curve(training(tmp_path / "a", **change))


@pytest.mark.parametrize(
    "junk", [b"junk", b"\xff\xfe", b'{"start": 1}', b'{"start": NaN}', b"[" * 4000, b'"x"', b"7", b"null"]
)
def test_a_line_of_an_account_that_is_junk_is_named(tmp_path: Path, junk: bytes) -> None:
    line = dict(begun_ns=5, from_step=0, step=3, saving=False, sealed=0, sealing_ns=0, finished=True)
    sound = json.dumps({"start": 1, "ns": {"steps": 9}, **line}).encode()
    (tmp_path / trainings.LEDGER).write_bytes(sound + b"\n" + junk + b"\n" + sound + b"\n")
    assert [start.ns["steps"] for start in trainings.read_ledger(tmp_path)] == [9]
    (fault,) = trainings.ledger_faults(tmp_path)
    assert "account.jsonl, line 2 is damaged" in fault and fault.endswith("it is skipped.")


def test_an_archive_is_no_pickle_and_its_arrays_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, x=np.arange(1000))
    assert reading.read_arrays(path, lambda arrays: int(arrays["x"].sum()), "") == 499500
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for content in (bytes(data), b"", b"PK\x03\x04", b"\x80\x04."):
        path.write_bytes(content)
        with pytest.raises(UserError, match="own.npz.* is damaged"):
            reading.read_arrays(path, lambda arrays: int(arrays["x"].sum()), "save it again.")
    np.savez(path, x=np.array([print], dtype=object))
    with pytest.raises(UserError, match="is damaged .*allow_pickle"):
        reading.read_arrays(path, lambda arrays: arrays["x"], "save it again.")


def test_rows_of_a_table_have_names_and_their_lines(tmp_path: Path) -> None:
    text = '\ufefftext,label\n"a, b",1\n\n"two\nlines"\n'.encode()
    assert reading.csv_table("x", text, ("text",), "") == [
        (2, {"text": "a, b", "label": "1"}), (5, {"text": "two\nlines", "label": ""})
    ]  # fmt: skip
    for bad in (b"text,label\na,b,c\n", b'text,label\n"a', b"label\n1\n", b"\xff", b'"' + b"x" * 200_000 + b'"'):
        with pytest.raises(UserError, match="^x"):
            reading.csv_table("x", bad, ("text",), "name text and label.")
