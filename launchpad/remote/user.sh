# user.sh: who does the work in the container. Behind common.sh; wants a function `refuse REASON CODE
# DETAIL` that does not return.
#
# shellcheck shell=sh disable=SC2034,SC2154 # variables are for whoever stands behind this

# read_passwd NAME: the entry of a name or uid, from stdin.
read_passwd() {
  while IFS=: read -r user _ uid gid _ home shell; do
    case $1 in
      "$user" | "$uid") return ;;
    esac
  done
  return 1
}

# find_user NAME: sets user, uid, gid, home, shell from passwd(5), and switch, the way to become that
# user: none, setpriv or su. An empty NAME: whoever we are.
find_user() {
  own_uid=0
  { while read -r field value _; do
    [ "$field" != Uid: ] || own_uid=$value
  done <"/proc/$$/status"; } 2>/dev/null
  wanted=${1:-$own_uid}
  found=
  read_passwd "$wanted" </etc/passwd 2>/dev/null && found=yes
  if [ -z "$found" ] && command -v getent >/dev/null; then
    # A directory service knows users that the file does not.
    entry=$(getent passwd "$wanted" 2>/dev/null) && {
      IFS=:
      set -f
      # shellcheck disable=SC2086
      set -- "$1" $entry
      set +f
      unset IFS
      user=$2 uid=$4 gid=$5 home=${7-} shell=${8-} found=yes
    }
  fi
  if [ -z "$found" ]; then
    [ -z "$1" ] || refuse user 125 "$1"
    # An image without a passwd entry for the user it runs as is poor, not broken.
    user=$own_uid uid=$own_uid gid=$own_uid home=/ shell=/bin/sh
  fi
  shell=${shell:-/bin/sh} home=${home:-/}
  switch=none
  [ "$uid" = "$own_uid" ] && return
  [ "$own_uid" = 0 ] || refuse user-not-root 125 "$1"
  # Both keep the PID. (util-linux su and runuser fork, and so would hide the job from us.)
  if setpriv --reuid="$uid" --regid="$gid" --init-groups -- true 2>/dev/null; then
    switch=setpriv
  elif busybox su -s /bin/sh "$user" -c true </dev/null >/dev/null 2>&1; then
    switch=su
  else
    refuse switch-user 125 "$user"
  fi
}
