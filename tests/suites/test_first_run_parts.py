# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parts of a first run on each kind of machine; each of its commands is valid."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from thin import thin

from jaxbench import commandline, discovery, parallel
from jaxbench import config as config_lib
from jaxbench.parallel import axes
from jaxbench.suites import command, first_run
from jaxbench.sweep import plan

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
    for name, words in {"mlp": "tensor", "cnn": "tensor", "moe": "strategy=expert", "hybrid": "lever.mesh="}.items():
        assert words in smoked[name]
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
    log = tmp_path / "a.txt"
    log.write_text("Traceback\n\x1b[31mValueError: no\x1b[0m\n\n")
    assert command.last_line(log) == "ValueError: no"
    log.write_text("jaxbench: use another batch.\nmore\n")
    assert command.last_line(log) == "use another batch."
    log.write_text("")
    assert command.last_line(log) == ""


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
