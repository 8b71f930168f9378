# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A card holds the whole run, is valid, and is refused in one sentence if a byte of it changed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fabricate_losses
import pytest
from fabricate_cases import case_folder, collective, matmul
from features.cards import card_cases
from rich.console import Console

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.machine_profile import SCHEMA as MACHINE_SCHEMA
from jaxbench.core import schema
from jaxbench.core.store import CONFIG, MANIFEST, RECORDS, RunFolder
from jaxbench.errors import UserError
from jaxbench.features.cards import card
from jaxbench.records import documents


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return card_cases.run(tmp_path / "run", devices=(1, 2, 4), cores=2)


def valid(data: dict[str, Any]) -> None:
    documents.decode(card.CardDocument, data)
    for line in data["records"]:
        schema.from_json(line)
    json.dumps(data, allow_nan=False)


def test_holds_the_whole_run(run: Path, tmp_path: Path) -> None:
    path = card_cases.made(run, tmp_path / "cards")
    held = card.read(path).data
    valid(held)
    assert path.name == f"cnn-cpu-4-{held['sha256'][:8]}.json"
    assert held["records"] == [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]
    assert held["config"] == card_cases.CONFIG
    assert {name: held["manifest"][name] for name in card_cases.MANIFEST} == card_cases.MANIFEST


def test_the_summary_is_that_of_the_analysis_and_the_run_comes_back_out(run: Path, tmp_path: Path) -> None:
    read = card.read(card_cases.made(run, tmp_path))
    rows = run_rows.analyse(points.load(RunFolder(run)), config={})
    assert len(rows) == len(read.points) == 6
    for row, held in zip(rows, read.points, strict=True):
        assert (held["point"], held["oversubscribed"]) == (row.point_id, row.point.devices > 2)
        assert (held["step_s"], held["step_s_lo"]) == (row.timing.step_s.value, row.timing.step_s.lo)
        assert (held["efficiency"], held["efficiency_hi"]) == (row.efficiency.value, row.efficiency.hi)
        assert held["peak_bytes"] == row.point.record.compile_report.peak_bytes  # type: ignore[union-attr]
    assert list(read.run().points) == points.load(RunFolder(run))


def test_a_run_has_one_card_and_another_is_never_overwritten(run: Path, tmp_path: Path) -> None:
    first, second = card_cases.made(run, tmp_path / "cards"), card_cases.made(run, tmp_path / "cards")
    assert first == second and len(list((tmp_path / "cards").iterdir())) == 1
    first.write_text(first.read_text() + " ")
    with pytest.raises(UserError, match="not overwritten"):
        card_cases.made(run, tmp_path / "cards")
    assert first.read_text().endswith(" ")


def test_cases(tmp_path: Path) -> None:
    made = [matmul(512, call_s=0.01), collective("all_reduce", 2**20, 2, call_s=1e-3, failure="no link", rounds=1)]
    held = card.make(case_folder(tmp_path / "run", made, view="matmul"))
    valid({**held, "config": {"experiment": "matmul", **held["config"]}})
    assert held["measures"] == "cases" and len(held["points"]) == 2
    assert [point["status"] for point in held["points"]] == ["ok", "failed"]
    assert any("no link" in note for note in held["notes"])


def test_a_failed_point_is_kept_and_save_says_where_and_what_to_know(run: Path, tmp_path: Path) -> None:
    card_cases.append(run, card_cases.failure("shard_map/strong/4"))
    held = card.read(card_cases.made(run, tmp_path)).data
    valid(held)
    (failed,) = [point for point in held["points"] if point["status"] == "failed"]
    assert failed["point"] == "shard_map/strong/4" and "no memory" in failed["reason"]
    assert "shard_map/strong/4: failed (compile: no memory)." in held["notes"]
    console = Console(file=io.StringIO(), width=100, markup=False)
    assert card.save(run, tmp_path / "cards", console) == 0
    text = console.file.getvalue()  # type: ignore[attr-defined]
    (path,) = (tmp_path / "cards").iterdir()
    assert f"Card: {path}" in text and "failed (compile: no memory)" in text and "link and peak" in text


def test_one_sample_only(tmp_path: Path) -> None:
    held = card.make(card_cases.run(tmp_path / "run", rounds=1, blocks=1))
    valid(held)
    assert all(point["step_s"] and point["step_s_lo"] is None for point in held["points"])
    assert any("no interval, because it has 1 of the 5 rounds" in note for note in held["notes"])


def test_a_half_written_run(run: Path) -> None:
    whole = (run / RECORDS).read_text()
    (run / RECORDS).write_text(whole[:-100])
    held = card.make(run)
    assert any("unfinished, skipped" in note for note in held["notes"])
    assert any("4 of 5 rounds" in note for note in held["notes"])
    assert len(held["records"]) == whole.count("\n") - 1
    (run / RECORDS).write_text("")
    with pytest.raises(UserError, match="no measured round"):
        card.make(run)
    (run / MANIFEST).write_text('{"plan": ')
    with pytest.raises(UserError, match="damaged"):
        card.make(run)


def test_a_folder_that_is_not_a_run_or_of_another_schema(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        card.make(tmp_path / "nowhere")
    with pytest.raises(UserError, match="not a run folder"):
        card.make(run.parent)
    (run / RECORDS).write_text((run / RECORDS).read_text().replace('"schema":1', '"schema":7'))
    with pytest.raises(UserError, match="schema 7"):
        card.make(run)


def test_a_number_that_is_not_finite(run: Path) -> None:
    card_cases.edit(run / MANIFEST, {"memory_bytes": float("nan")})
    with pytest.raises(UserError, match="not finite"):
        card.make(run)


def test_links_and_peaks_of_this_machine_only(run: Path) -> None:
    assert card.make(run)["machine"] is None and "jaxbench machine" in card.make(run)["machine_why_not"]
    lists: dict[str, Any] = {name: [] for name in ("made_of", "peaks", "launch", "links", "transfers")}
    mine = {"schema": MACHINE_SCHEMA, "made": "2026", "machine": card_cases.MANIFEST, **lists}
    (run / "machine.json").write_text(json.dumps(mine))
    held = card.make(run)
    valid(held)
    assert held["machine"] == mine and held["machine_why_not"] == ""
    (run / "machine.json").write_text(json.dumps({**mine, "machine": {**card_cases.MANIFEST, "cores": 3}}))
    assert card.make(run)["machine"] is None and "another machine" in card.make(run)["machine_why_not"]


def test_any_changed_byte_is_seen(run: Path, tmp_path: Path) -> None:
    path = card_cases.made(run, tmp_path)
    data = path.read_bytes()
    places = [
        data.index(word) + len(word) for word in (b'"block_s": [', b'"cpu_model": "', b'"sha256": "', b'"step_s": ')
    ]
    for place in (*places, data.rindex(b"}")):
        changed = bytes([data[place] ^ 1])
        path.write_bytes(data[:place] + changed + data[place + 1 :])
        with pytest.raises(UserError, match=path.name):
            card.read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is damaged"),
        ('{"kind": "jaxbench card", "sche', "is damaged"),
        ("[]", "not a result card"),
        ('{"kind": "jaxbench card", "schema": 2}', "schema: 2 is not 1"),
        ('{"kind": "jaxbench card", "schema": true}', "schema: True is not 1"),
        ('{"kind": "jaxbench card", "schema": 1, "sha256": "", "a": NaN}', "not finite"),
        ('{"kind": "jaxbench card", "schema": 1, "sha256": "", "a": 1e999}', "not finite"),
        ('{"kind": "jaxbench card", "schema": 1}', "no field 'name'"),
        ("[" * 100_000, "is damaged"),
    ],
)
def test_a_file_that_is_not_a_card(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        card.read(path)
    assert "odd.json" in str(caught.value) and "\n" not in str(caught.value)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    cases = ("bytes.json", "is damaged"), ("nowhere.json", "cannot be read"), (".", "cannot be read")
    for name, said in cases:
        with pytest.raises(UserError, match=said) as caught:
            card.read(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"points": 3}, "points: 3 is not a list"),
        ({"points": [{}]}, "its table and its records do not have the same points"),
        ({"measures": "time"}, "'time' is not 'training' or 'cases'"),
        ({"more": 1}, "unknown field 'more'"),
        ({"records": [{"schema": 9}]}, "has schema 9"),
        ({"records": [3]}, "records: 3 is not an object"),
    ],
)
def test_a_right_hash_is_not_believed_alone(run: Path, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = card_cases.forge(card_cases.made(run, tmp_path), **changes)
    with pytest.raises(UserError, match=said):
        card.read(path)


@pytest.mark.parametrize(("field", "value"), [("efficiency", 0.99), ("step_s", 1e-6), ("devices", 64)])
def test_a_table_that_its_own_records_contradict_is_damage(run: Path, tmp_path: Path, field: str, value: float) -> None:
    """The table had an efficiency of 99 % and the records 15 %, with the right hash."""
    path = card_cases.made(run, tmp_path)
    points = json.loads(path.read_text())["points"]
    (last,) = [point for point in points if point["point"] == "shard_map/strong/4"]
    last[field] = value
    with pytest.raises(UserError, match=f"its table has {field} {value!r} at shard_map/strong/4, and its records"):
        card.read(card_cases.forge(path, points=points))


def test_a_card_that_names_another_experiment_than_its_records_is_damage(run: Path, tmp_path: Path) -> None:
    path = card_cases.made(run, tmp_path)
    forged = card_cases.forge(path, name={"experiment": "gpt", "device_kind": "cpu", "devices": 4})
    with pytest.raises(UserError, match="its name has experiment 'gpt', and its records 'cnn'"):
        card.read(forged)


def test_the_committed_cards_agree_with_their_records() -> None:
    assert all(card.read(path).points for path in (Path(__file__).parents[3] / "cards").glob("*.json"))


def test_records_that_are_none(run: Path, tmp_path: Path) -> None:
    path = card_cases.forge(card_cases.made(run, tmp_path), records=[{"schema": 1, "kind": "round"}])
    with pytest.raises(UserError, match="does not hold a run") as caught:
        card.read(path).run()
    assert path.name in str(caught.value)


def test_points_that_explain_others_are_kept_and_are_no_points_of_the_card(tmp_path: Path) -> None:
    path = fabricate_losses.folder(tmp_path / "run", {2: fabricate_losses.Loss(machine=0.8)})
    card_cases.edit(path / MANIFEST, card_cases.MANIFEST)
    card_cases.edit(path / CONFIG, card_cases.CONFIG)
    read = card.read(card_cases.made(path, tmp_path))
    assert [point["point"] for point in read.points] == ["shard_map/strong/1", "shard_map/strong/2"]
    valid(read.data)
    assert [point.part for point in read.run().ablations] == ["alone", "local", "communication"]
