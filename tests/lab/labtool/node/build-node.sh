#!/bin/sh
# Installs the node's packages into a layer above the Debian base.
# usage: build-node.sh BASE LAYER PACKAGE...
# Runs in a mount and PID namespace of its own, so that no mount outlives it.
set -eu
base=$1 layer=$2
shift 2
root=$layer.root
mkdir -p "$layer" "$layer.work" "$root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$layer,workdir=$layer.work" "$root"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"

# No package may start a service, neither here nor anywhere.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get update -q
chroot "$root" apt-get install -q -y --no-install-recommends \
  -o DPkg::Options::=--force-unsafe-io "$@"
chroot "$root" apt-get clean
rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/ssh/ssh_host_*
umount "$root/proc" "$root"
rm -rf "$layer.work"
rmdir "$root"
