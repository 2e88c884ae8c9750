// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_PCAP of a program that uses rdma_cm: dappled, which sends and receives its datagrams, writes them to the file.
#pragma once

#include "provider/member/daemon_link.hpp"

namespace dapple::doors {

// Before the first channel is opened; does nothing afterwards. The plug-in complains about a file that cannot be
// opened.
void begin_capture(soft::DaemonLink& link);

// For the function DaemonLink::Reconnected. False if this dappled has gone meanwhile.
bool resume_capture(soft::DaemonLink& link);

// In a child of fork(), whose file may have another name.
void forget_capture();

}  // namespace dapple::doors
