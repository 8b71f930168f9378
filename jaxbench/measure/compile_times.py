# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the first compilation of a program took, for a process that has only loaded it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import jax

from jaxbench.machine import program_cache
from jaxbench.machine.preparing import LOAD_EVENT

SAVED, RETRIEVED = "/jax/compilation_cache/compile_time_saved_sec", "/jax/compilation_cache/cache_retrieval_time_sec"


@dataclass(frozen=True)
class Loaded:
    """A program from the compilation cache. compile_s: what JAX keeps with it, in whole seconds."""

    compile_s: float


class Loads:
    """The programs that were loaded while a context is open."""

    def __init__(self) -> None:
        self._hits, self._saved_s, self._retrieved_s = 0, 0.0, 0.0

    @property
    def one(self) -> Loaded | None:
        """The loaded program; None if it was compiled."""
        return Loaded(max(0.0, self._saved_s + self._retrieved_s)) if self._hits else None

    def event(self, event: str, **kwargs: str | int) -> None:
        self._hits += event == LOAD_EVENT

    def duration(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == SAVED:
            self._saved_s += duration_secs
        elif event == RETRIEVED:
            self._retrieved_s += duration_secs


@contextlib.contextmanager
def loading() -> Iterator[Loads]:
    """Yields the loads of the context, in which one program is compiled or loaded."""
    loads = Loads()
    jax.monitoring.register_event_listener(loads.event)
    jax.monitoring.register_event_duration_secs_listener(loads.duration)
    try:
        yield loads
    finally:
        jax.monitoring.unregister_event_listener(loads.event)
        jax.monitoring.unregister_event_duration_listener(loads.duration)


def note_compile_s(sha256: str, seconds: float) -> None:
    """Records the compile time of a program that this process has compiled, next to the program."""
    program_cache.note_compile_s(_cache_folder(), sha256, seconds)


def known_compile_s(sha256: str, loaded: Loaded) -> float:
    """The seconds of the first compilation of a loaded program."""
    known = program_cache.known_compile_s(_cache_folder(), sha256)
    return loaded.compile_s if known is None else known


def _cache_folder() -> str | None:
    folder = jax.config.values["jax_compilation_cache_dir"]
    return None if folder is None else str(folder)
