# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A first run: the parts for each kind of machine, what ends it, how it continues, and which files it writes."""

from __future__ import annotations

import io
import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fabricate
import pytest
from rich.console import Console
from thin import thin

from jaxbench import commandline, discovery, parallel
from jaxbench import config as config_lib
from jaxbench.cards import scrub
from jaxbench.errors import UserError
from jaxbench.machine import manifest
from jaxbench.parallel import axes
from jaxbench.records.store import lock_folder
from jaxbench.runner import plan
from jaxbench.suites import command, first_run
from jaxbench.suites.command import Ended
from jaxbench.suites.first_run import Part

LAPTOP = {"platform": "cpu", "device_kind": "cpu", "devices": 1, "cores": 2}
GPUS = {"platform": "gpu", "device_kind": "NVIDIA H100", "device_kinds": ["NVIDIA H100"], "devices": 8, "cores": 64}


@pytest.mark.parametrize(
    ("facts", "devices"),
    [(LAPTOP, 2), ({**LAPTOP, "cores": 1}, 2), ({**LAPTOP, "cores": 6}, 4), ({**LAPTOP, "cores": 64}, 8),
     (GPUS, 8), ({**GPUS, "devices": 1}, 1), ({**GPUS, "devices": 6}, 4)],
)  # fmt: skip
def test_the_largest_count(facts: dict[str, Any], devices: int) -> None:
    assert first_run.largest(facts) == devices


@pytest.mark.full
@pytest.mark.parametrize("facts", thin([LAPTOP, GPUS, {**LAPTOP, "cores": 1}, {**GPUS, "devices": 1}], 1))
def test_every_part_can_be_planned(facts: dict[str, Any]) -> None:
    """Each command's config is legal, its points exist, and its batch divides."""
    for part in first_run.all_of(facts):
        if part.stage == first_run.MACHINE:
            continue
        preset = next((word.split("=")[1] for word in part.words if word.startswith("--preset")), "auto")
        module = discovery.load_experiment(part.words[1])
        config = config_lib.compose(part.words[1], module, discovery.load_preset(preset))
        config = commandline.changed(config, [word for word in part.words if word.startswith("--config.")])
        settings = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
        points = plan.make(settings, facts)
        assert points and discovery.build(part.words[1], config).name
        if part.stage == first_run.SMOKE:
            assert {point.devices for point in points} == {first_run.largest(facts)}
        elif part.stage == first_run.LEVERS:
            assert {point.devices for point in points} <= {1, first_run.largest(facts)}
        else:
            assert not any(point.oversubscribed for point in points)


def is_cases(name: str) -> bool:
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("smoke"))
    return "measures" in config  # kernels, or trainings to a target


@pytest.mark.full
def test_every_model_with_every_strategy_is_there_and_in_order() -> None:
    found = first_run.all_of(GPUS)
    smoked = {part.experiment: " ".join(part.words) for part in found if part.stage == first_run.SMOKE}
    assert set(smoked) == {*config_lib.training_experiments(), "moe", "hybrid"}
    for strategy in parallel.of_any_model():
        assert all(strategy in words for name, words in smoked.items() if name not in ("moe", "hybrid"))
    for strategy in ("tensor", "context", "pipeline"):
        assert strategy in smoked["gpt"] and strategy not in smoked["lstm"]
    assert (
        "tensor" in smoked["mlp"]
        and "tensor" in smoked["cnn"]
        and "strategy=expert" in smoked["moe"]
        and "lever.mesh=" in smoked["hybrid"]
    )
    rest = [part.run for part in found if part.stage != first_run.SMOKE]
    assert rest[:4] == ["machine", "scaling-cnn", "scaling-gpt", "profile-cnn"]
    assert {"levers-precision", "levers-remat", "levers-phases", "levers-zero", "levers-pipeline"} <= {*rest[4:]}
    training = {name for name, path in discovery.experiments().items() if not is_cases(name)}
    assert {part.experiment for part in found} == training | {"machine"}
    assert len({part.run for part in found}) == len(found)


@pytest.mark.parametrize("devices", [1, 2, 4, 8, 16])
def test_mixed_meshes_hold_all_devices(devices: int) -> None:
    for mesh in first_run.mixed(devices):
        assert math.prod(axes.parse(mesh).values()) == devices
    assert len(first_run.mixed(devices)) == (2 if devices > 2 else 1)


def test_a_command_runs_and_what_it_said_last_is_known(tmp_path: Path) -> None:
    ended = command.launch(("nonsense",), tmp_path / "logs" / "a.txt", 60)
    assert ended.code == 2 and ended.last_line.startswith("there is no verb 'nonsense'")


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper, log, started = tmp_path / "python", tmp_path / "a.txt", []
    sleeper.write_text("#!/bin/sh\necho waiting\nexec sleep 600\n")
    sleeper.chmod(0o755)

    class TimedByOutput(subprocess.Popen):
        """Its time limit ends at its first output, even on a busy machine."""

        def wait(self, timeout: float | None = None) -> int:
            started.append(self)
            if timeout != 60:
                return super().wait(timeout)
            while not log.stat().st_size:
                time.sleep(0.01)
            raise subprocess.TimeoutExpired(self.args, timeout)

    monkeypatch.setattr(sys, "executable", str(sleeper))
    monkeypatch.setattr(subprocess, "Popen", TimedByOutput)
    assert command.launch(("x",), log, 60) == command.Ended(None, "waiting")
    assert started[0].returncode == -signal.SIGTERM, "it was asked to end, and did"


def test_the_last_line_is_the_apps_own(tmp_path: Path) -> None:
    log = tmp_path / "a.txt"
    log.write_text("Traceback\n\x1b[31mValueError: no\x1b[0m\n\n")
    assert command.last_line(log) == "ValueError: no"
    log.write_text("jaxbench: use another batch.\nmore\n")
    assert command.last_line(log) == "use another batch."
    log.write_text("")
    assert command.last_line(log) == ""


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
    monkeypatch.setattr(first_run.signal, "signal", lambda number, action: None)
    monkeypatch.setattr(scrub.socket, "gethostname", lambda: "brunel-7")


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


def test_an_error_is_reported_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    stand = Stand(smoke_cnn=Ended(1, "see the page"), smoke_mlp=Ended(-11, f"{HOME}/x.py: <i>died</i> on brunel-7"))
    ok, made, said = run(tmp_path, stand)
    assert not ok and outcomes(tmp_path) == ["amiss", "broken", "done"]
    assert re.search(r"2 of \d+ expectations are NOT met", said)
    for text in ("pmap/strong/2: differ from those of one device", "~/x.py: &lt;i&gt;died&lt;/i&gt; on &lt;host&gt;"):
        assert text in page(tmp_path)
    assert made["found"]["smoke-cnn"]["grid"] == {"pmap": "NO"}


def test_bad_input_of_a_part_is_no(tmp_path: Path) -> None:
    ok, made, _ = run(tmp_path, Stand(smoke_mlp=Ended(2, "--config.batch=3 does not divide")))
    (item,) = made["found"]["smoke-mlp"]["items"]
    assert not ok and (item["agrees"], item["why"]) == ("NO", ["--config.batch=3 does not divide"])


def test_the_page_is_escaped_and_names_no_folder_and_no_host(tmp_path: Path) -> None:
    run(tmp_path / "x<y>", Stand())
    text, data = (tmp_path / "x<y>" / name for name in ("first-run.html", "first-run.json"))
    assert "<b>" not in text.read_text() and "&lt;b&gt;Fabricated" in text.read_text()
    assert "default-src 'none'" in text.read_text() and not re.search(r"https?://|<script|<img", text.read_text())
    for file in (text, data):
        assert HOME not in file.read_text() and str(tmp_path) not in file.read_text()
    assert "--xla_dump_to=~/dump" in data.read_text()


def test_an_interrupt_loses_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
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


def test_a_failed_part_is_tried_again(tmp_path: Path) -> None:
    run(tmp_path, Stand(smoke_cnn=Ended(1, "")))
    stand = Stand()
    assert run(tmp_path, stand)[0] and stand.asked == ["smoke-cnn"]


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


def test_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, Stand())
    monkeypatch.setattr(manifest, "probe", lambda platform: {**MACHINE, "cores": 4})
    with pytest.raises(UserError, match="another machine .usable cores 8, here 4"):
        run(tmp_path, Stand())


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": "jaxbench first run", "schema": 99}', '{"kind": "jaxbench first run", "schema": 1}']
)
def test_a_damaged_document_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "first-run.json").write_text(text)
    with pytest.raises(UserError, match="choose a new --workdir"):
        run(tmp_path, Stand())


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(UserError, match="another process is using"):
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
