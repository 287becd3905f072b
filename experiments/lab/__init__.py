# SPDX-License-Identifier: MIT
"""What the experiments share: cells, tuning, tables, plots and pages."""
