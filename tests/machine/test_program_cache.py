# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The folder of compiled programs: where it is, what its parts depend on, and what is removed."""

from __future__ import annotations

import io
import math
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from jaxbench.commands import cache as verb
from jaxbench.errors import UserError
from jaxbench.machine import program_cache
from jaxbench.records.manifest import Machine

CPU: dict[str, Any] = {
    "platform": "cpu",
    "device_kind": "cpu",
    "cpu_model": "a processor",
    "platform_version": "",
    "identity": {"instruction_sets": ["avx2"]},
    "versions": {"jax": "0.10.2", "jaxlib": "0.10.2", "numpy": "2"},
    "environment": {},
}
GPU = CPU | {"platform": "gpu", "device_kind": "NVIDIA H100", "platform_version": "cuda 12"}


def opened(root: Path, machine: dict[str, Any] = CPU, **variables: str) -> program_cache.ProgramCache:
    cache, why = program_cache.opened(cast(Machine, machine), {"JAX_COMPILATION_CACHE_DIR": str(root), **variables})
    assert cache is not None and not why
    return cache


def entry(part: Path, name: str, size: int = 1000, used: float = 0.0) -> Path:
    """An entry as JAX writes it."""
    path = part / f"{name}-cache"
    path.write_bytes(zlib.compress(os.urandom(size)))
    os.utime(path, (used or 1e9, used or 1e9))
    return path


def test_the_folder_follows_jax_then_xdg_then_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert program_cache.folder({}) == tmp_path / ".cache" / "jaxbench"
    assert program_cache.folder({"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache" / "jaxbench"
    assert program_cache.folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/jaxbench")
    both = {"XDG_CACHE_HOME": "/x", "JAX_COMPILATION_CACHE_DIR": "/y/z"}
    assert program_cache.folder(both) == Path("/y/z")


def test_these_tests_use_no_folder_of_the_user() -> None:
    assert program_cache.folder().is_relative_to(tempfile.gettempdir())


OTHER = {
    "jaxlib": {"versions": CPU["versions"] | {"jaxlib": "0.12"}},
    "instructions": {"identity": {"instruction_sets": ["avx512f"]}},
    "device": {"device_kind": "another"},
    "flag": {"environment": {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}},
    "setting": {"environment": {"JAX_ENABLE_X64": "1"}},
}
SAME = {
    "numpy": {"versions": CPU["versions"] | {"numpy": "3"}},
    "logging": {"environment": {"JAX_LOG_COMPILES": "1"}},
    "threads": {"environment": {"OMP_NUM_THREADS": "1"}},
}


@pytest.mark.parametrize("change", [*OTHER, *SAME])
def test_another_jaxlib_device_or_flag_has_a_part_of_its_own(change: str, tmp_path: Path) -> None:
    part, other = (opened(tmp_path, machine).part(0) for machine in (CPU, CPU | (OTHER | SAME)[change]))
    assert (part != other) is (change in OTHER)


def test_sets_share_the_part_of_a_cpu_and_have_their_own_on_an_accelerator(tmp_path: Path) -> None:
    assert len({opened(tmp_path).part(number) for number in range(4)}) == 1
    gpu = opened(tmp_path, GPU)
    assert len({gpu.part(number) for number in range(program_cache.TUNINGS)}) == program_cache.TUNINGS
    assert gpu.part(program_cache.TUNINGS) == gpu.part(0), "later pairs load what the first ones have tuned"
    tpu = opened(tmp_path, CPU | {"platform": "tpu", "device_kind": "TPU v5 lite", "platform_version": "libtpu"})
    assert tpu.part(1) == tpu.part(0) != gpu.part(0), "its compiler tries no variants, so one set compiles for all"


def test_an_entry_that_was_cut_off_is_removed_and_the_others_stay(tmp_path: Path) -> None:
    part = opened(tmp_path).begin(0)
    whole, half, empty = (entry(part, name) for name in ("whole", "half", "empty"))
    half.write_bytes(half.read_bytes()[:500])
    empty.write_bytes(b"")
    assert program_cache.seal(part) == 2
    assert whole.exists() and not half.exists() and not empty.exists()
    assert program_cache.seal(part) == 0
    whole.write_bytes(whole.read_bytes()[:-1])  # after it was found whole
    assert program_cache.seal(part) == 1


def test_what_was_not_used_for_longest_goes_first_from_all_parts(tmp_path: Path) -> None:
    first, second = (opened(tmp_path, machine).begin(0) for machine in (CPU, GPU))
    old, new, middle = entry(first, "old", used=1.1e9), entry(first, "new", used=3e9), entry(second, "m", used=2e9)
    limit = new.stat().st_size + middle.stat().st_size
    assert program_cache.evict(tmp_path, limit) == 1
    assert not old.exists() and new.exists() and middle.exists()
    opened(tmp_path, JAX_COMPILATION_CACHE_MAX_SIZE=str(limit - 1))  # a start keeps the limit, too
    assert new.exists() and not middle.exists()


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"JAX_COMPILATION_CACHE_DIR": "/dev/null/folder"}, "cannot be written (Not a directory)"),
        ({"JAX_COMPILATION_CACHE_DIR": "gs://bucket/x"}, "is not a folder of this machine"),
        ({"JAX_COMPILATION_CACHE_MAX_SIZE": "0"}, "JAX_COMPILATION_CACHE_MAX_SIZE=0"),
        ({"JAX_ENABLE_COMPILATION_CACHE": "false"}, "JAX_ENABLE_COMPILATION_CACHE=false"),
    ],
)
def test_a_folder_that_cannot_be_used_is_no_cache_and_one_sentence(variables: dict[str, str], said: str) -> None:
    cache, why = program_cache.opened(cast(Machine, CPU), variables)
    assert cache is None and said in why and why.startswith("Compiled programs are not kept") and why.endswith(".")


def test_a_full_disk_is_no_cache_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache.os, "fsync", lambda number: os.write(os.open("/dev/full", os.O_WRONLY), b"x"))
    cache, why = program_cache.opened(cast(Machine, CPU), {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)})
    assert cache is None and "No space left on device" in why
    assert [path.name for path in tmp_path.glob("*/*")] == [program_cache.PART]


def test_a_limit_is_a_number(tmp_path: Path) -> None:
    assert program_cache.limit_bytes({"JAX_COMPILATION_CACHE_MAX_SIZE": "-1"}) == math.inf
    with pytest.raises(UserError, match="JAX_COMPILATION_CACHE_MAX_SIZE=10GB is not a number of bytes"):
        program_cache.limit_bytes({"JAX_COMPILATION_CACHE_MAX_SIZE": "10GB"})


def test_the_first_compile_time_is_kept_and_not_replaced(tmp_path: Path) -> None:
    part = str(opened(tmp_path).begin(0))
    assert program_cache.known_compile_s(part, "a") is None and program_cache.known_compile_s(None, "a") is None
    program_cache.note_compile_s(part, "a", 2.5)
    program_cache.note_compile_s(part, "a", 9.0)
    assert program_cache.known_compile_s(part, "a") == 2.5
    (Path(part) / program_cache.TIMES / "a.json").write_text('{"compile_s": "NaN"}')
    assert program_cache.known_compile_s(part, "a") is None


def test_the_verb_shows_the_parts_and_clears_nothing_else(tmp_path: Path) -> None:
    entry(opened(tmp_path).begin(0), "a")
    mine = tmp_path / "jit_mine-cache"  # of another program of this user
    mine.write_text("mine")
    console = Console(width=150, record=True, quiet=False, file=io.StringIO())
    verb.show(program_cache.parts(tmp_path), tmp_path, 1e10, console)
    text = console.export_text()
    assert "1 compiled programs, 0.0 MB of at most 10 GB" in text and "0.10.2" in text
    assert program_cache.clear(tmp_path)[0] == 1
    assert [*tmp_path.iterdir()] == [mine] and program_cache.parts(tmp_path) == []
    assert program_cache.clear(tmp_path / "none") == (0, 0)
