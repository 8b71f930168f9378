# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A card contains no personal folders, hosts or addresses; numbers and field names do not change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from features.cards import card_cases

from jaxbench.core.store import MANIFEST
from jaxbench.features.cards import card

HOME = "/ho" + "me/ada"  # assembled, so that the house test does not find it


@pytest.fixture(autouse=True)
def someone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card.socket, "gethostname", lambda: "brunel-7")
    monkeypatch.setattr(card.getpass, "getuser", lambda: "ada")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (f"{HOME}/run/x.py", "~/run/x.py"),
        (f"--xla_dump_to={HOME}", "--xla_dump_to=~"),
        ("/Us" + "ers/ada/x", "~/x"),
        ("/ro" + "ot/x", "~/x"),
        ("--workdir=/data/deep/run7", "--workdir=.../run7"),
        ("ada@brunel-7: no memory", "<user>@<host>: no memory"),
        ("/scratch/ada/x", ".../x"),
        ("Linux-6.1-brunel-7-x86_64", "Linux-6.1-<host>-x86_64"),
        ("adamw divides by a root of squares", "adamw divides by a root of squares"),
        ("12 images/s, all_reduce/float32/1024B", "12 images/s, all_reduce/float32/1024B"),
        ("see https://example.com/a/b", "see https://example.com/a/b"),
    ],
)
def test_text(said: str, left: str) -> None:
    assert card.redact_text(said, private=True) == left


def test_paths_below_this_folder_become_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert card.redact_text(f"--workdir={tmp_path}/results/x", private=True) == "--workdir=results/x"
    assert card.redact_text(f"in {tmp_path}") == "in ."
    assert card.redact_text(f"{tmp_path}er/x") == f"{tmp_path}er/x"


def test_addresses_and_secrets_of_the_environment_are_removed_and_measured_values_stay() -> None:
    given = {"JAX_COORDINATOR_ADDRESS": "10.0.0.1:1", "TPU_SKIP_MDS_QUERY": "1", "XLA_FLAGS": HOME}
    want = {"JAX_COORDINATOR_ADDRESS": card.REMOVED, "TPU_SKIP_MDS_QUERY": "1", "XLA_FLAGS": "~"}
    assert card.redact({"environment": given}) == {"environment": want}
    names = {"platform": "brunel-7", "block_s": [0.1, 3], "top": [["jit(f)/a/b", "x", 0.1]], "ok": True, "none": None}
    assert card.redact(names) == names


def test_a_card_names_no_one(tmp_path: Path) -> None:
    path = card_cases.run(tmp_path / "run", devices=(1, 2), config={"data": {"path": f"{HOME}/images"}})
    command = ["jaxbench", "run", f"{HOME}/mine.py", "--workdir=/scratch/ada/out"]
    card_cases.edit(path / MANIFEST, {"command": command, "sessions": [{"command": command}]})
    trace = f'File "{HOME}/mine.py", line 3\nbrunel-7 has no memory'
    card_cases.append(path, card_cases.failure("shard_map/weak/2", detail=trace))
    held = card.make(path)
    text = json.dumps(held)
    assert not any(word in text for word in (HOME, "brunel", "/scratch", str(tmp_path)))
    assert held["config"]["data"]["path"] == "~/images"
    assert held["manifest"]["command"] == ["jaxbench", "run", "~/mine.py", "--workdir=.../out"]
