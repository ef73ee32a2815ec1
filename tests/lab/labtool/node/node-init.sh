#!/bin/sh
# The first process of a node, run in fresh mount, network, UTS, IPC and PID namespaces.
# usage: node-init.sh NAME NODE-HOME LAB-HOME CACHE LOWER-LAYERS
# Builds the node's root from an overlay, moves into it, starts its daemons, says "ready" on
# stdout and stays as PID 1. Nothing here is mounted where the machine could see it.
set -eu
name=$1 home=$2 lab=$3 cache=$4 lower=$5
root=$home/root

# Not in the cgroup of whoever called: containers' cgroups are made relative to ours.
for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do
  if [ -e "$procs" ]; then echo $$ >"$procs" || :; fi
done

mount -t overlay overlay -o "lowerdir=$lower,upperdir=$home/upper,workdir=$home/work" "$root"
cd "$root"
mount -t proc proc proc
# A fresh sysfs shows this network namespace's links, which LXC looks for; cgroups are the machine's.
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup

mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
mknod -m 666 dev/fuse c 10 229
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr

mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/sshd run/lxc run/lock run/lab/containers run/lab/cache run/lab/pct run/lab/pve
mount --bind "$lab/containers" run/lab/containers
mount --bind "$lab/pct" run/lab/pct
mount --bind "$cache" run/lab/cache
mount -o remount,bind,ro run/lab/cache
ln -s "/etc/pve/nodes/$name" run/lab/pve/local
install -m 640 "$home/members" run/lab/pve/members
mount --bind "$lab/pve" etc/pve
mount --bind "$home/log" var/log

hostname "$name"
ip link set lo up

mkdir run/lab/machine
pivot_root . run/lab/machine
cd /
umount -l /run/lab/machine
rmdir /run/lab/machine

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ -e /sys/fs/fuse ]; then
  lxcfs /var/lib/lxcfs </dev/null >/var/log/lxcfs.log 2>&1 &
fi
/usr/sbin/sshd -E /var/log/sshd.log
echo ready

# With SIGCHLD ignored the kernel buries the orphans that a real init would wait for. dash forgets a
# `trap '' CHLD` when it execs. An orphan that nobody buries keeps the container that it came from
# from ever ending.
exec </dev/null >/dev/null 2>&1
exec env --ignore-signal=CHLD sleep infinity
