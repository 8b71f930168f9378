# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Result cards: a whole run in one document that can be committed, compared with others, and run again."""
