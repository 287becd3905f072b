# SPDX-License-Identifier: MIT
"""Compressed communication for distributed training, for NumPy."""
