# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`ab` of releases: an environment for each arm, and the phases before the first step."""

from __future__ import annotations

import importlib.util
import io
import json
import sysconfig
import threading

import numpy as np
import pytest
from doorway import QUICK, ROOT
from rich.console import Console

from benchmarks import planted
from jaxbench import config, discovery
from jaxbench.commands import ab as ab_command
from jaxbench.core.schema import PointRecord
from jaxbench.core.store import RunFolder
from jaxbench.environments import needs, store, tools
from jaxbench.errors import UserError
from jaxbench.features.comparison import ab, judge, page, phases
from jaxbench.features.comparison.ab import Budget
from jaxbench.features.comparison.judge import CANNOT_TELL, SAME, SLOWER

IMPORTS = "import os, pathlib, pace\nwith open(os.environ['SEEN'], 'a') as seen:\n    seen.write(pace.VERSION + ' ')\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Two versions of `pace`. Environments also see the packages of this one, so that each takes a second to make."""
    for version in ("1.0", "1.1"):
        planted.wheel(tmp_path / "index", "pace", version, f"VERSION = {version!r}\n")
    for name, value in planted.variables(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    make = store._make

    def layered(folder, packages):
        make(folder, packages)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    monkeypatch.setattr(store, "_make", layered)
    monkeypatch.setattr(needs, "of_jaxbench", list)
    monkeypatch.setattr(needs, "of_files", lambda files: [])
    monkeypatch.setattr(needs, "lock", str)
    tools.offered.cache_clear()
    yield tmp_path
    tools.offered.cache_clear()


@pytest.fixture
def experiment(index, monkeypatch):
    """The mlp, which also says which `pace` its process loads. This process has one of its own."""
    (index / "here").mkdir()
    (index / "here" / "pace.py").write_text("VERSION = 'here'\n")
    monkeypatch.syspath_prepend(str(index / "here"))
    monkeypatch.setenv("SEEN", str(index / "seen"))
    lines = (ROOT / "experiments" / "mlp.py").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("from __future__")) + 1
    path = index / "mine.py"
    path.write_text("".join([*lines[:at], IMPORTS, *lines[at:]]))
    return str(path)


def made_of(experiment):
    made = config.compose("mine", discovery.load_experiment(experiment), discovery.load_preset("smoke"))
    words = [word for word in QUICK if word.startswith("--config.measure") or "strategy" in word or "scaling" in word]
    sgd = ["--config.mesh.devices=1", "--config.mesh.platform=cpu", "--config.optimizer.name=sgd"]
    ab_command.FLAGS.mark_as_parsed()  # with their defaults
    ab_command.prepare(made)
    return made, " ".join([*words, *sgd])


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_each_arm_runs_with_its_release(index, experiment, monkeypatch):
    made, settings = made_of(experiment)
    sides = tuple(ab_command.side_of(made, f"pace=={version} {settings}") for version in ("1.0", "1.1"))
    output = io.StringIO()
    budget = Budget(seconds=0.1, metric=judge.METRICS["step_s"], margin=0.02)
    found, _ = ab.run(experiment, sides, index / "ab", budget, Console(file=output, width=200))
    seen = set((index / "seen").read_text().split())
    assert {"1.0", "1.1"} <= seen, seen
    assert "A is the working tree with pace==1.0.\nB is the working tree with pace==1.1.\n" in output.getvalue()
    for arm, version in (("a", "1.0"), ("b", "1.1")):
        manifest = RunFolder(index / "ab" / arm).manifest()
        assert manifest["release"]["asked"] == f"pace=={version}"
        assert manifest["release"]["packages"] == {"pace": version}
        assert manifest["release"]["environment"] in {path.name for path in store.cache().iterdir()}
        assert manifest["versions"]["jaxbench"] != "not installed"
    assert [answers.metric.name for answers in found.phases] == ["trace_s", "lower_s", "compile_s", "first_run_s"]
    assert all(answers.points[0].a > 0 and answers.verdict == CANNOT_TELL for answers in found.phases)
    assert [line["name"] for line in page.as_json(found)["phases"]] == [
        "trace_s",
        "lower_s",
        "compile_s",
        "first_run_s",
    ]
    assert "first run" in page.markdown(found, "mine")
    threads, prepare = [], ab._Arm.prepare
    noting = lambda *given: threads.append(threading.current_thread()) or prepare(*given)  # noqa: E731
    monkeypatch.setattr(ab._Arm, "prepare", noting)
    again, _ = ab.run(experiment, sides, index / "ab", budget, Console(file=output))
    assert threads == 2 * [threading.main_thread()], "one after the other: both would compile on the same cores"
    assert [answers.metric.name for answers in again.phases] == [answers.metric.name for answers in found.phases]
    for arm in "ab":
        points = [r for r in RunFolder(index / "ab" / arm).records() if isinstance(r, PointRecord)]
        assert not any(point.explains for point in points)
        pairs = {point.worker: point.compile_report for point in points}
        assert len(pairs) == 2, "a second pair"
        assert not any(report.compile_recorded for report in pairs.values()), "each pair compiles"
    with pytest.raises(UserError, match="'.*a' was measured with pace==1.0, now it is pace==1.1: choose a new"):
        ab.run(experiment, (sides[1], sides[0]), index / "ab", budget, Console(file=output))


@pytest.mark.parametrize(("asked", "measured"), [("on", "off"), ("more", "more")])
def test_no_verdict_waits_for_points_that_explain(asked, measured):
    made = config.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    made.explain = asked
    side = ab.as_measured(ab_command.side_of(made, ""), compiles=True)
    assert (side.config.explain, side.config.measure.compile) == (measured, "fresh") and made.explain == asked
    assert ab.as_measured(side, compiles=False).config.measure.compile == "fresh", "as it was asked for"


def test_cases_have_nothing_to_explain():
    made = config.compose("matmul", discovery.load_experiment("matmul"), discovery.load_preset("auto"))
    assert "explain" not in ab.as_measured(ab_command.side_of(made, ""), compiles=False).config


def test_an_arm_may_name_a_commit_releases_and_settings():
    made = config.compose("mlp", discovery.load_experiment("mlp"), discovery.load_preset("auto"))
    side = ab_command.side_of(made, "jax==0.10.0 ref:main flax==0.12.6 --config.batch=7")
    assert (side.ref, str(side.release), side.config.batch) == ("ref:main", "flax==0.12.6 jax==0.10.0", 7)
    assert ab_command.side_of(made, "nightly").release.nightly
    with pytest.raises(UserError, match="'jax>=0.10' is no release"):
        ab_command.side_of(made, "jax>=0.10")
    with pytest.raises(UserError, match="'jax' is not a setting"):
        ab_command.side_of(made, "jax")


def starts(random, pairs, trace, spread=0.02):
    noise = 1 + spread * random.standard_normal(pairs)
    return {
        name: {pair: float(each) for pair, each in enumerate(noise * (trace if name == "trace" else 1.0))}
        for name in phases.METRICS
    }


def test_a_slower_trace_is_told_apart_from_the_rest():
    random = np.random.default_rng(0)
    a, b = starts(random, 27, 1.0), starts(random, 27, 1.4)
    verdicts = {answers.metric.name: answers.verdict for answers in phases.judged(a, b, margin=phases.MARGIN)}
    assert verdicts == {"trace_s": SLOWER, "lower_s": SAME, "compile_s": SAME, "first_run_s": SAME}
    trace = phases.judged_by(a, b, phases.metric_named("trace"), margin=0.02, alpha=0.05)
    assert trace.verdict == SLOWER and trace.overall.ratio.lo > 1.3
    del b["trace"]
    assert "trace_s" not in [answers.metric.name for answers in phases.judged(a, b, margin=0.1)]
    with pytest.raises(UserError, match="--metric=trace is unknown for these points"):
        phases.judged_by(a, b, phases.metric_named("trace"), margin=0.02, alpha=0.05)
    with pytest.raises(UserError, match="--metric=memry cannot be compared: did you mean 'memory'"):
        phases.metric_named("memry")


@pytest.mark.full
def test_a_package_of_an_older_release_is_measured(tmp_path, monkeypatch):
    """A whole environment from the configured index: about a minute with pip. Not optax: its 0.2.7 does not import with
    JAX 0.10.2."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    try:
        known = tools.offered("flax")
    except UserError as error:
        pytest.skip(str(error))
    older = known[known.index(needs.installed()["flax"]) - 1]
    made, settings = made_of("mlp")
    sides = tuple(ab_command.side_of(made, f"{arm} {settings}") for arm in (f"flax=={older}", ""))
    budget = Budget(seconds=0.1, metric=judge.METRICS["step_s"], margin=0.02)
    found, _ = ab.run("mlp", sides, tmp_path / "ab", budget, Console(file=io.StringIO()))
    software = " ".join(json.loads(json.dumps(page.as_json(found)))["software"])
    assert f"versions.flax: {older} in A" in software and "versions.jax:" not in software
