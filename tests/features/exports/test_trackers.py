# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each experiment tracker receives the numbers, and its own reader gives them back. `make test-trackers` has all."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import fabricate
import pytest
from doorway import jaxbench

import jaxbench as jb

POINT = "shard_map/strong/2"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> jb.Run:
    monkeypatch.chdir(tmp_path)
    path = fabricate.run_folder(tmp_path / "measured", devices=(1, 2), rounds=6, processes=3, scalings=("strong",))
    loaded = jb.load(path)
    assert isinstance(loaded, jb.Run)
    return loaded


def expected(run: jb.Run) -> dict[str, float]:
    row = run.table[run.table.devices == 2].iloc[0]
    return {f"{POINT}/step_s": row.step_s, f"{POINT}/step_s_lo": row.step_s_lo, f"{POINT}/efficiency": row.efficiency}


def test_tracker_tensorboard(run: jb.Run) -> None:
    jb.log(run, to="tensorboard", project="mine")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (file,) = (run.path / "tensorboard" / "mine").glob("events.out.tfevents.*")
    found = reader.EventAccumulator(str(file)).Reload()
    for name, value in expected(run).items():
        (event,) = found.Scalars(name)
        assert event.value == pytest.approx(value, rel=1e-6)


@pytest.mark.filterwarnings("default")
def test_tracker_mlflow(run: jb.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlruns")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    jb.log(run, to="mlflow", project="mine")
    client = mlflow.MlflowClient()
    (logged,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    for name, value in expected(run).items():
        assert logged.data.metrics[name] == pytest.approx(value)
    assert logged.data.params["model.dtype"] == "float32"
    assert [each.path for each in client.list_artifacts(logged.info.run_id)] == ["summary.md"]


@pytest.mark.filterwarnings("default")
def test_tracker_wandb(run: jb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline: the file that would be sent."""
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    monkeypatch.setenv("WANDB_MODE", "offline")
    jb.log(run, to="wandb", project="mine")
    (file,) = (run.path / "wandb").glob("offline-run-*/run-*.wandb")
    found: dict[str, float] = {}
    for data in leveldb_records(file.read_bytes()):
        for item in messages.Record.FromString(data).history.item:
            found["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
    for name, value in expected(run).items():
        assert found[name] == pytest.approx(value)


def leveldb_records(content: bytes) -> Iterator[bytes]:
    """LevelDB's log format: blocks of 32 KiB with parts of records, each after its checksum, length and kind."""
    at, record = 7, b""  # after wandb's own header
    while at + 7 <= len(content):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


@pytest.mark.filterwarnings("default")
def test_tracker_trackio(run: jb.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    storage = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    jb.log(run, to="trackio", project="mine")
    found = {name: value for line in storage.get_logs("mine", run.path.name) for name, value in line.items()}
    for name, value in expected(run).items():
        assert found[name] == pytest.approx(value)


def test_tracker_curves_of_a_training(tmp_path: Path) -> None:
    from jaxbench.features.exports import source

    words = ("train", "mlp", "--config.mesh.devices=1", "--config.mesh.platform=cpu", "--config.train.epochs=2")
    done = jaxbench(*words, "--config.train.target=0.9999", f"--workdir={tmp_path / 'a'}")
    assert done.returncode == 1, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    series = source.find(tmp_path / "a").series()
    assert [(step, numbers["test_accuracy"]) for step, numbers in series] == [
        (row["step"], row["test_accuracy"]) for row in rows
    ]


def test_tracker_that_is_unknown_or_absent_is_one_sentence(run: jb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(jb.JaxbenchError, match="to='wanb' is no tracker that jaxbench logs to: did you mean 'wandb'"):
        jb.log(run, to="wanb")
    monkeypatch.setattr("jaxbench.features.exports.trackers.find_spec", lambda name: None)
    with pytest.raises(jb.JaxbenchError, match="needs tensorboardX, which is not installed: pip install tensorboardX"):
        jb.log(run, to="tensorboard")
