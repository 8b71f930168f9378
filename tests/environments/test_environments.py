# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Environments with releases, from a real index in a folder: pins, names by contents, and sentences."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest

from benchmarks import planted
from jaxbench.environments import needs, release, store, tools
from jaxbench.errors import UserError

TOOLS = [
    pytest.param(name, marks=pytest.mark.skipif(not there, reason=f"{name} is not installed"))
    for name, there in (("pip", importlib.util.find_spec("pip")), ("uv", shutil.which("uv")))
]


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Versions 1.0, 1.1 and 2.0 of `quick`; 2.0 needs `slow` below 2. And two versions of `slow`."""
    folder = tmp_path / "index"
    for version in ("1.0", "1.1", "1.2rc1"):
        planted.wheel(folder, "quick", version, f"VERSION = {version!r}\n")
    planted.wheel(folder, "quick", "2.0", "VERSION = '2.0'\n", needs=["slow<2"])
    for version in ("1.5", "2.5"):
        planted.wheel(folder, "slow", version, "")
    for name, value in planted.variables(folder, tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    tools.offered.cache_clear()
    yield folder
    tools.offered.cache_clear()


@pytest.fixture(params=TOOLS)
def tool(request, monkeypatch):
    if request.param == "pip":
        monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    return request.param


def version_in(made):
    code = "import quick; print(quick.VERSION)"
    return subprocess.run([made.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def locked(monkeypatch, text):
    monkeypatch.setattr(needs, "lock", lambda: text)


def test_an_environment_has_the_pins_and_else_the_lock(index, tool, monkeypatch):
    locked(monkeypatch, "quick==1.0\nslow==2.5\nnever==3 ; python_version < '3'\n")
    made = store.environment(release.parse(["quick==1.1"]), ["quick", "slow"])
    assert made.packages == {"quick": "1.1", "slow": "2.5"} and version_in(made) == "1.1"
    assert made.folder.parent == store.cache() and made.name.startswith("py3.") and not made.other
    # A pin that needs another version than the lock's gets it, and says so.
    forced = store.environment(release.parse(["quick==2.0"]), ["quick", "slow"])
    assert forced.packages == {"quick": "2.0", "slow": "1.5"} and forced.other == ("slow 1.5 (lock: 2.5)",)


def test_equal_contents_are_one_environment_and_need_no_index(index, tool, monkeypatch):
    locked(monkeypatch, "")
    first = store.environment(release.parse(["quick==1.1"]), ["slow"])
    again = store.environment(release.parse(["slow==2.5"]), ["quick<2"])
    assert first.packages == again.packages == {"quick": "1.1", "slow": "2.5"} and first.folder == again.folder
    monkeypatch.setattr(tools, "_run", None)  # neither resolves nor installs
    assert store.environment(release.parse(["quick==1.1"]), ["slow"]).folder == first.folder


def test_a_half_made_environment_is_made_again_and_a_rebuilt_wheel_is_another(index, tool, monkeypatch):
    locked(monkeypatch, "")
    made = store.environment(release.parse(["quick==1.1"]), [])
    (made.folder / store.DONE).unlink()
    next(made.folder.rglob("quick.py")).unlink()
    assert version_in(store.environment(release.parse(["quick==1.1"]), [])) == "1.1"
    planted.wheel(index, "quick", "1.1", "VERSION = 'rebuilt'\n")
    rebuilt = store.environment(release.parse(["quick==1.1"]), [])
    assert rebuilt.folder != made.folder and version_in(rebuilt) == "rebuilt"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quick==1.15"], "^quick==1.15 cannot be resolved: the nearest versions .* are 1.0, 1.1, 2.0.$"),
        (["quikc==1.0"], "^quikc==1.0 cannot be resolved: no index here has a package 'quikc'"),
        (
            ["quick==2.0", "slow==2.5"],
            r"^quick==2.0 slow==2.5 cannot be resolved \(.*\): the nearest .* quick 1.0, 1.1",
        ),
        (["nightly"], "^'nightly': no index here offers a build of jax"),
    ],
)
def test_a_pin_without_a_version_is_one_sentence_with_the_nearest(index, tool, monkeypatch, words, said):
    locked(monkeypatch, "")
    with pytest.raises(UserError, match=said) as error:
        store.environment(release.parse(words), [])
    assert "\n" not in str(error.value)
    assert not list(store.cache().glob("py*"))


def test_nightly_is_the_newest_build_that_is_no_release(index, tool, monkeypatch):
    locked(monkeypatch, "")
    for package in ("jax", "jaxlib"):
        for version in ("0.9.0", "0.9.1.dev20260102", "0.9.1.dev20260103"):
            planted.wheel(index, package, version, "")
    made = store.environment(release.parse(["nightly", "quick==1.0"]), ["jax"])
    assert made.packages == {"jax": "0.9.1.dev20260103", "jaxlib": "0.9.1.dev20260103", "quick": "1.0"}
    assert str(made.release) == "jax==0.9.1.dev20260103 jaxlib==0.9.1.dev20260103 quick==1.0"
    for package in ("jax", "jaxlib"):
        planted.wheel(index, package, "0.9.1", "")
    tools.offered.cache_clear()
    with pytest.raises(UserError, match="newer than 0.9.1"):  # the release came after the last build
        store.environment(release.parse(["nightly"]), [])


def test_words_of_a_release():
    read = release.parse(["Flax==0.12.06", "jax[cuda13]==0.10.0"])
    assert str(read) == "flax==0.12.6 jax[cuda13]==0.10.0" and read.version_of("jax") == "0.10.0"
    for word, said in (
        ("jax>=0.10", "'jax>=0.10' is no release: write a package and one version, such as jax==0.10.0"),
        ("jax==0.10.*", "names no single version"),
        ("jax==new", "is no release"),
    ):
        assert release.is_release(word)
        with pytest.raises(UserError, match=said):
            release.parse([word])
    with pytest.raises(UserError, match="name the same package"):
        release.parse(["jax==0.10.0", "jax==0.10.1"])
    with pytest.raises(UserError, match="'nightly' is a version of jaxlib, too"):
        release.parse(["nightly", "jaxlib==0.10.1"])
    assert not any(map(release.is_release, ("--config.batch=4", "ref:main==2", "mlp", "")))


def test_the_versions_between_two():
    offered = release.in_order(["0.10.0", "0.9.2", "0.9.10", "0.10.1rc1", "0.8.0", "junk"])
    assert offered == ["0.8.0", "0.9.2", "0.9.10", "0.10.0", "0.10.1rc1"]
    assert release.between("0.8.0", "0.10.0", offered) == ["0.8.0", "0.9.2", "0.9.10", "0.10.0"]
    assert release.between("0.9.10", "0.10.1rc1", offered)[-2:] == ["0.10.0", "0.10.1rc1"]
    assert release.between("0.9.2", "0.9.2", offered) == ["0.9.2"]


def test_files_need_what_they_import(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("import json, helper\nfrom jax import numpy\n\ndef f():\n    import optax.losses\n")
    (tmp_path / "helper.py").write_text("import flax\nfrom . import x\nimport mine\n")
    assert needs.of_command(["python", "mine.py", "--n=3"], tmp_path) == ["flax", "jax", "optax"]
    assert needs.of_command(["python", "-m", "mine"], tmp_path) is None
    assert needs.imported(script) == {"helper", "jax", "optax"}
    assert {"flax", "optax"} <= needs.dependents({"jax"}) and "numpy" not in needs.dependents({"jax"})


@pytest.mark.parametrize(("words", "refused"), [("jax==0.9.0", True), ("jax==0.10.0", False), ("flax==0.1", False)])
def test_a_jax_that_is_too_old_is_refused_before_an_environment_is_made(words, refused):
    """Other packages may be older than the suite asks for: an experiment may not use what they lack."""
    if not refused:
        return needs.require_supported(release.parse([words]))
    with pytest.raises(UserError, match=r"jax==0.9.0: jaxbench runs with jax>=0.10, so choose jax==0.10.0 or a newer"):
        needs.require_supported(release.parse([words]))


def test_jaxbench_needs_its_packages_without_their_limits():
    wanted = needs.of_jaxbench()
    assert {"flax", "optax", "numpy"} <= {*wanted} and any(line.partition("[")[0] == "jax" for line in wanted)
    assert not [line for line in wanted if "=" in line] and "pytest" not in wanted
    assert needs.pinned_by(needs.lock())["flax"] == needs.installed()["flax"] or sys.version_info[:2] not in ((3, 11),)
