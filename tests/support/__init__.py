"""What the tests share: the lab, the command line as users run it, shells, waiting."""
