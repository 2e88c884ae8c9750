# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # the parts share their variables; bash -u checks them
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# The command line. parse_options sets one variable for each option, and the commands.

bad() { die "$kExitUsage" "$@"; }

whole_number() { # OPTION VALUE LOW HIGH
  if ! [[ $2 =~ ^[0-9]{1,7}$ ]] || [ "$((10#$2))" -lt "$3" ] || [ "$((10#$2))" -gt "$4" ]; then
    bad "$1 takes a whole number from $3 to $4, not '$2'"
  fi
}

add_share() { # DIR
  local dir
  dir=$(realpath -e -- "$1" 2>/dev/null) || bad "--share takes an existing folder, not '$1'"
  [ -d "$dir" ] || bad "--share takes a folder, and '$1' is none"
  case $dir in
  / | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /run | /run/softroce*) bad "--share cannot share $dir" ;;
  *$'\n'*) bad '--share cannot share a folder with a newline in its name' ;;
  esac
  shares+=("$dir")
}

add_setting() { # NAME[=VALUE]
  local name=${1%%=*}
  [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || bad "--env takes NAME or NAME=VALUE, not '$1'"
  case $1 in
  *=*) settings+=("$1") ;;
  *)
    [[ $'\n'$caller_environment = *$'\n'"declare -x $name="* ]] || bad "--env $name: no such variable is exported"
    passed+=" $name "
    ;;
  esac
}

# /tmp and /run are new in a guest, so it sees only some of the commands in them.
check_visible() { # COMMAND
  local path dir
  case $1 in */*) ;; *) return 0 ;; esac
  path=$(realpath -e -- "$1" 2>/dev/null) || return 0
  case $path in /tmp/* | /run/*) ;; *) return 0 ;; esac
  for dir in "$(kept_tree)" "${shares[@]}"; do
    case $path in "${dir:--}"/*) return 0 ;; esac
  done
  bad "$1 lies in a folder that is fresh in the guest; add --share ${path%/*}"
}

# Sets kernels, an array by guest. One VERSION applies to all.
read_kernels() { # VERSION[,VERSION]
  local version
  kernels=()
  IFS=, read -ra kernels <<<"$1,"
  for version in "${kernels[@]}"; do
    kernel_suite "$version" >/dev/null || bad "--kernel takes 6.1, 6.12 or 7.2, or two of them and a comma, not '$1'"
  done
  [[ ${#kernels[@]} = [12] ]] || bad "--kernel takes one version or two, not '$1'"
  kernels=('' "${kernels[0]}" "${kernels[-1]}")
}

split_commands() { # ARG…
  command1=() command2=()
  if [ "$guests" = 1 ]; then
    command1=("$@")
  else
    while [ $# -gt 0 ] && [ "$1" != --- ]; do
      command1+=("$1")
      shift
    done
    [ $# -gt 0 ] || bad '--guests 2 takes two commands, with --- between them'
    shift
    command2=("$@")
    [ "${#command2[@]}" -gt 0 ] || bad 'there is no command after ---'
    check_visible "${command2[0]}"
  fi
  [ "${#command1[@]}" -gt 0 ] || bad 'no command was given; see --help'
  check_visible "${command1[0]}"
}

parse_options() {
  kernels=('' 6.1 6.1) device=rxe cpus='' memory=1024 timeout=0 guests=1 native=no prepare=no for_all=no accel_wanted=auto
  shares=() settings=() passed=''
  local option
  cwd=$(realpath -e . 2>/dev/null) || die "$kExitCannotStart" 'the working folder does not exist any more'
  while [ $# -gt 0 ]; do
    option=$1
    case $option in
    --kernel=* | --device=* | --cpus=* | --memory=* | --timeout=* | --share=* | --guests=* | --env=* | --accel=*)
      option=${1%%=*}
      set -- "$option" "${1#*=}" "${@:2}"
      ;;
    esac
    case $option in
    --kernel | --device | --cpus | --memory | --timeout | --share | --guests | --env | --accel)
      [ $# -ge 2 ] || bad "$option needs a value"
      ;;
    esac
    case $option in
    --kernel) read_kernels "$2" ;;
    --device)
      case $2 in rxe | siw | none) device=$2 ;; *) bad "--device takes rxe, siw or none, not '$2'" ;; esac
      ;;
    --accel)
      case $2 in auto | kvm | tcg) accel_wanted=$2 ;; *) bad "--accel takes auto, kvm or tcg, not '$2'" ;; esac
      ;;
    --guests)
      case $2 in 1 | 2) guests=$2 ;; *) bad "--guests takes 1 or 2, not '$2'" ;; esac
      ;;
    --cpus) whole_number "$1" "$2" 1 64 && cpus=$((10#$2)) ;;
    --memory) whole_number "$1" "$2" 256 1048576 && memory=$((10#$2)) ;;
    --timeout) whole_number "$1" "$2" 1 1000000 && timeout=$((10#$2)) ;;
    --share) add_share "$2" ;;
    --env) add_setting "$2" ;;
    --native) native=yes ;;
    --prepare) prepare=yes ;;
    --system) for_all=yes ;;
    --packages) needed_packages && exit 0 ;;
    --help | -h) show_help && exit 0 ;;
    --) shift && break ;;
    -*) bad "unknown option $1; see --help" ;;
    *) break ;;
    esac
    case $option in --native | --prepare | --system) shift ;; *) shift 2 ;; esac
  done
  [ "$guests" = 2 ] || [ "${kernels[1]}" = "${kernels[2]}" ] || bad 'one guest has one kernel; two take --guests 2'
  [ "$for_all" = no ] || [ "$prepare" = yes ] || bad '--system goes with --prepare'
  if [ "$prepare" = yes ]; then
    [ $# = 0 ] || bad '--prepare takes no command'
    return
  fi
  [ "$native" = no ] || [ "$guests" = 1 ] || bad '--native has no second guest'
  split_commands "$@"
}

# Without --cpus a guest gets two CPUs if it is alone, because both ends may poll, and on one CPU each message would
# cost a time slice. Under emulation 7.2 was seen to crash with two.
choose_cpus() {
  [ -z "$cpus" ] || return 0
  cpus=2
  if [ "$guests" = 2 ] || [ "${accels[1]}${kernels[1]}" = tcg7.2 ]; then cpus=1; fi
}
