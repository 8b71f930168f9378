# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One measurement at a time, with real processes: which process holds the machine, and when it is free again."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from doorway import QUICK_MLP, jaxbench

from jaxbench.errors import UserError
from jaxbench.machine import lock

HOLD = """
import sys
from pathlib import Path
from jaxbench.machine import lock
with lock.measuring("jaxbench run cnn", Path("results/cnn"), share="share" in sys.argv):
    print(lock.shared_with() or "mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A separate lock folder, like another machine."""
    monkeypatch.setenv(lock.FOLDER, str(tmp_path))
    monkeypatch.delenv(lock.PARENT, raising=False)
    return tmp_path


@contextlib.contextmanager
def another(*words, **environment):
    """A process that measures until the context ends. Yields the process and its message about sharing."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    known = {**os.environ, **environment}
    with subprocess.Popen([sys.executable, "-c", HOLD, *words], env=known, **pipes) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def measure(path, **options):
    with lock.measuring("jaxbench run mlp", path, **options):
        return lock.shared_with()


def test_a_second_measurement_is_told_who_measures(folder):
    with another() as (holder, said):
        assert said == "mine"
        with pytest.raises(UserError) as error:
            measure(folder)
    for part in (f"process {holder.pid}", "jaxbench run cnn", "'results/cnn'", "--share_machine"):
        assert part in str(error.value)
    since = json.loads((folder / lock.FILE).read_text())["since"]
    assert f"since {since}" in str(error.value)


def test_the_machine_is_free_when_the_holder_dies(folder):
    with another() as (holder, _):
        holder.kill()
        holder.wait()
        assert measure(folder) == ""
    assert measure(folder) == ""  # and when it ends by itself


def test_sharing_goes_on_and_says_so(folder):
    with another():
        shared = measure(folder, share=True)
        assert shared.startswith("jaxbench run cnn, since 20")
        assert lock.shared_with() == ""
    assert measure(folder, share=True) == ""  # with nobody


def test_children_of_a_sharing_process_share_too(folder, monkeypatch):
    with another():
        monkeypatch.setenv(lock.SHARED, "jaxbench run cnn, since then")
        assert measure(folder).startswith("jaxbench run cnn, since 20")


def test_children_of_the_holder_measure_under_its_lock(folder):
    with lock.measuring("jaxbench ab mlp", folder):
        with another() as (_, said):
            assert said == "mine"
        stranger = {lock.PARENT: "1"}  # as in a process that outlives its parent
        with another(**stranger) as (process, said):
            assert said == "" and "jaxbench ab mlp" in process.stderr.read()
        with another("share", **stranger) as (_, said):
            assert said.startswith("jaxbench ab mlp, since")
    with another(**stranger) as (_, said):
        assert said == "mine"


def test_a_holder_that_has_not_yet_said_who_it_is_still_holds(folder):
    with another():
        (folder / lock.FILE).write_text("")
        with pytest.raises(UserError, match="another process measures on this machine: wait for it"):
            measure(folder)
        assert measure(folder, share=True) == "another measurement"


def test_a_folder_that_cannot_be_used_is_one_sentence(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv(lock.FOLDER, str(folder / "file"))
    with pytest.raises(UserError, match=f"set {lock.FOLDER} to a folder"):
        measure(folder)


def test_a_setting_that_cannot_be_is_said_before_anyone_waits(folder):
    with another():
        done = jaxbench("run", "mlp", *QUICK_MLP, "--config.mesh.devices=two")
    assert done.returncode == 2
    assert done.stderr.startswith("jaxbench: --config.mesh.devices=two is not a list of different device counts")


def test_a_verb_that_measures_stops_with_that_sentence(folder):
    with another() as (holder, _):
        done = jaxbench("run", "mlp", f"--workdir={folder / 'run'}", *QUICK_MLP)
    assert done.returncode == 2 and not (folder / "run").exists()
    assert done.stderr.startswith(f"jaxbench: another process measures on this machine (process {holder.pid}, ")
