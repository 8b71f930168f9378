# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Within and outside: an equal rerun is within, a slower one is outside, and an undecided one is reported."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doorway import QUICK_MLP, environment, jaxbench
from fabricate import amdahl
from fabricate_cases import case_folder, matmul
from features.cards import card_cases
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.store import CONFIG, MANIFEST, RECORDS, write_json
from jaxbench.errors import UserError
from jaxbench.features.cards import card as cards
from jaxbench.features.cards import repro
from jaxbench.features.cards.card import Card
from jaxbench.features.cards.repro import CANNOT_TELL, MARGIN, NOT_JUDGED, OUTSIDE, WITHIN, PointAgreement
from jaxbench.features.comparison.comparable import read
from jaxbench.records.documents import flatten
from jaxbench.statistics.bootstrap import ASSUMED

FACTS: dict[str, Any] = dict(devices=(1, 2, 4), rounds=10)


@pytest.fixture
def card(tmp_path: Path) -> Path:
    return card_cases.made(card_cases.run(tmp_path / "then", **FACTS), tmp_path)


def answers(card: Path, now: Path, *, same_machine: bool = True, margin: float = MARGIN) -> dict[str, PointAgreement]:
    runs, spreads = (cards.read(card).run(), read(now)), (ASSUMED, ASSUMED)
    found = repro.agree(*runs, spreads, same_machine=same_machine, margin=margin)
    return {answer.point: answer for answer in found}


def compared(card: Path, now: Path, margin: float = MARGIN) -> tuple[int, str]:
    held = cards.read(card)
    console = Console(file=io.StringIO(), width=160, markup=False)
    code = repro.compare(held, held.run(), now, console, margin)
    return code, console.file.getvalue()  # type: ignore[attr-defined]


def test_the_same_again_is_within(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", seed=1, **FACTS)
    found = answers(card, now)
    assert {v for answer in found.values() for v in answer.verdicts} == {WITHIN}
    assert found["shard_map/strong/1"].efficiency.verdict == NOT_JUDGED  # it is the base
    assert found["shard_map/strong/4"].efficiency.b == pytest.approx(1 / (0.05 * 4 + 0.95), rel=0.02)
    code, text = compared(card, now)
    assert code == 0 and "Reproduced: " in text and "(10 within)" in text
    assert "differences of up to" in text and "3.0 %, assumed" in text


def test_slower_or_another_scaling_is_outside(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", seed=1, base_step_s=1.5 * 0.0123, **FACTS)
    found = answers(card, now)
    assert {answer.time.verdict for answer in found.values()} == {OUTSIDE}
    assert {answer.efficiency.verdict for answer in found.values()} == {WITHIN, NOT_JUDGED}
    assert found["shard_map/weak/2"].time.ratio.value == pytest.approx(1.5, rel=0.03)
    code, text = compared(card, now)
    assert code == 1 and "Not reproduced" in text and "6 outside" in text
    found = answers(card, card_cases.run(tmp_path / "other", law=amdahl(0.6), **FACTS))
    assert found["shard_map/strong/1"].time.verdict == WITHIN
    assert found["shard_map/strong/4"].efficiency.verdict == OUTSIDE


@pytest.mark.full
def test_a_reproduction_is_rarely_called_outside(tmp_path: Path) -> None:
    """Of 20 reproductions with six points each, a few at most are outside; with 95 % per point, five or more."""
    runs = [card_cases.run(tmp_path / f"{i}", seed=i, drift=0.05, **FACTS) for i in range(21)]
    first = card_cases.made(runs[0], tmp_path / "cards")
    alarms = sum(repro.exit_code(list(answers(first, now).values())) == 1 for now in runs[1:])
    assert alarms <= 3


def test_another_machine_is_judged_by_its_efficiency(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", manifest={"cpu_model": "Other 1"}, base_step_s=0.05, **FACTS)
    found = answers(card, now, same_machine=False)
    assert {answer.time.verdict for answer in found.values()} == {NOT_JUDGED}
    assert found["shard_map/strong/4"].time.ratio.known  # shown anyway
    code, text = compared(card, now)
    assert code == 0 and "not judged" in text and "another kind of machine" in text


def test_cases_of_another_machine_are_not_comparable(tmp_path: Path) -> None:
    case_folder(tmp_path / "then", [matmul(512, call_s=0.01)], view="matmul")
    case_folder(tmp_path / "now", [matmul(512, call_s=0.05)], view="matmul")
    card_cases.edit(tmp_path / "then" / "config.json", {"experiment": "matmul"})
    card_cases.edit(tmp_path / "then" / "manifest.json", {"cpu_model": "A"})
    card_cases.edit(tmp_path / "now" / "manifest.json", {"cpu_model": "B"})
    card = card_cases.made(tmp_path / "then", tmp_path)
    code, text = compared(card, tmp_path / "now")
    assert code == 3 and "Not comparable" in text
    card_cases.edit(tmp_path / "now" / "manifest.json", {"cpu_model": "A"})
    assert compared(card, tmp_path / "now")[0] == 1


def test_another_model_or_a_run_with_nothing_in_it_is_not_comparable(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", **FACTS)
    text = (now / RECORDS).read_text()
    (now / RECORDS).write_text(text.replace('"parameters":61706', '"parameters":3466'))
    with pytest.raises(UserError, match=r"not that of the card \(parameters: 61,706 in the card, 3,466 now\)"):
        compared(card, now)
    (now / RECORDS).write_text("")
    with pytest.raises(UserError, match="no measured round"):
        compared(card, now)


def test_one_sample_cannot_be_told(card: Path, tmp_path: Path) -> None:
    code, text = compared(card, card_cases.run(tmp_path / "now", **{**FACTS, "rounds": 1}))
    assert code == 2 and "Inconclusive" in text and "only one round" in text
    code, text = compared(card, card_cases.run(tmp_path / "two", **{**FACTS, "rounds": 2}, processes=1, drift=0.6))
    assert code == 2 and "Consistent, but only differences above" in text


def test_a_wide_interval_around_one_is_no_reproduction(card: Path, tmp_path: Path) -> None:
    """An effect too small for the interval was not reproduced: the margin decides."""
    now = card_cases.run(tmp_path / "now", seed=1, **FACTS)
    code, text = compared(card, now, 0.05)
    assert code == 2 and "Reproduced" not in text
    assert re.search(r"Consistent, but only differences above 1\d % in a step time .* the margin is 5 %", text), text
    assert "4 within, 6 consistent" in text  # the efficiencies are narrow


def test_a_small_difference_that_was_seen_is_within_a_larger_margin(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", seed=1, law=amdahl(0.07), **FACTS)
    found = {margin: answers(card, now, margin=margin)["shard_map/strong/4"].efficiency for margin in (0.02, 0.06, 0.1)}
    assert found[0.02].ratio.hi < 1
    assert [found[margin].verdict for margin in found] == [OUTSIDE, CANNOT_TELL, WITHIN]
    assert "by more or by less than the margin" in found[0.06].why


def test_failed_and_wrong_points(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", wrong=("shard_map/weak/2",), **FACTS)
    card_cases.append(now, card_cases.failure("shard_map/strong/4"))
    found = answers(card, now)
    assert found["shard_map/strong/4"].outcome == found["shard_map/weak/2"].outcome == OUTSIDE
    code, text = compared(card, now)
    assert code == 1
    assert "shard_map/strong/4: right in the card, now failed (compile: no memory)." in text
    assert "shard_map/weak/2: right in the card, now wrong (parameters: differ" in text
    failed = card_cases.made(now, tmp_path / "cards")
    code, text = compared(failed, tmp_path / "then")
    assert code == 2 and "now right, in the card failed" in text
    code, text = compared(failed, now)
    assert code == 2 and "in the card failed (compile: no memory), now failed" in text


def test_points_of_one_side_only(card: Path, tmp_path: Path) -> None:
    now = card_cases.run(tmp_path / "now", **{**FACTS, "devices": (1, 2, 8)})
    code, text = compared(card, now)
    assert code == 2
    assert "shard_map/strong/4: this run does not have it." in text
    assert "shard_map/strong/8: the card does not have it." in text


# A card's config keeps its types, and a real run becomes a card and is run again.


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
