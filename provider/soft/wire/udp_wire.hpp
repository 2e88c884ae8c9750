// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// RoCEv2 over UDP: the receiving socket is a slot's, which dappled hands out; the sending sockets are the process' own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "provider/member/daemon_link.hpp"
#include "provider/member/owned_fd.hpp"
#include "provider/member/problem.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/wire/identification.hpp"
#include "provider/soft/wire/pcap_writer.hpp"
#include "provider/soft/wire/udp_batch.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/icrc.hpp"

namespace dapple::soft {

// Set by the environment: DAPPLE_PCAP records packets, DAPPLE_FAULTS makes faults.
class UdpWire final : public Wire {
 public:
  // Null on failure, and `problem` has the reason. The slot outlives the wire. A program's environment is for its own
  // packets; dappled serves many programs and ignores it.
  enum class Environment { kUsed, kIgnored };
  static std::unique_ptr<UdpWire> open(const Slot& slot, Problem& problem,
                                       Environment environment = Environment::kUsed);
  ~UdpWire() override;

  // The caller deletes it, before the wire.
  SendBatch* make_batch() override;
  size_t receive(ArrivalSink& sink) override;
  int receive_fd() const override;
  void expect_datagrams() override;
  int join(const uint8_t group[16], uint32_t netdev_index) override;
  int leave(const uint8_t group[16], uint32_t netdev_index) override;
  bool instrumented() const override { return send_.tap != nullptr || faults_ != nullptr; }
  void close_in_child() override { send_.sockets.close_all(); }

  const WireCounters& counters() const { return *counters_; }

  // Replaces DAPPLE_PCAP. Call it before the first packet; the tap outlives the wire.
  void set_tap(PacketTap& tap);

 private:
  struct Origin;  // of a datagram: addresses, hop limit, ...
  struct Room;    // for datagrams

  UdpWire() = default;
  bool prepare(Problem& problem);
  bool prepare_instruments(Problem& problem);
  bool prepare_faults(const char* text, Problem& problem);
  void take_datagram(uint32_t index, size_t size, ArrivalSink& sink);
  void pass(Origin& origin, std::span<std::byte> packet, ArrivalSink& sink);
  void deliver(Origin& origin, std::span<const std::byte> packet, ArrivalSink& sink);
  void deliver_delayed(ArrivalSink& sink);
  int32_t identification_of(uint32_t received, uint32_t expected, size_t transport_size, uint32_t place);
  uint32_t prefix_of(const roce::IcrcAddresses& addresses, size_t transport_size);
  int membership(const uint8_t group[16], uint32_t netdev_index, bool join);

  Slot slot_;
  WireCounters own_counters_;  // of a slot that has none
  WireCounters* counters_ = nullptr;
  SendSide send_;
  PcapWriter pcap_;
  IdentificationCheck identifications_;
  // Packets of a long message repeat the same identification at the same place.
  struct Explained {
    uint32_t difference = 0;  // between two ICRCs
    int32_t identification = 0;
    size_t transport_size = 0;
  };
  static constexpr uint32_t kMaxMerged = 64;
  Explained explained_[kMaxMerged];
  // ICRC prefixes of the last packets of some sizes.
  struct Prefix {
    roce::IcrcAddresses addresses;
    size_t transport_size = 0;
    uint32_t value = 0;
  };
  static constexpr size_t kPrefixes = 4;
  Prefix prefixes_[kPrefixes];
  std::unique_ptr<Room> room_;
  // The kernel reports hop limits and traffic classes, which takes a tenth of its time.
  std::atomic<bool> shows_class_{false};
  // A call that asks for more datagrams than there are looks at the socket once more before it returns.
  uint32_t ask_for_ = 1;
  // Counts of the present call of receive().
  size_t delivered_ = 0;
  size_t delivered_bytes_ = 0;
  // With faults only.
  std::unique_ptr<FaultSource> faults_;
  std::unique_ptr<DelayQueue> delayed_;
  OwnedFd timer_;
  OwnedFd poll_;  // the socket and the timer
};

}  // namespace dapple::soft
