// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A device's answers about itself. The query takes ten times as long as the rest of making a peer. So the answer is
// kept while its context has a peer, and then until another device's peer is deleted or the query would differ.
#pragma once

#include <infiniband/dappledv.h>
#include <sys/types.h>

#include <optional>

namespace dapple::rpma {

// The queried device, and everything else that determines the answer. Another context may have the address of a closed
// context.
struct Question {
  const ibv_context* context;
  const ibv_device* device;
  dev_t file;
  char coherence[64];    // DAPPLE_COHERENCE
  char persistence[64];  // DAPPLE_PERSISTENCE

  bool operator==(const Question&) const = default;
};

// One peer's share of the answers. Threads: internally locked.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  ~Device();

  // Called once, on an open context. Returns 0 or an errno value.
  int open(ibv_context* context) noexcept;

  const dappledv_device_attr& attr() const { return known_->attr; }
  // The coherence of ordinary memory.
  const dappledv_region_attr& memory() const { return known_->memory; }
  // Null if the device did not answer.
  const ibv_device_attr_ex* capabilities() const { return known_->capabilities ? &*known_->capabilities : nullptr; }

  struct Known {
    Question question;
    unsigned peers;
    dappledv_device_attr attr;
    dappledv_region_attr memory;
    std::optional<ibv_device_attr_ex> capabilities;
    Known* next;
  };

 private:
  Known* known_ = nullptr;
};

}  // namespace dapple::rpma
