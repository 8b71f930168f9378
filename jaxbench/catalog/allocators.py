# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Memory allocators that the processes of a run may have (`measure.allocator`, `machine.allocator`)."""

from __future__ import annotations

# glibc with one heap for all devices of a process, glibc with a heap for each thread, or a library in its place.
SYSTEM, ARENAS = "system", "arenas"
# By name: variables with which a library keeps memory, as `processes.messages.KEEP_MEMORY` asks of glibc. By default
# each returns free memory to the system after a while, and then pays for page faults in a timed block.
LIBRARIES = {
    "mimalloc": {"MIMALLOC_PURGE_DELAY": "-1"},
    "jemalloc": {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"},
    "tcmalloc": {"TCMALLOC_RELEASE_RATE": "0"},
}
MANY_ARENAS = {"MALLOC_ARENA_MAX": "64"}  # more than a process has threads that allocate
