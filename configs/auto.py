# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What this machine has: every local accelerator in powers of two, else 1, 2, 4, 8 CPU devices; the default."""

from ml_collections import ConfigDict


def get_config(config: ConfigDict) -> ConfigDict:
    return config
