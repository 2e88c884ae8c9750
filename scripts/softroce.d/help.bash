# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors

# shellcheck disable=SC2154  # scripts/softroce sets $program and $system_cache
show_help() {
  cat <<HELP
usage: $program [OPTION…] [--] COMMAND [ARG…]
       $program --guests 2 [OPTION…] -- COMMAND1 [ARG…] --- COMMAND2 [ARG…]
       $program --prepare [--system] [--kernel VERSION] [--device KIND]
       $program --packages

Runs COMMAND, a program of this machine, in a virtual machine whose kernel has a Soft-RoCE device: rxe0, on the network
device d0 with the addresses 10.9.0.1/24 and fd09::1/64. It runs as root, in the same working folder, without stdin.
The machine's files are visible; what the command writes is lost at its end, except below a --share. /tmp and /run are
fresh, but for the folder in them that the working folder lies in. stdout, stderr and the exit code come through.

  --kernel VERSION   Debian's 6.1 (default), 6.12 or 7.2; fetched with apt the first time and kept. For two guests it may be
                     two versions, as 6.1,7.2
  --device KIND      rxe (default); siw, software iWARP as siw0, whose module is built the first time (Debian's kernels lack
                     it); or none: no RDMA module is loaded
  --cpus N           virtual CPUs of each guest (default 2; 1 with two guests, and with 7.2 under emulation)
  --memory MB        memory of each guest (default 1024)
  --timeout SECONDS  end the run, boot included, after this time (default: no limit)
  --share DIR        DIR is read-write, in the same place; may be repeated
  --env NAME[=VALUE] set a variable, or pass one that is not passed by itself; may be repeated
  --guests 2         two guests on one wire, 10.9.0.1 and 10.9.0.2, one command for each
  --accel HOW        auto (default: KVM if a short boot with it works, else emulation), kvm or tcg
  --native           no virtual machine: run COMMAND here, with this machine's own RDMA device
  --prepare          only fetch the kernel and build what a start needs, so that later starts need no network
  --system           with --prepare: for every user of this machine, into $system_cache; this takes root
  --packages         print the Debian packages this needs, one per line
  --help             print this

Environment: the command gets the caller's exported variables, except those that mean something on the host only
(TMPDIR, TERM, DISPLAY, SSH_*, XDG_RUNTIME_DIR, …), and SOFTROCE_GUEST, SOFTROCE_DEVICE, SOFTROCE_ADDRESS and
SOFTROCE_ADDRESS6; with two guests also SOFTROCE_PEER, SOFTROCE_PEER6 and SOFTROCE_SHARED, a folder both can write to.
$program itself heeds DAPPLE_CACHE (default \${XDG_CACHE_HOME:-~/.cache}/dapple) and DAPPLE_DEBIAN_MIRROR.

Two guests: each line of output begins with "1| " or "2| ". The exit code is the first that is not 0, guest 1's before
guest 2's; once a command has failed, the other guest is ended after 10 seconds.

Exit codes: the command's own (128 + n when signal n ended it), or
  2    wrong options
  124  timed out
  125  a guest died; the end of its console is on stderr
  126  cannot start: something is missing, one line on stderr says what
  127  no such command
HELP
}
