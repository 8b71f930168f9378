# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the processes of an arm of `jaxbench ab` run: a commit's files, and an environment with a release."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench import discovery
from jaxbench.environments import needs, store
from jaxbench.environments.release import Release
from jaxbench.environments.store import Environment
from jaxbench.errors import UserError
from jaxbench.features.comparison import other_commit
from jaxbench.features.comparison.other_commit import Checkout
from jaxbench.machine import manifest as manifest_lib
from jaxbench.machine import source
from jaxbench.records.manifest import Machine, Manifest
from jaxbench.sweep.progress import working


@dataclass(frozen=True)
class ArmCode:
    """checkout: the files of a commit; None: the working tree. environment: None: that of this process.

    copy: this package as the arm's processes load it, as in `source.of`; None: as this process does.
    """

    checkout: Checkout | None = None
    environment: Environment | None = None
    copy: dict[str, str] | None = None

    def __str__(self) -> str:
        tree = str(self.checkout or "the working tree")
        return f"{tree} with {self.environment.release}" if self.environment else tree

    @property
    def python(self) -> str:
        """ "" for that of this process."""
        return str(self.environment.python) if self.environment else ""

    @property
    def notes(self) -> tuple[str, ...]:
        if not (self.environment and self.environment.other):
            return ()
        other = ", ".join(self.environment.other)
        return (f"{self.environment.release} needs other packages than the lock: {other}",)

    def manifest(self, machine: Machine) -> Manifest:
        """The entries of a manifest that the environment replaces. machine: as this process sees it.

        Raises UserError if JAX does not start there.
        """
        if self.environment is None:
            return Manifest()
        copy = self.copy or source.HERE
        try:
            seen = manifest_lib.probe_with(machine["platform"], Path(self.python), copy)
        except UserError as error:
            raise UserError(f"{self.environment.release} cannot be measured: {error}") from error
        # This package is not installed there: its files are those of the working tree or of the commit.
        versions = {**seen["versions"], "jaxbench": machine["versions"]["jaxbench"]}
        return {
            "versions": versions,
            "platform_version": seen["platform_version"],
            "release": {
                "asked": str(self.environment.release),
                "environment": self.environment.name,
                "packages": self.environment.packages,
            },
        }


@contextmanager
def opened(ref: str, release: Release, experiment: str, console: Console) -> Iterator[ArmCode]:
    """Yields the code of an arm. A commit's files are removed when the context ends; an environment is kept.

    ref: "ref:NAME", or "" for the working tree. Raises UserError.
    """
    with contextlib.ExitStack() as stack:
        checkout = stack.enter_context(other_commit.files(ref)) if ref else None
        if not release:
            yield ArmCode(checkout)
            return
        if not ref:  # an older commit may run with older releases
            needs.require_supported(release)
        with working(console, f"making an environment with {release}"):
            files = discovery.source_files(experiment)
            made = store.environment(release, [*needs.of_jaxbench(), *_further(needs.of_files(files))])
        copy = source.of(checkout.folder / source.PACKAGE.name) if checkout else source.HERE
        yield ArmCode(checkout, made, stack.enter_context(source.alone(copy)))


def _further(requirements: list[str]) -> list[str]:
    """Those that are not among the requirements of jaxbench."""
    ours = {line.partition("[")[0] for line in needs.of_jaxbench()}
    return [line for line in requirements if line not in ours]


def require_same_environment(folder: Path, then: Manifest, now: Environment | None) -> None:
    """Raises UserError if a run folder was measured with another release than `now`; None: this environment."""
    old = then.get("release", {})
    if old.get("environment", "") != (now.name if now else ""):
        was, is_ = old.get("asked") or "this environment", now.release if now else "this environment"
        same = ", which resolves to other packages" if was == str(is_) else ""
        raise UserError(f"'{folder}' was measured with {was}, now it is {is_}{same}: choose a new --workdir.")
