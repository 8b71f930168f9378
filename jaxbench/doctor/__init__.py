# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Is this machine fit to measure on? One file a question, each answered in findings; `examine.py` asks them all."""
