# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""``python -m jaxbench`` is ``jaxbench``."""

from jaxbench.app import main

if __name__ == "__main__":
    main()
