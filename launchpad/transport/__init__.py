"""The only I/O towards hosts: paramiko, the ssh program, or this machine itself."""
