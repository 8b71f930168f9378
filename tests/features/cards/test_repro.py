# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A card's config keeps its types, and a real run becomes a card and is run again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doorway import QUICK_MLP, environment, jaxbench
from features.cards import card_cases

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.store import CONFIG, MANIFEST, write_json
from jaxbench.errors import UserError
from jaxbench.features.cards import card as cards
from jaxbench.features.cards import repro
from jaxbench.features.cards.card import Card
from jaxbench.records.documents import flatten

AGAIN = """
import sys
from pathlib import Path
from rich.console import Console
from jaxbench.features.cards import repro
if __name__ == "__main__":
    sys.exit(repro.repro(Path(sys.argv[1]), Path(sys.argv[2]), Console(width=160, markup=False)))
"""


def composed(experiment: str) -> dict[str, Any]:
    preset = discovery.load_preset("smoke")
    return config_lib.plain(config_lib.compose(experiment, discovery.load_experiment(experiment), preset))


def card_of(tmp_path: Path, config: dict[str, Any], **manifest: Any) -> Card:
    batch = config["batch"] if isinstance(config.get("batch"), int) else 256
    run = card_cases.run(tmp_path / "run", devices=(1, 2), manifest=manifest, batch=batch)
    write_json(run / CONFIG, config)
    return cards.read(card_cases.made(run, tmp_path))


@pytest.mark.parametrize("experiment", ["mlp", "cnn", "gpt", "matmul", "precision"])
def test_the_config_comes_back_as_it_was(tmp_path: Path, experiment: str) -> None:
    config = composed(experiment)
    found, notes = repro.config_of(card_of(tmp_path, config), experiment)
    plain = config_lib.plain(found)
    assert plain == config and not notes
    assert {n: type(v) for n, v in flatten(plain).items()} == {n: type(v) for n, v in flatten(config).items()}
    assert found.is_locked


def test_a_missing_setting_is_said(tmp_path: Path) -> None:
    config = composed("mlp")
    del config["depths"]
    _, notes = repro.config_of(card_of(tmp_path, config), "mlp")
    assert len(notes) == 1 and "older than the setting depths" in notes[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"batchsize": 3}, "batchsize"), ({"batch": "many"}, "batch"), ({"mesh": 3}, "mesh")],
)
def test_a_setting_that_does_not_fit(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    card = card_of(tmp_path, {**composed("mlp"), **changes})
    with pytest.raises(UserError, match=said) as caught:
        repro.config_of(card, "mlp")
    assert card.path.name in str(caught.value)


def test_where_the_experiment_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("")
    card = card_of(tmp_path, {"experiment": "mlp"})
    assert repro.source(card) == "mlp"
    card.manifest["command"] = ["jaxbench", "run", str(mine)]
    assert repro.source(card) == str(mine)
    card.manifest["command"] = ["jaxbench", "run", "~/gone.py"]
    card.data["config"]["experiment"] = "gone"
    with pytest.raises(UserError, match="'gone' of the card"):
        repro.source(card)


def test_another_machine_is_said_first(tmp_path: Path) -> None:
    card = card_of(tmp_path, {"experiment": "mlp"})
    assert repro.other_machine(card, card_cases.MANIFEST) == []
    assert repro.other_machine(card, {**card_cases.MANIFEST, "devices": 9}) == []  # created on demand
    (said,) = repro.other_machine(card, {**card_cases.MANIFEST, "cores": 64})
    assert "Testium 9000, 8 cores (usable cores 8, here 64)" in said and "only shown" in said


def again(card: Path, workdir: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", AGAIN, str(card), str(workdir)]
    return subprocess.run(words, capture_output=True, text=True, timeout=240, env=environment())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card of a run, in a folder next to it."""
    folder = tmp_path_factory.mktemp("real")
    done = jaxbench("run", "mlp", *QUICK_MLP, "--config.measure.rounds=4", f"--workdir={folder / 'run'}")
    assert done.returncode == 0, done.stderr
    return card_cases.made(folder / "run", folder)


@pytest.mark.full
def test_a_real_run_again(real: Path, tmp_path: Path) -> None:
    path, run = real, real.parent / "run"
    done = again(path, tmp_path / "again")
    assert done.returncode in (0, 1, 2, 3), done.stderr  # a busy machine: any verdict, but never a traceback
    assert "Traceback" not in done.stderr
    assert path.name in done.stdout and "jit_auto/strong/2" in done.stdout
    assert json.loads((tmp_path / "again" / CONFIG).read_text()) == json.loads((run / CONFIG).read_text())


@pytest.mark.full
def test_another_machine_and_another_source_are_said_before_anything_is_measured(real: Path, tmp_path: Path) -> None:
    path = real
    held = cards.read(path).manifest
    other = {**held, "cpu_model": "Other 1", "experiment_sha256": "0" * 64}
    (tmp_path / "other").mkdir()
    forged = tmp_path / "other" / path.name
    forged.write_text(path.read_text())
    done = again(card_cases.forge(forged, manifest=other), tmp_path / "again")
    first, second, *_ = done.stdout.splitlines()
    assert "another kind of machine, Other 1" in first and "source of the experiment differs" in second
    assert done.returncode in (0, 1, 2, 3) and "Step times of another kind of machine are not judged." in done.stdout
    assert MANIFEST in {file.name for file in (tmp_path / "again").iterdir()}
