# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One measurement at a time, with real processes: which process holds the machine, and when it is free again."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from doorway import QUICK_MLP, jaxbench
from thin import thin

from jaxbench.core.store import LOCK, RunFolder, lock_folder
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


TYPED = {
    "ab": (("ab", "mlp", "--b=--config.batch=0", "--preset=smoke"), "--config.batch=0"),
    "ab, its margin": (("ab", "mlp", "--b=--config.batch=64", "--margin=7", "--preset=smoke"), "--margin=7"),
    "ab, an arm": (("ab", "mlp", "--b=--config.bach=64", "--preset=smoke"), "bach"),
    "check": (("check", "mlp", "--name=nobody"), "there is no baseline 'nobody'"),
    "repro": (("repro", "--card=nowhere.json"), "nowhere.json"),
    "paper": (("paper", "rajbhandari202"), "rajbhandari202"),
    "paper, its size": (("paper", "rajbhandari2020", "--preset=nan"), "--preset=nan"),
    "calibrate": (("calibrate", "mlp", "--config.measure.processes=2", "--preset=smoke"), "processes=2"),
}


@pytest.mark.parametrize("typed", thin([*TYPED], [*TYPED][::2]))
def test_what_was_typed_wrongly_is_said_before_anyone_waits(folder, typed):
    words, said = TYPED[typed]
    with another():
        done = jaxbench(*words, cwd=folder)
    assert done.returncode in (2, 3) and len(done.stderr.splitlines()) == 1
    assert said in done.stderr and "another process measures" not in done.stderr


def test_no_link_and_no_second_name_leads_to_another_file(folder):
    """A link in the folder of the lock emptied the file to which it led."""
    mine = folder / "mine.txt"
    mine.write_text("precious")
    for make in (os.symlink, os.link):
        make(mine, folder / lock.FILE)
        with pytest.raises(UserError, match="link|one name"):
            measure(folder)
        (folder / lock.FILE).unlink()
    os.mkfifo(folder / lock.FILE)
    with pytest.raises(UserError, match="not an ordinary file"):
        measure(folder)
    assert mine.read_text() == "precious"


@pytest.fixture
def default(folder, monkeypatch):
    """The folders of a user who names none, in an empty temporary folder."""
    monkeypatch.delenv(lock.FOLDER)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(lock, "SOCKET", f"\0jaxbench-test-{folder}")
    monkeypatch.setattr(lock.tempfile, "gettempdir", lambda: str(folder))
    return folder / f"jaxbench-{os.getuid()}"


def test_the_lock_is_in_a_folder_of_this_user_alone(default, monkeypatch):
    assert measure(default) == ""
    assert (default.stat().st_mode & 0o777, default.stat().st_uid) == (0o700, os.getuid())
    assert (default / lock.FILE).stat().st_mode & 0o077 == 0
    runtime = default.parent / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    measure(default)
    assert (runtime / lock.FILE).exists()
    runtime.chmod(0o777)  # others could replace the file
    (runtime / lock.FILE).unlink()
    measure(default)
    assert not (runtime / lock.FILE).exists()


@pytest.mark.parametrize("how", ["open to all", "a link", "a file"])
def test_a_folder_of_somebody_else_is_not_used(default, how):
    elsewhere = default.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if how == "a link":
        default.symlink_to(elsewhere)
    elif how == "a file":
        default.write_text("")
    else:
        default.mkdir()
        default.chmod(0o777)
    with pytest.raises(UserError, match=f"'{default}'.* is not a folder of mode 0700 that belongs to you: remove it"):
        measure(default)
    assert not [*elsewhere.iterdir()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="such sockets exist on Linux only")
def test_users_with_other_folders_exclude_each_other(default, monkeypatch):
    monkeypatch.delenv(lock.SHARED, raising=False)
    mine, theirs = default.parent / "mine", default.parent / "theirs"
    for folder in (mine, theirs):
        folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(mine))
    with lock.measuring("jaxbench run cnn", default):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(theirs))
        monkeypatch.setenv(lock.PARENT, "1")
        with pytest.raises(UserError, match=f"measures on this machine .process {os.getpid()} of the user "):
            measure(default)
        assert measure(default, share=True).startswith(f"process {os.getpid()} of the user ")
        monkeypatch.setenv(lock.PARENT, str(os.getpid()))  # a process that the holder started
        assert measure(default) == ""
    monkeypatch.setenv(lock.PARENT, "1")
    assert measure(default) == ""


def test_a_refused_folder_keeps_no_lock(folder):
    """A run into the folder of a training left `.lock` in it."""
    (folder / "t" / "checkpoints").mkdir(parents=True)
    with pytest.raises(UserError, match="contains a training"):
        RunFolder.begin(folder / "t", {"experiment": "cnn"})
    assert [path.name for path in (folder / "t").iterdir()] == ["checkpoints"]
    with pytest.raises(UserError, match="another paper"), lock_folder(folder):
        raise UserError("the folder holds another paper")
    assert not (folder / LOCK).exists()
    RunFolder.begin(folder / "run", {"experiment": "cnn"}).close()
    with pytest.raises(UserError):
        RunFolder.begin(folder / "run", {"experiment": "mlp"})
    assert not (folder / "run" / LOCK).exists()  # a run that has ended leaves none
