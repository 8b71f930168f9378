# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A power limit is set back in every case, also after kill -9 at the next start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import QUICK_MLP, ROOT, jaxbench
from machine import fake_pynvml

from jaxbench.errors import UserError
from jaxbench.machine import nvml, power_limits

DEFAULT = [700_000, 700_000]


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the limits of two GPUs, in mW. The journal is in the same folder."""
    state = tmp_path / "limits"
    state.write_text(json.dumps(DEFAULT))
    monkeypatch.setenv("NVML_STATE", str(state))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(nvml.importlib, "import_module", lambda name: fake_pynvml)
    return state


def test_a_limit_holds_in_the_context_and_only_there(limits: Path) -> None:
    with power_limits.at(300):
        assert json.loads(limits.read_text()) == [300_000, 300_000]
    assert json.loads(limits.read_text()) == DEFAULT and not power_limits.journal().exists()
    with pytest.raises(KeyError), power_limits.at(400):
        raise KeyError("an error of the run")
    assert json.loads(limits.read_text()) == DEFAULT and power_limits.restore_left() == []


def test_only_visible_gpus_are_limited(limits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with power_limits.at(300):
        assert json.loads(limits.read_text()) == [700_000, 300_000]


def test_what_the_driver_refuses_is_one_sentence_and_changes_nothing(
    limits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="power_limit=100 is out of range on GPU 0: use 200 to 700 W"):
        with power_limits.at(100):
            pass
    monkeypatch.setenv("NVML_DENIED", "1")
    with pytest.raises(UserError, match="not allowed on GPU 0 .Insufficient Permissions"), power_limits.at(300):
        pass
    assert json.loads(limits.read_text()) == DEFAULT
    limits.unlink()
    with pytest.raises(UserError, match="needs an NVIDIA GPU"), power_limits.at(300):
        pass


def test_after_kill_9_the_next_start_sets_the_limit_back(limits: Path) -> None:
    code = (
        "import sys, time; from machine import fake_pynvml; sys.modules['pynvml'] = fake_pynvml\n"
        "from jaxbench.machine import power_limits\n"
        "with power_limits.at(250): print('set', flush=True); time.sleep(300)\n"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdout is not None and process.stdout.readline() == "set\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert json.loads(limits.read_text()) == [250_000, 250_000]
    assert power_limits.restore_left() == [f"The power limit of GPU-{i} is 700 W again." for i in (0, 1)]
    assert json.loads(limits.read_text()) == DEFAULT and power_limits.restore_left() == []


def test_a_limit_is_in_watts() -> None:
    assert power_limits.parse("") == () and power_limits.parse("300, 400,300") == (300.0, 400.0)
    for text in ("low", "300;400", "0", "-1"):
        with pytest.raises(UserError, match="power_limit"):
            power_limits.parse(text)


def test_a_machine_without_gpus_refuses_in_one_sentence(tmp_path: Path) -> None:
    ended = jaxbench("run", "mlp", *QUICK_MLP, "--config.power_limit=300", f"--workdir={tmp_path / 'run'}")
    said = " ".join((ended.stdout + ended.stderr).split())
    assert ended.returncode == 2 and "--config.power_limit=300 needs an NVIDIA GPU" in said
    assert not (tmp_path / "run").exists()
