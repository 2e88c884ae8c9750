// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packets for a number that no queue pair of this process has.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// Of an unreliable queue pair, whose sender never hears of it.
struct StrayPacket {
  uint32_t qpn = 0;
  uint32_t source_qpn = 0;          // 0 if the packet does not say it
  const uint8_t* source = nullptr;  // a GID of 16 bytes
};

// dapple-run --explain hears of them, in the thread that receives, which holds the lock of receiving.
using StrayWatch = void (*)(const StrayPacket& packet);
inline constinit std::atomic<StrayWatch> stray_watch = nullptr;

}  // namespace dapple::soft
