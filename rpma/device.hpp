// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a device tells about itself. The question costs ten times what else a peer is made of, so the answer is kept
// while its context has a peer, and after the last one until another device's peer ends or the question would be
// another.
#pragma once

#include <infiniband/dappledv.h>
#include <sys/types.h>

namespace dapple::rpma {

// Whom was asked, and what decides over the answer beside the device. A context that was closed may have left its
// address to another one.
struct Question {
  const ibv_context* context;
  const ibv_device* device;
  dev_t file;
  char coherence[64];  // DAPPLE_COHERENCE

  bool operator==(const Question&) const = default;
};

// One peer's share of the answers. Threads: internally locked.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  ~Device();

  // Once, on an open context. 0, or an errno value.
  int open(ibv_context* context) noexcept;

  const dappledv_device_attr& attr() const { return known_->attr; }

  struct Known {
    Question question;
    unsigned peers;
    dappledv_device_attr attr;
    Known* next;
  };

 private:
  Known* known_ = nullptr;
};

}  // namespace dapple::rpma
