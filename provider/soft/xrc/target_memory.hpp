// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory behind a receiving queue pair of XRC, without the accesses that no peer can ask for.
#pragma once

#include "roce/host/ports.hpp"

namespace dapple::soft {

class TargetMemory : public roce::Memory {
 public:
  // Of requests that XRC lacks, or of the half that sends.
  roce::Fault atomic_write(roce::Accessor, uint32_t, uint64_t, uint64_t) final { return roce::Fault::kAccess; }
  roce::Fault flush(roce::Accessor, const roce::RemoteRange&, uint32_t) final { return roce::Fault::kAccess; }
  roce::Fault check_local(roce::Accessor, std::span<const roce::Segment>, bool) final { return roce::Fault::kAccess; }
  roce::Fault gather(roce::Accessor, std::span<const roce::Segment>, uint64_t, std::byte*, size_t) final {
    return roce::Fault::kAccess;
  }
  roce::Fault bind_window(roce::Accessor, const roce::WindowBind&) final { return roce::Fault::kAccess; }
  roce::Fault invalidate_local(roce::Accessor, uint32_t) final { return roce::Fault::kAccess; }

 protected:
  ~TargetMemory() = default;
};

}  // namespace dapple::soft
