# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Settings of JAX that change a measurement are refused, reset or named, each by its row in one table."""

from __future__ import annotations

import subprocess

import jax
import pytest
from doorway import QUICK_MLP, ROOT, command, environment, sketching
from thin import thin

from jaxbench import commandline
from jaxbench.catalog import jax_settings
from jaxbench.catalog.jax_settings import REFUSED, RESET, SETTINGS
from jaxbench.errors import UserError
from jaxbench.machine import manifest, start


def test_the_table_names_settings_that_jax_has_and_docs_name_them_all():
    known, text = jax.config.values, (ROOT / "docs" / "USAGE.md").read_text()
    if jax.__version_info__ < (0, 11):
        assert set(SETTINGS) <= set(known)
    assert [name for name in SETTINGS if name.upper() not in text] == []
    assert all(known[name] in (None, setting.value) for name, setting in SETTINGS.items() if name in known)


def test_a_refusal_is_one_sentence_and_a_disabled_setting_is_none():
    with pytest.raises(UserError, match="JAX_DISABLE_JIT=1 is set, so nothing would be compiled: unset it"):
        jax_settings.refuse({"JAX_DISABLE_JIT": "1"})
    with pytest.raises(UserError, match="JAX_DEFAULT_PRNG_IMPL=rbg is set, but a training's keys are threefry2x32"):
        jax_settings.refuse({"JAX_DEFAULT_PRNG_IMPL": "rbg"})
    jax_settings.refuse({"JAX_DISABLE_JIT": "0", "JAX_DEFAULT_PRNG_IMPL": "threefry2x32", "JAX_ENABLE_X64": "1"})


def test_a_file_that_changes_settings_has_them_reset_or_is_refused(monkeypatch):
    monkeypatch.setattr(start, "changed_settings", {})
    start.settle_jax()
    jax.config.update("jax_debug_nans", True)
    start.settle_jax()
    assert not jax.config.jax_debug_nans and start.changed_settings == {"JAX_DEBUG_NANS": "True"}
    jax.config.update("jax_disable_jit", True)
    try:
        with pytest.raises(UserError, match="jax_disable_jit=True is set"):
            start.settle_jax()
    finally:
        jax.config.update("jax_disable_jit", False)
        start.settle_jax()


def test_the_page_names_what_was_reset_and_what_was_not_but_no_path():
    given = {
        "JAX_DEBUG_NANS": "1",
        "JAX_ENABLE_X64": "1",
        "JAX_COMPILATION_CACHE_DIR": "/a/b",
        "JAX_LOG_COMPILES": "1",
    }
    reset, wide, cache = jax_settings.sentences([given, given])
    assert reset.startswith("JAX_DEBUG_NANS=1 was set, and was reset")
    assert wide == "JAX_ENABLE_X64=1 was set: a run without it may measure something else."
    assert cache.startswith("JAX_COMPILATION_CACHE_DIR was set")
    assert {setting.decision for setting in SETTINGS.values()} == {REFUSED, RESET}


@pytest.mark.parametrize("verb", ["try", "run", "train"])
def test_without_jit_no_verb_begins(verb, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    with pytest.raises(UserError, match="^JAX_DISABLE_JIT=1 is set, so nothing would be compiled: unset it.$"):
        commandline.check_command([verb, "mlp"])


STRICT = {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_TRANSFER_GUARD": "disallow"}
SEVERAL = ["run", "mlp", *QUICK_MLP, "--config.strategy=jit_auto,shard_map,fsdp", "--config.mesh.devices=2"]


@pytest.mark.parametrize("words", thin([SEVERAL, ["try", "mlp"]], 1), ids=lambda words: words[0])
def test_strict_settings_do_not_stop_us(words, tmp_path):
    environ = {**environment(), **STRICT}
    done = subprocess.run(sketching(*words), capture_output=True, text=True, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_platform_that_is_not_here_is_named(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="^JAX_PLATFORMS=cuda is set, and JAX cannot start it here"):
        manifest.probe.__wrapped__("auto")


def test_an_ascii_locale_ends_in_no_traceback():
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command("help"), capture_output=True, env={**environment(), **ascii_only}, cwd=ROOT)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    code = (
        "import sys, jaxbench.app as a; a.absl_app.run = lambda *x, **y: print(sys.stdout.encoding, chr(181)); a.main()"
    )
    words = [command()[0], "-c", code]
    done = subprocess.run(words, capture_output=True, env={**environment(), **ascii_only}, cwd=ROOT)
    assert done.stdout.decode() == "utf-8 \u00b5\n", done.stderr
