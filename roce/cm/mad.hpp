// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The messages of InfiniBand connection management as values: datagrams of 256 bytes between QP 1 and QP 1. Codec only;
// manager.hpp has the state machines. Fields are in host byte order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dapple::roce::cm {

inline constexpr size_t kMadSize = 256;
inline constexpr size_t kMadHeaderSize = 24;
inline constexpr uint32_t kGsiQpn = 1;
inline constexpr uint32_t kGsiQkey = 0x80010000;

using Mad = std::array<std::byte, kMadSize>;
using Gid = std::array<uint8_t, 16>;
template <size_t Size>
using PrivateData = std::array<std::byte, Size>;

// IBTA table 105.
enum class Attribute : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1A,
};

// IBTA 12.6.7.2. The reasons that this side sends or that a consumer uses; the field takes any number.
enum class RejectReason : uint16_t {
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidCommId = 6,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kConsumer = 28,
};

// IBTA 12.6.6 and 12.6.7: the message that an MRA or a REJ is about.
enum class Subject : uint8_t { kReq = 0, kRep = 1, kOther = 2 };

// IBTA table 106.
enum class Service : uint8_t { kReliable = 0, kUnreliable = 1, kReliableDatagram = 2, kExtended = 3 };

// Enhanced connection establishment (ECE): what the programs tell each other about their vendor's options. IBTA gives
// it the field Vendor ID, and the attribute modifier in the header. All zero: nothing.
struct Ece {
  uint32_t vendor = 0;  // 24 bits
  uint32_t options = 0;

  bool operator==(const Ece&) const = default;
};

// IBTA table 106. Times are exponents: 4.096 µs * 2^n. The alternate path is written as zero and not read.
struct Req {
  uint32_t comm_id = 0;
  uint64_t service_id = 0;
  uint64_t ca_guid = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t remote_response_timeout = 20;  // for the passive side, to answer the REQ
  Service service = Service::kReliable;
  bool flow_control = false;
  uint32_t psn = 0;
  uint8_t local_response_timeout = 20;  // for the active side, to answer the REP
  uint8_t retry_count = 7;
  uint16_t pkey = 0xFFFF;
  uint8_t mtu = 3;  // enum ibv_mtu
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 7;
  uint8_t max_cm_retries = 15;
  bool srq = false;
  uint8_t extended_service = 0;
  // RoCE has no LIDs: this is the permissive LID, as on every route over a router.
  uint16_t local_lid = 0xFFFF;
  uint16_t remote_lid = 0xFFFF;
  Gid local_gid{};
  Gid remote_gid{};
  uint32_t flow_label = 0;
  uint8_t packet_rate = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint8_t service_level = 0;
  bool subnet_local = false;
  uint8_t ack_timeout = 17;
  Ece ece{};
  PrivateData<92> private_data{};

  bool operator==(const Req&) const = default;
};

// IBTA table 107.
struct Mra {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  Subject subject = Subject::kReq;
  uint8_t service_timeout = 0;
  PrivateData<222> private_data{};

  bool operator==(const Mra&) const = default;
};

// IBTA table 108.
struct Rej {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  Subject subject = Subject::kReq;
  uint8_t info_size = 0;  // as sent: may exceed info's size
  RejectReason reason = RejectReason::kConsumer;
  PrivateData<72> info{};
  PrivateData<148> private_data{};

  bool operator==(const Rej&) const = default;
};

// IBTA table 110.
struct Rep {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;
  uint32_t eecn = 0;
  uint32_t psn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;
  uint8_t failover_accepted = 0;
  bool flow_control = false;
  uint8_t rnr_retry_count = 7;
  bool srq = false;
  uint64_t ca_guid = 0;
  Ece ece{};
  PrivateData<196> private_data{};

  bool operator==(const Rep&) const = default;
};

// IBTA table 111.
struct Rtu {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  PrivateData<224> private_data{};

  bool operator==(const Rtu&) const = default;
};

// IBTA table 112.
struct Dreq {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t remote_qpn = 0;
  PrivateData<220> private_data{};

  bool operator==(const Dreq&) const = default;
};

// IBTA table 113.
struct Drep {
  uint32_t comm_id = 0;
  uint32_t remote_comm_id = 0;
  PrivateData<224> private_data{};

  bool operator==(const Drep&) const = default;
};

// IBTA table 119.
struct SidrReq {
  uint32_t request_id = 0;
  uint16_t pkey = 0xFFFF;
  uint64_t service_id = 0;
  PrivateData<216> private_data{};

  bool operator==(const SidrReq&) const = default;
};

// IBTA table 121.
enum class SidrStatus : uint8_t { kValid = 0, kUnsupported = 1, kRejected = 2, kNoQp = 3 };

// IBTA table 120.
struct SidrRep {
  uint32_t request_id = 0;
  SidrStatus status = SidrStatus::kValid;
  uint8_t info_size = 0;  // as sent: may exceed info's size
  uint32_t qpn = 0;
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  PrivateData<72> info{};
  PrivateData<136> private_data{};

  bool operator==(const SidrRep&) const = default;
};

// In the order in which they are checked.
enum class MadError : uint8_t {
  kNone,
  kSize,       // other than 256 bytes
  kVersion,    // a base version other than 1
  kClass,      // another management class, or a class version other than 2
  kMethod,     // other than Send
  kAttribute,  // none that connection management has
};

struct MadView {
  const std::byte* body = nullptr;  // behind the header, 232 bytes of the datagram
  Attribute attribute{};
  uint64_t transaction = 0;
  uint32_t modifier = 0;
};

// Every byte may be hostile. `view` points into `bytes` afterwards.
MadError open_mad(std::span<const std::byte> bytes, MadView& view);

// The caller has checked view.attribute. Any bytes give values within their fields' widths.
void read(const MadView& view, Req& message);
void read(const MadView& view, Mra& message);
void read(const MadView& view, Rej& message);
void read(const MadView& view, Rep& message);
void read(const MadView& view, Rtu& message);
void read(const MadView& view, Dreq& message);
void read(const MadView& view, Drep& message);
void read(const MadView& view, SidrReq& message);
void read(const MadView& view, SidrRep& message);

// The whole datagram. Bits beyond a field's width are cut off.
Mad make_mad(uint64_t transaction, const Req& message);
Mad make_mad(uint64_t transaction, const Mra& message);
Mad make_mad(uint64_t transaction, const Rej& message);
Mad make_mad(uint64_t transaction, const Rep& message);
Mad make_mad(uint64_t transaction, const Rtu& message);
Mad make_mad(uint64_t transaction, const Dreq& message);
Mad make_mad(uint64_t transaction, const Drep& message);
Mad make_mad(uint64_t transaction, const SidrReq& message);
Mad make_mad(uint64_t transaction, const SidrRep& message);

}  // namespace dapple::roce::cm
