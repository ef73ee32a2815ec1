"""Start a process inside a Proxmox container, detached, and know what became of it."""
