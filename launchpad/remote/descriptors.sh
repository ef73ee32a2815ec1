# descriptors.sh: what comes along from the host, and must go no further. Behind common.sh.
#
# shellcheck shell=sh

# close_inherited: lxc-attach hands on every descriptor it was started with, and one of them open in
# something that we start keeps the caller's ssh open as long as it lives. dash cannot name those
# above 9 (it reads `exec 12>&-` as "run 12"), but dash is only used where there is no bash.
close_inherited() {
  many=
  (eval 'exec 10>&-') 2>/dev/null && many=yes
  for descriptor in "/proc/$$/fd"/*; do
    descriptor=${descriptor##*/}
    case $descriptor in
      0 | 1 | 2 | '*') ;;
      ?) eval "exec $descriptor>&-" ;;
      *) [ -z "$many" ] || eval "exec $descriptor>&-" ;;
    esac
  done
}
