# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verbs, one file each: flags, help, `main`. `jaxbench.verbs` finds them and says what a file defines."""
