# SPDX-License-Identifier: MIT
"""Compressed communication for PyTorch."""
