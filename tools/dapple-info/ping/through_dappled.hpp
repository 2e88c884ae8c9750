// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <memory>

#include "provider/member/daemon_link.hpp"
#include "tools/dapple-info/ping/ends.hpp"

namespace dapple::info {

// Questions that dappled asks while it holds the port, as for a program that resolves a UDP service by rdma_cm.
class ThroughDappled {
 public:
  // Null unless a dappled on this host holds the port and serves this user.
  static std::unique_ptr<ThroughDappled> open(const Address& local, const Address& peer);
  ~ThroughDappled() { end(); }
  ThroughDappled(const ThroughDappled&) = delete;
  ThroughDappled& operator=(const ThroughDappled&) = delete;

  // Prepares the next question. False if dappled has no route to the peer.
  bool prepare();
  bool send();
  // A descriptor that is readable when an event has arrived.
  int fd() const { return channel_.get(); }
  // True if the last question has an answer.
  bool answered();
  // Forgets the last question.
  void end();
  // The number of packets with a wrong ICRC that all programs on this host have received.
  uint64_t wrong_icrcs();

 private:
  ThroughDappled() = default;
  template <class Command>
  bool command(uint32_t number, const Command& body, void* response = nullptr, size_t response_size = 0);
  // The number of the next event, or -1 if none comes within that time.
  int event(int milliseconds, int& status);

  std::unique_ptr<soft::DaemonLink> link_;
  soft::CmChannelName name_;
  soft::OwnedFd channel_, dappleds_end_, journal_;
  Address local_{}, peer_{};
  uint32_t id_ = 0;
  bool has_id_ = false;
};

}  // namespace dapple::info
