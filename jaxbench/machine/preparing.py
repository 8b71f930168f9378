# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Counts, in a process that measures, what JAX traces, lowers, compiles and loads, and how long that takes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from jaxbench.records.preparation import Spent, in_turn

# JAX reports these after each phase of a program. A program that the cache has "compiles" for as long as it loads.
TRACE, LOWER, COMPILE = (
    f"/jax/core/compile/{name}_duration" for name in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)
LOAD_EVENT = "/jax/compilation_cache/cache_hits"


class Spans:
    """Intervals of time, possibly nested. A jitted function inside another one is traced within the trace of it."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def ended(self, seconds: float, now: float) -> None:
        """Adds the interval that has just ended. The intervals inside it ended earlier."""
        begun = now - seconds
        while self._spans and self._spans[-1][0] >= begun:
            self._spans.pop()
        self._spans.append((max(begun, self._spans[-1][1]) if self._spans else begun, now))

    def take(self) -> float:
        """The seconds in any of them. Forgets them."""
        total = sum(end - begin for begin, end in self._spans)
        self._spans.clear()
        return total


class Watch:
    """What this process has spent since the last `take`."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter):
        self._clock, self._tunes = clock, False
        self._spans = {kind: Spans() for kind in (TRACE, LOWER)}
        self._hit = False
        self._compile_s = self._load_s = self._first_run_s = 0.0
        self._compiled = self._loaded = 0
        self._names: list[str] = []
        self._since = clock()
        self._aside: list[Spent] = []

    def listen(self, *, tunes: bool) -> None:
        """Begins to hear what JAX reports. tunes: whether the compiler tries variants on the device."""
        import jax

        self._tunes = tunes
        jax.monitoring.register_event_listener(self.event)
        jax.monitoring.register_event_duration_secs_listener(self.duration)

    def event(self, event: str, **kwargs: str | int) -> None:
        self._hit = self._hit or event == LOAD_EVENT

    def duration(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in self._spans:
            self._spans[event].ended(duration_secs, self._clock())
        elif event == COMPILE:
            if self._hit:
                self._loaded, self._load_s = self._loaded + 1, self._load_s + duration_secs
            else:
                self._compiled, self._compile_s = self._compiled + 1, self._compile_s + duration_secs
                self._names.append(str(kwargs.get("fun_name", "")))
            self._hit = False

    def first_run(self, seconds: float) -> None:
        """Adds the first run of a step."""
        self._first_run_s += seconds

    def set_aside(self) -> None:
        """Ends the part of a request that belongs to the model, and so to no point."""
        self._aside.append(self.take())

    def take_aside(self) -> Spent:
        """What was set aside since the last call."""
        aside, self._aside = self._aside, []
        return in_turn(aside)

    def take(self, *, import_s: float = 0.0, backend_s: float = 0.0) -> Spent:
        """All since the last call."""
        now = self._clock()
        spent = Spent(
            busy_s=now - self._since,
            import_s=import_s,
            backend_s=backend_s,
            trace_s=self._spans[TRACE].take(),
            lower_s=self._spans[LOWER].take(),
            tune_s=None if self._tunes else 0.0,
            compile_s=self._compile_s,
            load_s=self._load_s,
            first_run_s=self._first_run_s,
            compiled=self._compiled,
            loaded=self._loaded,
            names=tuple(self._names),
        )
        self.begin()
        return spent

    def begin(self) -> None:
        """Forgets what was spent so far, such as the time of waiting for a request."""
        self._compile_s = self._load_s = self._first_run_s = 0.0
        self._compiled = self._loaded = 0
        self._names = []
        for spans in self._spans.values():
            spans.take()
        self._since = self._clock()


@functools.cache
def here() -> Watch:
    """The watch of this process."""
    return Watch()
