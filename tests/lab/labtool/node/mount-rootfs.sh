#!/bin/sh
# LXC's pre-start hook: puts the container's root together, in the monitor's own mount namespace
# (lxc.monitor.unshare), so that it vanishes with the container.
set -eu
id=$LXC_NAME
place=/run/lab/containers/$id
base=/run/lab/cache/$(cat "$place/base")
mount -t overlay overlay \
  -o "lowerdir=$base,upperdir=$place/upper,workdir=$place/work" "${LXC_ROOTFS_PATH#dir:}"
