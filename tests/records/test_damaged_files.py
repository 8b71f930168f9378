# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Damaged files of every format that jaxbench reads again. Each is read, or refused by one sentence; never a traceback.

Each example changes a sound file in one of two ways: bits, bytes or lines of its text, or one value in its JSON, by
something that a type, a range or a parser should notice.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxbench.core.store import CONFIG, MANIFEST, RECORDS, write_json, write_manifest
from jaxbench.errors import UserError
from jaxbench.features.audit import checks, table
from jaxbench.features.cards import card as cards
from jaxbench.features.forecast import advice
from jaxbench.features.machine_profile import page as machine_page
from jaxbench.features.training import checkpoint, trainings
from jaxbench.features.training import costs as costs_lib
from jaxbench.records.documents import SHA256, sealed
from jaxbench.report import build
from jaxbench.workloads.data import images, text

DEEP = "[" * 3000 + "]" * 3000
WORDS = ["NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "0.5", "null", '""', '"x"', "[]", "{}", "true", "1e308"]
WORDS += ["9" * 400, '"\\ud800"', '"\\u001b[31m"', "[null]", '{"a": 1}', DEEP, '"²"', "-0.0", '"1"', "1" + "0" * 20]
BYTES = [
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b'"',
    b"{",
    b"]",
    b",",
    b"\xef\xbb\xbf",
    b"\x1b[2J",
    b"\xed\xa0\x80",
    b"NaN",
    b"-",
    b"9",
]
PLACE = "<<place>>"


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here] * bool(here) + [found for name, part in parts for found in paths(part, (*here, name))]


def other_value(line: str, drawn: random.Random) -> str:
    """A JSON text with one value replaced, removed or added. Half of the time without its hash, as old files are."""
    value = json.loads(line)
    if not isinstance(value, dict):
        return drawn.choice(WORDS)
    if drawn.random() < 0.5:
        value.pop(SHA256, None)
    found = paths(value)
    *way, last = drawn.choice(found) if found else ("x",)
    at = value
    for name in way:
        at = at[name]
    how = drawn.random()
    if how < 0.1 and isinstance(at, dict):
        at.pop(last, None)
        return json.dumps(value)
    if how < 0.15 and isinstance(at, dict):
        last = "an unknown field\u001b[31m"
    at[last] = PLACE
    return json.dumps(value).replace(json.dumps(PLACE), drawn.choice(WORDS))


def other_bytes(data: bytes, drawn: random.Random) -> bytes:
    at, end = sorted(drawn.randrange(len(data) + 1) for _ in range(2))
    end = min(end, at + drawn.choice((1, 3, 40, len(data))))
    flipped = bytes([data[at] ^ (1 << drawn.randrange(8))]) if at < len(data) else b"{"
    return drawn.choice(
        (
            data[:at] + flipped + data[at + 1 :],
            data[:at],
            data[:at] + data[end:],
            data[:end] + data[at:end] + data[end:],
            data[:at] + drawn.choice(BYTES) + data[end:],
            data[:at] + bytes(drawn.randrange(256) for _ in range(5)) + data[at:],
        )
    )


def damaged(data: bytes, drawn: random.Random, *, lines: bool, structured: bool) -> bytes:
    if not structured or drawn.random() < 0.4:
        return other_bytes(data, drawn)
    if not lines:
        return other_value(data.decode(), drawn).encode()
    of_file = data.decode().splitlines()
    at = drawn.randrange(len(of_file))
    of_file[at] = other_value(of_file[at], drawn)
    return ("\n".join(of_file) + "\n").encode()


def reported(folder: Path) -> Any:
    """All numbers and sentences of a report, without figures."""
    found = build.find(folder)
    return found.csv(), found.headlines, found.sections(), found.shortfalls(), found.table()


def trained(folder: Path) -> Any:
    curve = trainings.read_curve(folder)
    series = [
        curve.series(what, over) for what in ("test_loss", "train_loss") for over in ("steps", "examples", "seconds")
    ]
    return curve.at_target(), series, costs_lib.steps_to_target(folder, {"experiment": "cnn"})


def timed(folder: Path) -> Any:
    starts = trainings.read_ledger(folder)
    trainings.require_possible(starts)
    costs = costs_lib.measured_costs(starts)
    return trainings.totals(starts), costs, trainings.goodput(trainings.totals(starts)), trainings.ledger_faults(folder)


def profiled(folder: Path) -> Any:
    from jaxbench.analysis import machine_profile

    found = machine_profile.read(folder / machine_profile.NAME)
    assert found is not None
    return machine_page.headlines(found), machine_page.table(found), machine_profile.doubts(found)


def audited(folder: Path) -> Any:
    rows, _ = checks.audit(table.read(folder / "table.csv"))
    return [(row.verdict, row.contradictions, row.doubt, row.efficiency) for row in rows]


def restored(folder: Path) -> Any:
    steps = checkpoint.saved_steps(folder)
    header = checkpoint._checked(folder / str(steps[0]), {"x": np.zeros(3, np.float32)})
    return header.get("damaged") or header["progress"]


@dataclass(frozen=True)
class Format:
    """A file. make: writes a sound one, with all that is read with it. read: what a verb does with it."""

    file: str
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    lines: bool = False
    structured: bool = True


def make_run(folder: Path) -> None:
    fabricate.run_folder(folder, devices=(1, 2), rounds=5, blocks=2)
    manifest = json.loads((folder / MANIFEST).read_text())
    write_manifest(folder, manifest | {"cores": 2, "memory_bytes": 2**33, "sessions": [], "hosts": ["a"]})


def make_cases(folder: Path) -> None:
    fab.case_folder(folder, [fab.matmul(64, call_s=1e-4), fab.matmul(128, call_s=4e-4)], rounds=5)


def make_card(folder: Path) -> None:
    make_run(folder / "run")
    cards.write(cards.make(folder / "run"), folder)
    next(folder.glob("*.json")).rename(folder / "card.json")


def make_machine(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "machine.json", sealed(fab.card()))


def make_training(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    train = {"batch": 64, "target": 0.5, "metric": "loss", "mode": "min"}
    write_json(folder / CONFIG, {"experiment": "cnn", "seed": 0, "model": {}, "train": train})
    rows = (
        {"step": 10 * n, "elapsed_s": 1.5 * n, "compile_s": 0.5, "train_loss": 1 / n, "test_loss": 1 / n}
        for n in (1, 2, 3)
    )
    (folder / trainings.METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_ledger(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"start": start, "begun_ns": 10**9 * start, "from_step": 10 * (start - 1), "step": 10 * start + n,
         "saving": n > 0,
         "sealed": n, "sealing_ns": 5 * n, "finished": start == 2, "ns": {"start": 5, "compile": 3, "steps": 100 * n}}
        for start in (1, 2) for n in (0, 1, 2)
    ]  # fmt: skip
    (folder / trainings.LEDGER).write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_table(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.csv").write_text(
        "# ours\nmodel,params,gpu,gpus,GBS,seq_len,step time (s),tok/s/gpu,TFLOPs/device,MFU (%)\n"
        "Llama 3 8B,8.03B,H100 SXM,8,128,8192,12.27,10682,549.8,55.6\n"
        'Llama 3 8B,8.03B,H100 SXM,16,256,8192,12.31,"10,650",548.1,55.4\n'
    )


def make_checkpoint(folder: Path) -> None:
    (folder / "20").mkdir(parents=True, exist_ok=True)
    (folder / "²").mkdir(exist_ok=True)  # str.isdigit takes it for a number, and int() does not
    leaves = {"x": np.zeros(3, np.float32)}
    header = {
        "format": 1,
        "shapes": checkpoint.shapes(leaves),
        "sha256": checkpoint.sha256(leaves),
        "progress": {"row": 1},
    }
    text = json.dumps(header | {"files": {}})
    write_json(folder / "20" / checkpoint.SEAL, {"header": text, "sha256": hashlib.sha256(text.encode()).hexdigest()})


def make_prices(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prices.csv").write_text(
        "device,provider,price,unit,date,watts,source\nNVIDIA H100 SXM,ours,2.5,USD/device-hour,2026-11-01,700,a bill\n"
        "NVIDIA A100 SXM 80GB,ours,1.5,USD/device-hour,2026-11-01,400,a bill\n"
    )


def make_images(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    x, y = np.zeros((4, 8, 8), np.uint8), np.arange(4)
    np.savez_compressed(folder / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)


def make_texts(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f'"a text, number {n}",{n % 2}\n' for n in range(12))
    (folder / "texts.csv").write_text(f"text,label\n{lines}")


FORMATS = {
    "records": Format(RECORDS, make_run, reported, lines=True),
    "records of cases": Format(RECORDS, make_cases, reported, lines=True),
    "manifest": Format(MANIFEST, make_run, reported),
    "config": Format(CONFIG, make_run, reported),
    "config of a training": Format(CONFIG, make_training, trained),
    "card": Format("card.json", make_card, lambda folder: cards.read(folder / "card.json").run().rows(None)),
    "machine": Format("machine.json", make_machine, profiled),
    "metrics": Format(trainings.METRICS, make_training, trained, lines=True),
    "account": Format(trainings.LEDGER, make_ledger, timed, lines=True),
    "audit": Format("table.csv", make_table, audited, structured=False),
    "checkpoint": Format(f"20/{checkpoint.SEAL}", make_checkpoint, restored),
    "prices": Format(
        "prices.csv", make_prices, lambda folder: advice.read_prices(folder / "prices.csv"), structured=False
    ),
    "images": Format(
        "own.npz",
        make_images,
        lambda folder: images._npz(folder / "own.npz", size=(8, 8), classes=10),
        structured=False,
    ),
    "texts": Format("texts.csv", make_texts, lambda folder: text._csv(folder / "texts.csv"), structured=False),
}


def finite(value: Any) -> bool:
    """Whether a result has no number that is not finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list | tuple) else True


@pytest.mark.parametrize("examples", [50, pytest.param(2000, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused_by_a_sentence(tmp_path: Path, name: str, examples: int) -> None:
    of = FORMATS[name]
    of.make(tmp_path / "run")
    of.read(tmp_path / "run")  # the sound file
    path = tmp_path / "run" / of.file
    sound = path.read_bytes()

    @settings(max_examples=examples, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(seed=st.integers(0, 2**62))
    def check(seed: int) -> None:
        path.write_bytes(damaged(sound, random.Random(seed), lines=of.lines, structured=of.structured))
        try:
            answer = of.read(tmp_path / "run")
        except UserError as error:
            assert str(error) and "\n" not in str(error), error
        else:
            assert name not in ("metrics", "account", "config of a training", "audit") or finite(answer)

    check()
