// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// RoCEv2 over UDP: the receiving socket is a slot's, which dappled hands out; the sending sockets are the process' own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "provider/member/daemon_link.hpp"
#include "provider/soft/wire/datagram.hpp"
#include "provider/soft/wire/fault_injector.hpp"
#include "provider/soft/wire/group_sockets.hpp"
#include "provider/soft/wire/packet/identification.hpp"
#include "provider/soft/wire/packet/received_icrcs.hpp"
#include "provider/soft/wire/pcap_writer.hpp"
#include "provider/soft/wire/udp_batch.hpp"
#include "provider/soft/wire/wire.hpp"
#include "provider/system/problem.hpp"

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
  void close_in_child() override {
    send_.sockets.close_all();
    groups_.close_in_child();
  }

  const WireCounters& counters() const { return *counters_; }

  // Replaces DAPPLE_PCAP. Call it before the first packet; the tap outlives the wire.
  void set_tap(PacketTap& tap);

 private:
  struct Room;  // for datagrams
  struct Delivery;

  UdpWire() = default;
  bool prepare(Problem& problem);
  bool prepare_instruments(Problem& problem);
  bool prepare_faults(const char* text, Problem& problem);
  void take_datagram(uint32_t index, size_t size, Delivery& delivery);
  void deliver(DatagramOrigin& origin, std::span<const std::byte> packet, ArrivalSink& sink);

  Slot slot_;
  // The bits of the slot in the word of the BTH with the destination QPN, as the packet has them.
  uint32_t slot_mask_ = 0;
  uint32_t slot_bits_ = 0;
  WireCounters own_counters_;  // of a slot that has none
  WireCounters* counters_ = nullptr;
  SendSide send_;
  GroupSockets groups_;
  PcapWriter pcap_;
  IdentificationCheck identifications_;
  ReceivedIcrcs icrcs_;
  std::unique_ptr<Room> room_;
  // The kernel reports hop limits and traffic classes, which takes a tenth of its time.
  std::atomic<bool> shows_class_{false};
  // A call that asks for more datagrams than there are looks at the socket once more before it returns.
  uint32_t ask_for_ = 1;
  // Counts of the present call of receive().
  size_t delivered_ = 0;
  size_t delivered_bytes_ = 0;
  std::unique_ptr<FaultInjector> faults_;  // null: none
};

}  // namespace dapple::soft
