// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory that a server lets its client read and write: the part of a file that a job uses, or anonymous memory.
#pragma once

#include <infiniband/dappledv.h>

#include <cstdint>

#include "fio/host.hpp"
#include "fio/objects.hpp"

namespace dapple::fio {

// Confined to a thread.
class Exposed {
 public:
  // Maps [offset, offset + size) of the file, or memory for the name "malloc", and registers it. Empty, after a line,
  // if that is not possible.
  [[nodiscard]] static Exposed open(ibv_context* device, rpma_peer* peer, const File& file,
                                    bool direct_write_to_pmem) noexcept;

  explicit operator bool() const noexcept { return region_ != nullptr; }
  [[nodiscard]] rpma_mr_local* region() const noexcept { return region_.get(); }

  // Makes the client's writes there survive a loss of power or, for anonymous memory, visible to this CPU. Blocks
  // meanwhile. Returns 0 or an errno; EFAULT: the bytes are not all in the region.
  [[nodiscard]] int persist(std::uint64_t offset, std::uint64_t length) const noexcept;

 private:
  [[nodiscard]] bool prepare(ibv_context* device) noexcept;
  [[nodiscard]] bool map(const File& file) noexcept;
  // For a file without a page cache: true if the bytes can be made persistent, by instructions or by msync(). Otherwise
  // prints the reason.
  [[nodiscard]] bool persistent(const char* name, bool has_msync) noexcept;

  Mapping mapping_;
  Region region_;
  // In mapping_, which begins at a page.
  char* begin_ = nullptr;
  std::uint64_t size_ = 0;
  // True: the CPU's instructions make data persistent; false: msync() does.
  bool by_instructions_ = true;
  dappledv_region_attr attributes_ = {};
};

}  // namespace dapple::fio
