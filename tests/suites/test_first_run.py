# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A first run with fake parts and a fake clock: what ends it, how it continues, and which files it writes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import fabricate
import pytest
from report.runs import unscripted
from rich.console import Console

from jaxbench.core.store import lock_folder
from jaxbench.errors import UserError
from jaxbench.features.cards import card
from jaxbench.machine import manifest
from jaxbench.suites import first_run
from jaxbench.suites.command import Ended
from jaxbench.suites.first_run import Part

HOME = "/ho" + "me/ada"  # assembled, so that the house test does not find it
MACHINE = {
    "platform": "cpu", "device_kind": "cpu", "devices": 1, "cores": 8, "cpu_model": "<b>Fabricated</b>", "os": "Linux",
    "memory_bytes": 2**33, "python": "3.11.9", "environment": {"XLA_FLAGS": f"--xla_dump_to={HOME}/dump"},
    "versions": {"jaxbench": "0.1", "jax": "0.10.2", "jaxlib": "0.10.2"}, "git": {"commit": "0123456789abcdef"},
}  # fmt: skip
CNN = Part(run="smoke-cnn", stage=first_run.SMOKE, experiment="cnn", words=("run", "cnn"))
MLP = Part(run="smoke-mlp", stage=first_run.SMOKE, experiment="mlp", words=("run", "mlp"))
GPT = Part(run="scaling-gpt", stage=first_run.SCALING, experiment="gpt", words=("run", "gpt"))
ASKED = [CNN, MLP, GPT]


class Stand:
    """Replaces the start of commands: writes their folders and advances the clock. what: the outcome by folder."""

    def __init__(self, **what: Any):
        self.now, self.each_s, self.asked = 100.0, 60.0, list[str]()
        self.what = {name.replace("_", "-"): value for name, value in what.items()}
        self.limits: dict[str, float] = {}

    def clock(self) -> float:
        return self.now

    def launch(self, words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        folder = Path(words[-1].removeprefix("--workdir="))
        self.asked.append(folder.name)
        self.limits[folder.name] = limit_s
        self.now += min(self.each_s, limit_s)
        becomes = self.what.get(folder.name, Ended(0, "fine"))
        if isinstance(becomes, KeyboardInterrupt):
            raise becomes
        if becomes.code in (0, 1):
            bad = ["pmap/strong/2"] if becomes.code else []
            fabricate.run_folder(folder, strategies=["pmap"], scalings=["strong"], devices=[1, 2, 4], wrong=bad)
        return becomes


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "probe", lambda platform: MACHINE)
    monkeypatch.setattr(first_run, "all_of", lambda machine: ASKED)
    monkeypatch.setattr(card.socket, "gethostname", lambda: "brunel-7")


def run(folder: Path, stand: Stand) -> tuple[bool, dict[str, Any], str]:
    said = Console(record=True, width=160, file=io.StringIO())
    ok = first_run.first_run(folder, said, launch=stand.launch, clock=stand.clock)
    return ok, document(folder), said.export_text()


def document(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "first-run.json").read_text())


def outcomes(folder: Path) -> list[str]:
    return [about["outcome"] for about in sorted(document(folder)["parts"].values(), key=lambda about: about["number"])]


def page(folder: Path) -> str:
    return re.sub(r"\s+", " ", (folder / "first-run.html").read_text())


def test_all_as_expected(tmp_path: Path) -> None:
    ok, made, said = run(tmp_path, Stand())
    assert ok and outcomes(tmp_path) == ["done"] * 3
    assert made["parts"]["smoke-cnn"]["seconds"] == 60 and made["parts"]["smoke-cnn"]["words"] == ["run", "cnn"]
    assert {item["agrees"] for item in made["found"]["scaling-gpt"]["items"]} == {"yes", "cannot tell"}
    assert made["found"]["smoke-cnn"]["grid"] == {"pmap": "yes"}
    assert {record["kind"] for record in made["found"]["smoke-cnn"]["records"]["smoke-cnn"]} == {"point"}
    assert "is as expected" in said and "is as expected" in page(tmp_path)
    assert "Not as expected" not in page(tmp_path)


def test_an_error_or_bad_input_is_reported_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    stand = Stand(smoke_cnn=Ended(1, "see the page"), smoke_mlp=Ended(-11, f"{HOME}/x.py: <i>died</i> on brunel-7"))
    ok, made, said = run(tmp_path, stand)
    assert not ok and outcomes(tmp_path) == ["amiss", "broken", "done"]
    assert re.search(r"2 of \d+ expectations are NOT met", said)
    for text in ("pmap/strong/2: differ from those of one device", "~/x.py: &lt;i&gt;died&lt;/i&gt; on &lt;host&gt;"):
        assert text in page(tmp_path)
    assert made["found"]["smoke-cnn"]["grid"] == {"pmap": "NO"}
    ok, made, _ = run(tmp_path / "bad", Stand(smoke_mlp=Ended(2, "--config.batch=3 does not divide")))
    (item,) = made["found"]["smoke-mlp"]["items"]
    assert not ok and (item["agrees"], item["why"]) == ("NO", ["--config.batch=3 does not divide"])


def test_the_page_is_escaped_and_names_no_folder_and_no_host(tmp_path: Path) -> None:
    run(tmp_path / "x<y>", Stand())
    text, data = (tmp_path / "x<y>" / name for name in ("first-run.html", "first-run.json"))
    assert "<b>" not in text.read_text() and "&lt;b&gt;Fabricated" in text.read_text()
    html = unscripted(text.read_text())
    assert "default-src 'none'" in html and not re.search(r"https?://|<script|<img", html)
    for file in (text, data):
        assert HOME not in file.read_text() and str(tmp_path) not in file.read_text()
    assert "--xla_dump_to=~/dump" in data.read_text()


def test_an_interrupt_loses_nothing_the_same_command_goes_on_and_tries_a_failed_part_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Stand(smoke_mlp=KeyboardInterrupt()))
    assert outcomes(tmp_path) == ["done", "stopped", "not yet"]
    assert "2 of 3 parts are not finished" in page(tmp_path)

    stand = Stand()
    ok, made, _ = run(tmp_path, stand)
    assert ok and stand.asked == ["smoke-mlp", "scaling-gpt"]
    assert {run: about["seconds"] for run, about in made["parts"].items()} == {
        "smoke-cnn": 60, "smoke-mlp": 120, "scaling-gpt": 60,
    }  # fmt: skip
    assert run(tmp_path, stand)[0] and stand.asked == ["smoke-mlp", "scaling-gpt"]
    again = tmp_path / "again"
    run(again, Stand(smoke_cnn=Ended(1, "")))
    stand = Stand()
    assert run(again, stand)[0] and stand.asked == ["smoke-cnn"]


def test_a_stage_without_time_is_left_out_and_said(tmp_path: Path) -> None:
    stand = Stand(smoke_cnn=Ended(None, ""))
    stand.each_s = 1e9
    ok, made, said = run(tmp_path, stand)
    assert not ok and outcomes(tmp_path) == ["stopped", "skipped", "done"]
    assert stand.limits == {"smoke-cnn": 0.6 * first_run.BUDGET_S, "scaling-gpt": 0.4 * first_run.BUDGET_S}
    assert "cannot tell" in {item["agrees"] for item in made["found"]["smoke-mlp"]["items"]}
    assert "Nothing contradicts expectations so far" in said
    assert all(f"{word}: this stage must end within 18 min" in page(tmp_path) for word in ("Not started", "Stopped"))

    again = Stand()
    assert run(tmp_path, again)[0] and again.asked == ["smoke-cnn", "smoke-mlp"]


def test_another_machine_and_two_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, Stand())
    monkeypatch.setattr(manifest, "probe", lambda platform: {**MACHINE, "cores": 4})
    with pytest.raises(UserError, match="another machine .usable cores 8, here 4"):
        run(tmp_path, Stand())
    with lock_folder(tmp_path), pytest.raises(UserError, match="another process is using"):
        run(tmp_path, Stand())


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": "jaxbench first run", "schema": 99}', '{"kind": "jaxbench first run", "schema": 1}']
)
def test_a_damaged_document_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "first-run.json").write_text(text)
    with pytest.raises(UserError, match="choose a new --workdir"):
        run(tmp_path, Stand())


def test_a_folder_with_unreadable_records_is_no(tmp_path: Path) -> None:
    stand = Stand()

    def damaged(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        ended = stand.launch(words, log, limit_s)
        (tmp_path / "smoke-cnn" / "config.json").write_text("{")
        return ended

    said = Console(quiet=True)
    assert not first_run.first_run(tmp_path, said, launch=damaged, clock=stand.clock)
    (item,) = document(tmp_path)["found"]["smoke-cnn"]["items"]
    assert item["agrees"] == "NO" and item["found"] == "its records cannot be read"


def test_a_dry_run_says_the_commands_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = Console(record=True, width=100, file=io.StringIO())
    first_run.dry_run(said)
    assert said.export_text().split("\n")[-4:] == [f"jaxbench {' '.join(part.words)}" for part in ASKED] + [""]
    assert not list(tmp_path.iterdir())
