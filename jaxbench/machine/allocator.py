# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory allocator of the processes that measure: glibc's with one heap, with arenas, or another library.

XLA's CPU client allocates a program's scratch and results at each execution, and all CPU devices of a process share the
C library's heap. Another allocator is loaded by the system's linker (LD_PRELOAD) before the process starts, so it is a
matter of its environment, which the manifest records. No jax.
"""

from __future__ import annotations

import ctypes.util
import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from jaxbench.catalog.allocators import ARENAS, LIBRARIES, MANY_ARENAS, SYSTEM
from jaxbench.command_form import with_extra
from jaxbench.errors import UserError

PRELOAD = "LD_PRELOAD"
PACKAGE = "cmeel-mimalloc"  # ships the library inside; the extra of pyproject.toml
MAPS = Path("/proc/self/maps")


def variables(chosen: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a process has the allocator of `measure.allocator`, in addition to those of its setup.

    environment: of this process; what it preloads already is kept. Raises UserError for a library that is not here.
    """
    if chosen == SYSTEM:
        return {}
    if chosen == ARENAS:
        return dict(MANY_ARENAS)
    library = str(find(chosen))
    kept = next((values for name, values in LIBRARIES.items() if name in Path(library).name), {})
    return {PRELOAD: " ".join(filter(None, (library, environment.get(PRELOAD, "")))), **kept}


def find(chosen: str) -> Path:
    """The shared library of an allocator, by name or path. Raises UserError."""
    asked = f"--config.measure.allocator={chosen}"
    if not sys.platform.startswith("linux"):
        raise UserError(f"{asked} needs Linux, which can preload a library: use {SYSTEM} here.")
    if chosen not in LIBRARIES:
        path = Path(chosen).expanduser().absolute()
        if not path.is_file():
            raise UserError(f"{asked} does not exist: use the path of a shared library, or {SYSTEM}.")
        if any(mark in str(path) for mark in " :"):  # they separate the libraries of LD_PRELOAD
            raise UserError(f"{asked} has a space or a colon in its path, which LD_PRELOAD cannot take: move it.")
        return path
    if found := _of_package(chosen) or _of_system(chosen):
        return found
    install = f"install lib{chosen} with the system's packages"
    if chosen == "mimalloc":
        install = with_extra("mimalloc")
    raise UserError(f"{asked} finds no lib{chosen}.so on this machine: {install}, or use {SYSTEM}.")


def _of_package(name: str) -> Path | None:
    """The library inside the package of the extra; None if it is not installed or does not have it."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == f"lib{name}.so"]
    return found[0].resolve() if found and found[0].is_file() else None


def _of_system(name: str) -> Path | None:
    """The library that the system's linker finds; None without one. gperftools has two: the small one is enough."""
    for each in (name, f"{name}_minimal"):
        if file := ctypes.util.find_library(each):
            return Path(file)  # a file name such as libjemalloc.so.2, which the linker looks up again
    return None


def require_loaded(environment: Mapping[str, str] = os.environ, maps: Path = MAPS) -> None:
    """Raises UserError if a library that this process should preload is not mapped. The linker only warns of it."""
    if not maps.exists():
        return
    mapped = {Path(line.split(maxsplit=5)[-1]).name for line in maps.read_text().splitlines() if "/" in line}
    for library in environment.get(PRELOAD, "").replace(":", " ").split():
        # A file of the system may be a link to another name, so the beginning of the name decides.
        stem = Path(library).name.partition(".so")[0]
        if not any(name.partition(".so")[0] == stem for name in mapped):
            raise UserError(
                f"{PRELOAD}={library} could not be loaded on this host: install the library, or use "
                f"--config.measure.allocator={SYSTEM}."
            )
