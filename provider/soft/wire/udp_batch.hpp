// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/protocol/wire_counters.hpp"
#include "provider/soft/wire/packet_tap.hpp"
#include "provider/soft/wire/send_sockets.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/packet/icrc.hpp"

namespace dapple::soft {

// The state that the batches of a wire share.
struct SendSide {
  SendSockets sockets;
  WireCounters* counters = nullptr;
  PacketTap* tap = nullptr;                      // may be null
  std::atomic<bool> segments[2] = {true, true};  // does the kernel segment: IPv4, IPv6?
};

// Packets are written where they are sent from. Successive packets of one path and one size (the last may be shorter)
// are a run, which the kernel cuts into packets; all runs go out with one system call.
class UdpBatch final : public SendBatch {
 public:
  explicit UdpBatch(SendSide& side) : side_(side) {}

  std::byte* reserve(size_t size) override;
  // The path may be set between reserve() and this. Without a way to the path the packet is dropped.
  void commit(const roce::AddressVector* to) override;
  void set_path(const Path& path) override;
  bool flush() override;

 private:
  static constexpr size_t kRoom = 64 * 1024;
  static constexpr size_t kMaxRunBytes = 65000;  // of the 65,507 of IPv4
  static constexpr uint32_t kMaxSegments = 64;   // of kernels before 6.9
  static constexpr uint32_t kMaxRuns = 32;
  static constexpr size_t kControlSize = 160;

  struct Run {
    size_t first = 0;         // offset in room_
    size_t segment_size = 0;  // with the ICRC
    size_t size = 0;
    uint32_t count = 0;
    bool closed = false;
    bool ipv6 = false;
    int fd = -1;
    uint8_t hop_limit = 0;
    uint8_t traffic_class = 0;
    roce::IcrcAddresses addresses;
    sockaddr_in6 destination = {};  // or a sockaddr_in
    socklen_t destination_size = 0;
    size_t control_size = 0;
    size_t control_with_segments = 0;
    // The gaps between the messages go to the kernel, too.
    alignas(cmsghdr) char control[kControlSize] = {};
  };

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  void set_slot(uint16_t upper, uint32_t slot);
  bool address(Run& run);
  bool start_run();
  uint32_t prefix_of(const Run& run, uint32_t identification, size_t transport_size);
  void forget_prefixes();
  void write_icrc(const Run& run, uint32_t place, std::byte* packet, size_t transport_size);
  void note(const Run& run);
  bool send_all();
  bool send_singly(Run& run, bool& full);

  SendSide& side_;
  Path path_;
  bool path_changed_ = true;  // the path or the slot, since the last run began
  uint32_t addressed_ = 0;    // the run that has the path and the slot, if neither has changed
  uint32_t run_count_ = 0;
  size_t used_ = 0;
  size_t reserved_ = 0;
  // Of the last packet's destination: the slot, and the upper bits of the QPN as the packet has them.
  uint32_t slot_ = 0;
  uint16_t upper_ = 0;
  // ICRC prefixes of the last run's path, by the identification, for the last two sizes, for example those of
  // messages and of acknowledgements.
  struct Prefixes {
    size_t size = 0;     // 0: none
    uint64_t known = 0;  // a bit for each
    uint32_t of[kMaxSegments];
  };
  Prefixes prefixes_[2];
  uint32_t older_prefixes_ = 0;
  Run runs_[kMaxRuns];
  alignas(64) std::byte room_[kRoom];
};

}  // namespace dapple::soft
