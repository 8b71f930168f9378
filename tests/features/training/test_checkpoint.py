# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checkpoints are restored bit for bit, and a damaged checkpoint is never used."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import subprocess
import sys

import absl.logging
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from doorway import ROOT, environment
from jax.sharding import NamedSharding, PartitionSpec
from thin import thin

from jaxbench.core.program import TrainState
from jaxbench.errors import UserError
from jaxbench.features.training import checkpoint
from jaxbench.features.training.checkpoint import Writer, params_sha256, restore_latest, to_host

PROGRESS = {"rows": [{"epoch": 1, "test_accuracy": 0.1 + 0.2}], "elapsed_s": 1 / 3}


def make_state(step: int, width: int = 16) -> TrainState:
    key = jax.random.PRNGKey(step)
    params = {
        "layers": [{"kernel": jax.random.normal(key, (32, width)), "bias": jnp.zeros((width,), jnp.bfloat16)}],
        "scale": jnp.float32(step),
        "nothing": jnp.zeros((0, 3)),
    }
    opt_state = optax.adam(1e-3).init(params)
    return to_host(TrainState(jnp.int32(step), params, {"seen": jnp.array(True)}, opt_state, key))


def assert_same(left: TrainState, right: TrainState) -> None:
    assert jax.tree.structure(left) == jax.tree.structure(right)
    assert params_sha256(left) == params_sha256(right)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the checkpoints of steps 2 and 3."""
    folder = tmp_path_factory.mktemp("saved") / "checkpoints"
    with Writer(folder, keep=2) as writer:
        for step in (1, 2, 3):
            writer.save(make_state(step), {**PROGRESS, "step": step})
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "checkpoints")


def test_the_newest_comes_back_bit_for_bit_with_its_progress(saved):
    restored = restore_latest(saved, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), make_state(0)))
    assert_same(restored.state, make_state(3))
    assert restored.progress == {**PROGRESS, "step": 3}
    assert restored.notes == ()
    assert restored.state.params["layers"][0]["bias"].dtype == jnp.bfloat16
    assert restored.state.params["nothing"].shape == (0, 3)


def test_only_the_last_are_kept(saved):
    assert sorted(path.name for path in saved.iterdir()) == ["2", "3"]


def test_nothing_there_is_a_fresh_start(tmp_path):
    restored = restore_latest(tmp_path / "absent", make_state(0))
    assert (restored.state, restored.progress, restored.notes) == (None, {}, ())


def test_a_saved_array_does_not_change_with_its_source_buffer(tmp_path):
    sharding = NamedSharding(jax.make_mesh((8,), ("data",)), PartitionSpec())
    state = jax.device_put(make_state(5), sharding)
    host, expected = to_host(state), make_state(5)
    double = jax.jit(lambda tree: jax.tree.map(lambda x: x + x, tree), donate_argnums=0)
    with Writer(tmp_path / "c", keep=1) as writer:
        writer.save(host, {})
        double({"kernel": state.params["layers"][0]["kernel"]})
    assert_same(restore_latest(tmp_path / "c", expected).state, expected)


def damage(path, kind, seed):
    data = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
    elif kind == "emptied":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "flipped":
        data[random.Random(seed).randrange(len(data))] ^= 1 << seed % 8
        path.write_bytes(data)


@pytest.mark.parametrize("kind", thin(["flipped", "deleted", "emptied", "cut"], 2))
def test_damage_to_any_file_gives_the_right_state_or_the_one_before(saved, tmp_path, kind):
    files = [
        path.relative_to(saved) for path in sorted((saved / "3").rglob("*")) if path.is_file() and path.stat().st_size
    ]
    fell_back = 0
    for number, name in enumerate(files * (2 if kind == "flipped" else 1)):
        folder = shutil.copytree(saved, tmp_path / str(number) / "checkpoints")
        damage(folder / name, kind, number)
        restored = restore_latest(folder, make_state(0))
        if int(restored.state.step) == 2:
            fell_back += 1
            assert len(restored.notes) == 1 and "3 is damaged" in restored.notes[0]
            assert not (folder / "3").exists() and (folder.with_name("checkpoints.damaged") / "3").exists()
            assert restored.progress["step"] == 2
        else:
            assert restored.notes == ()
        assert_same(restored.state, make_state(int(restored.state.step)))
        with Writer(folder, keep=2) as writer:  # and the folder can be written to again
            writer.save(make_state(4), {})
        assert int(restore_latest(folder, make_state(0)).state.step) == 4
    assert fell_back


def test_a_bit_flipped_in_the_arrays_is_seen(copy):
    """Orbax alone returns wrong numbers for some of these."""
    blobs = [path for path in (copy / "3" / "state").rglob("d/*") if path.stat().st_size > 1500]
    assert blobs
    data = bytearray(blobs[0].read_bytes())
    data[700] ^= 4
    blobs[0].write_bytes(data)
    restored = restore_latest(copy, make_state(0))
    assert int(restored.state.step) == 2
    # By the hash of the file, before orbax reads it: not all of orbax's errors for damaged files can be caught.
    assert f"{blobs[0].relative_to(copy / '3')} is not the file that was saved" in restored.notes[0]


def test_a_half_written_checkpoint_is_said_and_removed(copy):
    half = copy / "4.part"
    shutil.copytree(copy / "3" / "state", half / "state")
    restored = restore_latest(copy, make_state(0))
    assert int(restored.state.step) == 3 and "4.part" in restored.notes[0]
    with Writer(copy, keep=2):
        pass
    assert not half.exists()


def test_an_empty_folder_in_place_of_a_checkpoint_is_damage(copy):
    (copy / "9").mkdir()
    restored = restore_latest(copy, make_state(0))
    assert int(restored.state.step) == 3 and "9 is damaged" in restored.notes[0]


def test_all_damaged_is_an_error_and_loses_nothing(copy):
    for step in ("2", "3"):
        (copy / step / "seal.json").write_text("{}")
    with pytest.raises(UserError, match="none of the 2 checkpoints .*3 is damaged .*seal.json"):
        restore_latest(copy, make_state(0))
    assert (copy / "2").exists() and (copy / "3").exists()


def test_another_model_is_an_error_and_not_damage(copy):
    with pytest.raises(UserError, match=r"another model or optimizer \(opt_state.*bfloat16\[16\] and is now .*\[8\]"):
        restore_latest(copy, make_state(0, width=8))
    assert (copy / "3").exists()


FULL_DISK = """
import resource, sys
from pathlib import Path
from jaxbench.errors import UserError
from jaxbench.features.training.checkpoint import Writer
from features.training.test_checkpoint import make_state

state = make_state(4, width=1024)
print("saving", file=sys.stderr, flush=True)  # plugins for absent hardware have complained before
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))  # a full disk that needs no disk
try:
    with Writer(Path(sys.argv[1]), keep=2) as writer:
        writer.save(state, {})
except UserError as error:
    print(error)
"""


@pytest.mark.parametrize("size", ["30_000", "200"])
def test_a_disk_that_refuses_the_arrays_is_a_sentence_and_the_checkpoint_before_stays(copy, size):
    """In a separate process, because of its limit; leftovers of orbax's threads end with it."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-c", FULL_DISK, str(copy), size]
    done = subprocess.run(command, env={**environment(), "PYTHONPATH": path}, capture_output=True, text=True)
    assert "File too large): free some space" in done.stdout, done.stderr
    _, began, said = done.stderr.partition("saving\n")
    assert began and not re.search(r"^[EF]\d{4} ", said, re.MULTILINE)  # orbax's own log of this error and traceback
    assert "Traceback" not in said  # of threads that still wrote: "Event loop is closed"
    restored = restore_latest(copy, make_state(0))
    assert int(restored.state.step) == 3 and "4.part" in restored.notes[0]


def test_a_disk_that_refuses_the_seal_is_a_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "write_atomic", full)
    with (
        pytest.raises(UserError, match="No space left on device"),
        Writer(tmp_path / "c", keep=1) as writer,
    ):
        writer.save(make_state(1), {})


def test_orbax_says_nothing_of_its_own_unless_asked(tmp_path, caplog):
    logger = absl.logging.get_absl_logger()
    verbosity = absl.logging.get_verbosity()
    logger.addHandler(caplog.handler)
    try:
        for level, spoken in ((absl.logging.INFO, False), (absl.logging.DEBUG, True)):
            absl.logging.set_verbosity(level)
            caplog.clear()
            with Writer(tmp_path / str(level), keep=1) as writer:
                writer.save(make_state(1), {})
            restore_latest(tmp_path / str(level), make_state(0))
            assert bool(caplog.records) == spoken
            assert not logger.filters
    finally:
        absl.logging.set_verbosity(verbosity)
        logger.removeHandler(caplog.handler)


def test_the_hash_depends_on_name_type_shape_and_value_and_not_on_order():
    base = {"a": np.zeros(4, np.float32), "b": np.ones(2, np.int32)}
    assert params_sha256(base) == params_sha256(dict(reversed(base.items())))
    assert params_sha256(base) == params_sha256(jax.device_put(base))
    changed = [
        {"a": base["a"], "c": base["b"]},
        {**base, "a": np.zeros(4, np.int32)},
        {**base, "a": np.zeros((2, 2), np.float32)},
        {**base, "b": np.array([1, 2], np.int32)},
        {**base, "a": -base["a"]},  # minus zero is another value
    ]
    assert len({params_sha256(tree) for tree in [base, *changed]}) == 1 + len(changed)
    assert params_sha256({"s": np.float32(1)}) != params_sha256({"s": np.ones(1, np.float32)})
