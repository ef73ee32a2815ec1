"""Figures that anybody can measure again: see docs/benchmarks.md."""
