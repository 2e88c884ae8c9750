// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/first_help.hpp"

#include <stdio.h>
#include <stdlib.h>

#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {

void first_help() {
  fputs(R"help(dapple-run gives an RDMA program a software RoCEv2 device: no hardware, no kernel module, no root.

    dapple-run ibv_devinfo                 show the devices
    dapple-run rping -s -a 127.0.0.1       run a server, which waits for: dapple-run rping -c -a 127.0.0.1
    eval "$(dapple-run --env)"             let every program that this shell starts have the devices
    dapple-run --check PROGRAM             explain mistakes for which a NIC returns only a number
    dapple-run --doctor                    say what works on this machine, and what does not and why
    dapple-run --help                      list all options
)help",
        stderr);
  exit(kWrongUse);
}

}  // namespace dapple::run
