# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Imports JAX for a command that needs it. An installation that does not start ends in one sentence.

Pages, tables, cards and comparisons are made where JAX is not installed, so nothing imports JAX before it is needed.
"""

from __future__ import annotations

import importlib
import os
from contextlib import AbstractContextManager
from types import TracebackType

from jaxbench.errors import UserError


class NoJax(UserError):
    """JAX cannot be imported here. reason: the exception of the import, as a clause."""

    def __init__(self, message: str, reason: str):
        super().__init__(message)
        self.reason = reason


def require(command: str) -> None:
    """Imports JAX. Raises NoJax, whatever the import raises. command: what needs it, for the sentence."""
    with _AsSentence(command):
        importlib.import_module("jax")


class _AsSentence(AbstractContextManager[None]):
    """Turns any exception of an import into a NoJax. A broken installation raises many kinds: a jaxlib of another
    version a RuntimeError, a missing shared library an OSError, half an upgrade an AttributeError."""

    def __init__(self, command: str):
        self.command = command

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".: ")
            # JAX reads its variables at import, and names one that it cannot read.
            wrong = next((name for name in os.environ if name.startswith("JAX_") and name in reason), "")
            advice = "install the packages of jaxbench again, and try python -c 'import jax'"
            advice = f"unset {wrong}, or correct it" if wrong else advice
            raise NoJax(
                f"{self.command} needs JAX, which cannot be imported here ({reason}): {advice}.", reason
            ) from error
