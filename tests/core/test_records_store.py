# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Records survive: written records are read back, and every kind of damage gives one clear sentence."""

import dataclasses
import json
from pathlib import Path

import fabricate
import pytest

from jaxbench.core import schema, store
from jaxbench.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fabricate.run_folder(tmp_path / "run", devices=(1, 2), rounds=3)


def _round() -> schema.RoundRecord:
    return schema.RoundRecord(
        point="a/strong/1", round=0, steps=2, block_s=(0.1, 0.2), double_block_s=(), warmup_block_s=(0.3,),
        settled=True, compilations=0, worker="w", checks=(schema.Verdict(name="steps", ok=True, reason="counted"),),
    )  # fmt: skip


def _failure() -> schema.FailureRecord:
    return schema.FailureRecord(
        point="a/strong/1", experiment="cnn", strategy="a", scaling="strong", devices=1, global_batch=2,
        stage="compile", reason="out of memory",
    )  # fmt: skip


@pytest.mark.parametrize("record", [fabricate.point_record(), _round(), _failure()], ids=lambda r: r.kind)
def test_record_round_trip(record: schema.Record) -> None:
    assert schema.from_json(json.loads(json.dumps(schema.to_json(record)))) == record


def test_a_round_of_an_earlier_version_has_no_checks() -> None:
    line = schema.to_json(_round())
    del line["checks"]
    read = schema.from_json(line)
    assert isinstance(read, schema.RoundRecord) and read.checks == ()


def test_append_then_read(tmp_path: Path) -> None:
    run = store.RunFolder.begin(tmp_path / "run", {"a": 1})
    run.append(_round())
    run.close()
    (record,) = store.RunFolder(tmp_path / "run").records()
    assert isinstance(record, schema.RoundRecord) and record.block_s == (0.1, 0.2) and record.time


def test_a_last_line_that_was_cut_is_passed_over_when_reading_and_repaired_when_resuming(folder: Path) -> None:
    path = folder / store.RECORDS
    whole = len(store.RunFolder(folder).records())
    path.write_bytes(path.read_bytes()[:-20])
    run = store.RunFolder(folder)
    assert len(run.records()) == whole - 1
    assert "unfinished" in run.notes[0]
    config = store.RunFolder(folder).config()
    run = store.RunFolder.begin(folder, config)
    run.append(_round())
    run.close()
    assert "cut off" in run.notes[0]
    assert store.RunFolder(folder).records()[-1].point == "a/strong/1"


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"\n",
        b'{"schema":1,"kind":"point"}\n', b'{"schema":1,"kind":"x"}\n',
        json.dumps(schema.to_json(_round()) | {"block_s": [0.1, -1.0]}).encode() + b"\n",
        json.dumps(schema.to_json(_round()) | {"block_s": ["fast"]}).encode() + b"\n",
        json.dumps(schema.to_json(_round()) | {"steps": 0}).encode() + b"\n",
    ],
)  # fmt: skip
def test_a_damaged_line_in_the_middle_is_named(folder: Path, bad: bytes) -> None:
    path = folder / store.RECORDS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad, *lines[2:]]))
    with pytest.raises(UserError, match="line 3 is damaged"):
        store.RunFolder(folder).records()


def test_another_schema_is_refused(folder: Path) -> None:
    path = folder / store.RECORDS
    path.write_text(path.read_text().replace('"schema":1', '"schema":99'))
    with pytest.raises(UserError, match="schema 99"):
        store.RunFolder(folder).records()


def test_another_config_is_refused_and_named(folder: Path) -> None:
    with pytest.raises(UserError, match="model.dtype was 'float32' and is now 'bfloat16'"):
        store.RunFolder.begin(folder, {"model": {"dtype": "bfloat16"}, "report": {"overlay": ""}})


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another --workdir"):
        store.RunFolder.begin(tmp_path / "file" / "run", {})


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_a_damaged_manifest(folder: Path, text: str) -> None:
    (folder / store.MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="manifest.json is damaged"):
        store.RunFolder(folder).manifest()


def _chained(tmp_path: Path) -> tuple[Path, list[bytes]]:
    run = store.RunFolder.begin(tmp_path / "run", {})
    for number in range(4):
        run.append(dataclasses.replace(_round(), round=number))
    run.close()
    path = tmp_path / "run" / store.RECORDS
    return path, path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: [lines[0], lines[1].replace(b"0.2", b"0.1"), *lines[2:]], 2),  # a time
        (lambda lines: [lines[0], *lines[2:]], 2),  # a line removed
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
        (lambda lines: [*lines, lines[-1]], 5),
        (lambda lines: [*lines, json.dumps(schema.to_json(_round())).encode() + b"\n"], 5),  # without a hash
    ],
)
def test_a_line_changed_removed_or_added_is_found(tmp_path: Path, change, number: int) -> None:
    path, lines = _chained(tmp_path)
    path.write_bytes(b"".join(change(lines)))
    with pytest.raises(UserError, match=f"line {number} is damaged .it, a line before it or the config is not"):
        store.RunFolder(tmp_path / "run").records()


def test_the_chain_goes_on_after_a_crash_and_after_lines_of_an_older_version(tmp_path: Path, folder: Path) -> None:
    path, lines = _chained(tmp_path / "cut")
    path.write_bytes(b"".join(lines)[:-9])
    for run_folder, config in ((path.parent, {}), (folder, store.RunFolder(folder).config())):
        before = len(store.RunFolder(run_folder).records())
        run = store.RunFolder.begin(run_folder, config)
        run.append(_round())
        run.append(_failure())
        run.close()
        assert len(store.RunFolder(run_folder).records()) == before + 2
    old = (folder / store.RECORDS).read_bytes()
    (folder / store.RECORDS).write_bytes(old.replace(b"0.3", b"0.4"))
    with pytest.raises(UserError, match="is not as it was written"):
        store.RunFolder(folder).records()


def test_a_changed_setting_is_found(tmp_path: Path) -> None:
    path, _ = _chained(tmp_path)
    store.write_json(path.parent / store.CONFIG, {"report": {"overlay": "x"}})
    assert len(store.RunFolder(path.parent).records()) == 4
    store.write_json(path.parent / store.CONFIG, {"weak": "model"})
    with pytest.raises(UserError, match="line 1 is damaged"):
        store.RunFolder(path.parent).records()
