# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sentences of reports."""
