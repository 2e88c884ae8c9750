// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// The peer's queue pair at the end of `path` for the queue pair `qpn`, with the rights that it must have.
QpDescription counterpart(const Path& path, uint32_t qpn, uint32_t access);

// Carries out a Write or Read of the queue pair `qpn` in the memory of its peer, which is at the end of `path`. Copies
// at most `most` bytes more, and adds them to `done`, as roce::PacketSink::place() does. The requester's local keys are
// in `memory`.
roce::Placed place(PeerMemory& peer, MemoryTable& memory, const Path& path, uint32_t qpn,
                   const roce::Transfer& transfer, uint64_t most, uint64_t& done);

// Tells whether the peer allows it now.
bool would_place(PeerMemory& peer, const Path& path, uint32_t qpn, const roce::Transfer& transfer);

}  // namespace dapple::soft
