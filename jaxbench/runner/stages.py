# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The stage in which a point failed."""

from __future__ import annotations

from typing import Any

from jaxbench import discovery


class StageError(Exception):
    """A point failed in `stage`; its __cause__ is the reason."""

    def __init__(self, stage: str):
        super().__init__(stage)
        self.stage = stage


class stage:
    """A context that adds its stage to an error and, if the error passed through the user's file, the line there."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception):
            raise StageError(self.name) from discovery.with_user_line(error)
