"""Builds and runs the lab in which launchpad is tested."""
