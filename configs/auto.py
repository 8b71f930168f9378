# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The default: local accelerators in powers of two, or else 1, 2, 4, 8 CPU devices; automatic number of rounds."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    return config
