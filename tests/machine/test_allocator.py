# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Processes that measure have the allocator that was asked for, say so, and refuse one that is not here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from doorway import QUICK_MLP, environment, jaxbench, sketching

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.machine import allocator
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import KEEP_MEMORY, Setup

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux preloads a library")
packaged = pytest.mark.skipif(importlib.util.find_spec("cmeel") is None, reason="the extra mimalloc is not installed")


def started(folder: Path, variables: dict[str, str], forks: ForkServers | None = None) -> Worker:
    config = config_lib.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("smoke"))
    setup = Setup(
        platform="cpu", devices=1, experiment="mlp", config=config_lib.plain(config),
        environment={**KEEP_MEMORY, **variables},
    )  # fmt: skip
    worker = Worker(setup, folder / "log", forks=forks)
    worker.wait_ready()
    return worker


@linux
@packaged
@pytest.mark.parametrize("forked", [True, False])
def test_a_worker_has_the_library_mapped(tmp_path: Path, forked: bool) -> None:
    """LD_PRELOAD counts when a program starts, so a fork has the library only if its server had the variable."""
    forks = ForkServers(["jaxbench.worker"]) if forked else None
    chosen = allocator.variables("mimalloc", {})
    worker = started(tmp_path, chosen, forks)
    try:
        (pid,) = worker.pids
        assert chosen["LD_PRELOAD"] in Path(f"/proc/{pid}/maps").read_text()
        said = worker.surroundings["environment"]
        assert isinstance(said, dict) and said.items() >= chosen.items()
        assert chosen["MIMALLOC_PURGE_DELAY"] == "-1"  # it keeps memory, as KEEP_MEMORY asks of glibc
    finally:
        worker.close()
        if forks:
            forks.close()


@linux
def test_a_library_that_the_linker_does_not_load_is_refused(tmp_path: Path) -> None:
    """The linker only warns, and the process would measure glibc under another name."""
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    worker = started(tmp_path, allocator.variables(str(broken), {}))
    try:
        with pytest.raises(WorkerError, match=r"LD_PRELOAD=.*libbroken.so could not be loaded on this host: install"):
            worker.ask(None)  # type: ignore[arg-type]
    finally:
        worker.kill()
        worker.close()


@linux
@packaged
def test_a_run_names_its_allocator(tmp_path: Path) -> None:
    words = (*QUICK_MLP, "--config.mesh.devices=1", "--config.measure.rounds=1", "--config.measure.processes=1")
    run = tmp_path / "run"
    asked = sketching("run", "mlp", f"--workdir={run}", *words, "--config.measure.allocator=mimalloc")
    # A new program: the workers of `jaxbench` here are forks of one that started before the command was known.
    done = subprocess.run(asked, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = RunFolder(run)
    for worker in folder.manifest()["workers"].values():
        assert worker["environment"]["LD_PRELOAD"].endswith("/libmimalloc.so")
    assert folder.config()["measure"]["allocator"] == "mimalloc"
    page = (run / "report.html").read_text()
    assert "Processes that measured preloaded libmimalloc.so: memory may come from there." in page


def test_arenas_need_no_library() -> None:
    assert allocator.variables("system", {}) == {}
    heaps = {**KEEP_MEMORY, **allocator.variables("arenas", {})}["MALLOC_ARENA_MAX"]
    assert int(heaps) > 1


@linux
def test_a_preloaded_library_of_the_user_stays(tmp_path: Path) -> None:
    mine = tmp_path / "libmine.so"
    mine.touch()
    assert allocator.variables(str(mine), {"LD_PRELOAD": "/their.so"})["LD_PRELOAD"] == f"{mine} /their.so"


@linux
def test_what_is_not_here_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(chosen: str) -> str:
        with pytest.raises(UserError) as caught:
            allocator.variables(chosen, {})
        return str(caught.value)

    absent = tmp_path / "libabsent.so"
    assert refused(str(absent)) == (
        f"--config.measure.allocator={absent} does not exist: use the path of a shared library, or system."
    )
    spaced = tmp_path / "a folder" / "lib.so"
    spaced.parent.mkdir()
    spaced.touch()
    assert "has a space or a colon in its path" in refused(str(spaced))
    monkeypatch.setattr(allocator.ctypes.util, "find_library", lambda name: None)
    assert refused("jemalloc") == (
        "--config.measure.allocator=jemalloc finds no libjemalloc.so on this machine: install libjemalloc with the "
        "system's packages, or use system."
    )
    monkeypatch.setattr(allocator, "PACKAGE", "no-such-package")
    assert "mimalloc" in refused("mimalloc") and "'.[mimalloc]'" in refused("mimalloc")


def test_an_unknown_name_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = jaxbench("run", "mlp", f"--workdir={tmp_path / 'run'}", "--config.measure.allocator=jemaloc")
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert "--config.measure.allocator=jemaloc is unknown: did you mean 'jemalloc'?" in done.stderr
    tried = jaxbench("try", "mlp", "--config.measure.allocator=arenas")
    assert tried.returncode == 2 and "has no effect on jaxbench try" in tried.stderr
