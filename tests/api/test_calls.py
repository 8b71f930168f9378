# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Calls of the Python API with real child processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import doorway
import pytest
from thin import thin

import jaxbench as jb
from jaxbench.api import calls


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """In a folder of its own, with the environment of a user's process."""
    monkeypatch.chdir(tmp_path)
    for name in {*os.environ} - {*doorway.environment()}:
        monkeypatch.delenv(name)
    for name, value in doorway.environment().items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_settings_become_the_words_of_the_command_line():
    # fmt: off
    words = calls._words(
        {"preset": "smoke", "share_machine": None},
        {
            "mesh.devices": [1, 2], "strategy": None, "scaling": ["strong", "weak"], "batch": 64, "profile": True,
            "lever": {"precision": ["default", "bfloat16"], "compiler": ["default", "xla_a=1,B"]}, "model.width": 8,
        },
    )
    assert words == [
        "--preset=smoke", "--config.mesh.devices=1,2", "--config.scaling=strong,weak", "--config.batch=64",
        "--config.profile=true", "--config.lever.precision=default,bfloat16",
        "--config.lever.compiler=default;xla_a=1,B", "--config.model.width=8",
    ]
    # fmt: on


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    thin(
        [
            ("mpl", {}, ["run", "mpl"]),
            ("mlp", {"bacth": 3}, ["run", "mlp", "--config.bacth=3"]),
            ("mlp", {"batch": -1}, ["run", "mlp", "--config.batch=-1"]),
        ],
        1,
    ),
)
def test_errors_are_the_sentence_of_the_command_line_and_leave_nothing(model, settings, words):
    with pytest.raises(jb.JaxbenchError) as caught:
        jb.run(model, **settings)
    assert doorway.jaxbench(*words).stderr == f"jaxbench: {caught.value}\n"
    assert not [path for path in Path().rglob("*") if path.is_file()]


def test_a_held_accelerator_is_said_before_anything_starts(monkeypatch):
    from jax._src import xla_bridge

    monkeypatch.setattr(xla_bridge, "backends_are_initialized", lambda: True)
    monkeypatch.setattr(xla_bridge, "backends", lambda: {"cpu": None, "cuda": None})
    with pytest.raises(jb.JaxbenchError, match="already holds the cuda.*restart the kernel"):
        jb.run("mpl")
    with pytest.raises(jb.JaxbenchError, match="did you mean 'mlp'"):
        jb.run("mpl", mesh={"platform": "cpu"})


FUNCTION = """
import sys
import jaxbench as jb
from jaxbench import discovery

def my_mlp(config):
    mlp = discovery.load_experiment("mlp")
    settings = mlp.tiny(mlp.get_config())
    config = config.copy_and_resolve_references().unlock()
    config.model, config.optimizer = settings.model, settings.optimizer
    return mlp.build(config)

run = jb.run(my_mlp, devices=[1], preset="smoke", strategy="jit_auto", scaling="strong", mesh={"platform": "cpu"},
    measure={"rounds": 40, "processes": 1, "block_s": 0.02})
print(run.table.devices.tolist(), (run.table.step_s > 0).all(), len(run.records) == len(run.records.dropna()) >= 40)
print(run.path)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full)])
def test_an_interrupted_or_killed_call_continues(elsewhere, number):
    """A function of __main__: interrupted as by the stop button, or killed as by the system, and then finished."""
    (elsewhere / "script.py").write_text(FUNCTION)
    script = subprocess.Popen([sys.executable, "script.py"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait(lambda: rounds() > 4)
    script.send_signal(number)
    said = script.communicate(timeout=60)[1].decode()
    kept = rounds()
    wait(lambda: not any_lock_held())
    assert kept <= rounds() <= kept + 1 < 40, "the child ended, too"
    if number == signal.SIGINT:
        assert "KeyboardInterrupt: Finished measurements are kept in 'results/my_mlp-" in said
    (folder,) = Path("results").iterdir()
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.splitlines()[-2:] == ["[1] True True", str(folder)], done.stderr
    assert "my_mlp: 1 point on 1 device, 40 rounds each" in done.stdout, "it shows its progress"
    run = jb.load(folder)
    # Not `run.ok`: on a busy machine the two clocks may disagree, and that is not what this test is about.
    assert (
        len(run.records[run.records.clock == 1]) == 40
        and all(run.table["check_ok"])
        and (run.table.compile_s > 0).all()
    )
    assert not [*folder.glob("*.pickle")] and [*folder.glob("cell-*.py")]
    for name in ("manifest.json", "config.json", "records.jsonl", "summary.csv", "report.html"):
        assert (folder / name).stat().st_size
    assert {file.suffix for file in (folder / "figures").iterdir()} == {".svg", ".png", ".pdf"}
    assert not (folder / calls.CALL).exists()
    command = json.loads((folder / "manifest.json").read_text())["command"]
    assert command[:2] == ["jaxbench", "run"] and "--config.mesh.devices=1" in command


def rounds():
    files = [*Path("results").glob("*/records.jsonl")]
    return sum(file.read_text().count('"kind":"round"') for file in files)


def any_lock_held():
    import fcntl

    for file in Path("results").glob("*/.lock"):
        with open(file) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def wait(condition, limit_s=60):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
