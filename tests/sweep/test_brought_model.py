# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A user's model that one or all strategies refuse, from the command line: the exit code, and one sentence."""

from __future__ import annotations

import brought
import pytest
from doorway import QUICK, jaxbench

from jaxbench.core.store import RunFolder

LOGITS = 'logits = batch["x"] @ params["w"]'
LOOK_UP = LOGITS, 'logits = params["w"][batch["label"] % 3]'
SAID = "with explicit sharding every layout must be known"


def flat(text):
    """The text without the line breaks of the terminal."""
    return " ".join(text.split())


def test_an_error_of_a_model_ends_the_run_before_anything_is_compiled(tmp_path):
    returned = 'return {"w": jax.random.normal(key, (3, 5))}, {"mean": jnp.zeros(5)}'
    path = brought.write(tmp_path, (returned, "return {}"))
    done = jaxbench("run", "mine.py", "--workdir=out", *QUICK, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert flat(done.stderr).count(f"'{path}', line 11: init returns an empty dict: it must return (params,") == 1
    assert not list(RunFolder(tmp_path / "out").records())


@pytest.mark.full
def test_a_strategy_that_was_named_says_once_that_it_cannot_take_the_model(tmp_path):
    brought.write(tmp_path, LOOK_UP)
    words = *QUICK, "--config.strategy=jit_auto,jit_explicit"
    done = jaxbench("run", "mine.py", "--workdir=out", *words, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert flat(done.stdout + done.stderr).count(SAID) == 1
    failures = [line for line in RunFolder(tmp_path / "out").records() if line.kind == "failure"]
    assert {line.point: line.unsupported for line in failures} == {f"jit_explicit/strong/{n}": True for n in (1, 2)}


@pytest.mark.full
def test_a_dry_run_of_all_strategies_fails_by_none_that_cannot_take_the_model(tmp_path):
    brought.write(tmp_path, LOOK_UP)
    words = *QUICK, "--config.strategy=all", "--config.mesh.devices=2"
    done = jaxbench("run", "mine.py", "--dry_run", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not supported: " in flat(done.stdout) and "would fail" not in done.stdout
    named = jaxbench("run", "mine.py", "--dry_run", *words, "--config.strategy=jit_explicit", cwd=tmp_path)
    assert named.returncode == 1 and "1 of 1 points would fail" in named.stdout
