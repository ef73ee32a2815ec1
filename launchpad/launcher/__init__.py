"""The verbs: what launchpad does, knowing neither click nor paramiko."""
