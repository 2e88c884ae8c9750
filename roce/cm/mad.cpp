// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/mad.hpp"

#include <concepts>
#include <cstring>
#include <type_traits>

#include "roce/packet/big_endian.hpp"

namespace dapple::roce::cm {

namespace {

constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kClass = 7;
constexpr uint8_t kClassVersion = 2;
constexpr uint8_t kMethodSend = 3;
constexpr size_t kModifier = 20;  // of the attribute, from the begin of the MAD

// Each message's layout stands once, in fields(); a Reader and a Writer go through it. Offsets are from the end of the
// MAD's header, bits are counted from the most significant one, as in IBTA's tables.
class Reader {
 public:
  explicit Reader(const std::byte* body) : body_(body) {}

  template <typename Value>
  void bits(size_t at, unsigned first, unsigned width, Value& value) const {
    const unsigned octet = static_cast<unsigned>(body_[at]);
    value = static_cast<Value>(octet >> (8 - first - width) & ((1U << width) - 1));
  }
  void octet(size_t at, uint8_t& value) const { value = static_cast<uint8_t>(body_[at]); }
  template <typename Value>
  void two(size_t at, Value& value) const {
    value = static_cast<Value>(load_be16(body_ + at));
  }
  void three(size_t at, uint32_t& value) const {
    value = static_cast<uint32_t>(load_be16(body_ + at)) << 8 | static_cast<uint32_t>(body_[at + 2]);
  }
  void four(size_t at, uint32_t& value) const { value = load_be32(body_ + at); }
  void eight(size_t at, uint64_t& value) const { value = load_be64(body_ + at); }
  // 24 bits, an octet behind each of three fields of 24 bits.
  void vendor(size_t at, uint32_t& value) const {
    const auto part = [&](size_t number) { return static_cast<uint32_t>(body_[at + 4 * number]); };
    value = part(0) << 16 | part(1) << 8 | part(2);
  }
  void flow_label(size_t at, uint32_t& value) const { value = load_be32(body_ + at) >> 12; }
  template <typename Array>
  void bytes(size_t at, Array& value) const {
    std::memcpy(value.data(), body_ + at, value.size());
  }

 private:
  const std::byte* body_;
};

class Writer {
 public:
  explicit Writer(std::byte* body) : body_(body) {}

  template <typename Value>
  void bits(size_t at, unsigned first, unsigned width, const Value& value) const {
    const unsigned cut = static_cast<unsigned>(value) & ((1U << width) - 1);
    body_[at] |= static_cast<std::byte>(cut << (8 - first - width));
  }
  void octet(size_t at, uint8_t value) const { body_[at] = static_cast<std::byte>(value); }
  template <typename Value>
  void two(size_t at, const Value& value) const {
    store_be16(body_ + at, static_cast<uint16_t>(value));
  }
  void three(size_t at, uint32_t value) const {
    store_be16(body_ + at, static_cast<uint16_t>(value >> 8));
    body_[at + 2] = static_cast<std::byte>(value);
  }
  void four(size_t at, uint32_t value) const { store_be32(body_ + at, value); }
  void eight(size_t at, uint64_t value) const { store_be64(body_ + at, value); }
  void vendor(size_t at, uint32_t value) const {
    for (size_t i = 0; i < 3; i++) body_[at + 4 * i] = static_cast<std::byte>(value >> (16 - 8 * i));
  }
  // 20 bits, before the packet rate.
  void flow_label(size_t at, uint32_t value) const { store_be32(body_ + at, value << 12); }
  template <typename Array>
  void bytes(size_t at, const Array& value) const {
    std::memcpy(body_ + at, value.data(), value.size());
  }

 private:
  std::byte* body_;
};

template <typename Type, typename Message>
concept Is = std::same_as<std::remove_const_t<Type>, Message>;

template <typename Io>
void fields(const Io& io, Is<Req> auto& m) {
  io.four(0, m.comm_id);
  io.three(5, m.ece.vendor);
  io.eight(8, m.service_id);
  io.eight(16, m.ca_guid);
  io.four(28, m.qkey);
  io.three(32, m.qpn);
  io.octet(35, m.responder_resources);
  io.octet(39, m.initiator_depth);
  io.bits(43, 0, 5, m.remote_response_timeout);
  io.bits(43, 5, 2, m.service);
  io.bits(43, 7, 1, m.flow_control);
  io.three(44, m.psn);
  io.bits(47, 0, 5, m.local_response_timeout);
  io.bits(47, 5, 3, m.retry_count);
  io.two(48, m.pkey);
  io.bits(50, 0, 4, m.mtu);
  io.bits(50, 4, 1, m.rdc_exists);
  io.bits(50, 5, 3, m.rnr_retry_count);
  io.bits(51, 0, 4, m.max_cm_retries);
  io.bits(51, 4, 1, m.srq);
  io.bits(51, 5, 3, m.extended_service);
  io.two(52, m.local_lid);
  io.two(54, m.remote_lid);
  io.bytes(56, m.local_gid);
  io.bytes(72, m.remote_gid);
  io.flow_label(88, m.flow_label);
  io.bits(91, 2, 6, m.packet_rate);
  io.octet(92, m.traffic_class);
  io.octet(93, m.hop_limit);
  io.bits(94, 0, 4, m.service_level);
  io.bits(94, 4, 1, m.subnet_local);
  io.bits(95, 0, 5, m.ack_timeout);
  io.bytes(140, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<Mra> auto& m) {
  io.four(0, m.comm_id);
  io.four(4, m.remote_comm_id);
  io.bits(8, 0, 2, m.subject);
  io.bits(9, 0, 5, m.service_timeout);
  io.bytes(10, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<Rej> auto& m) {
  io.four(0, m.comm_id);
  io.four(4, m.remote_comm_id);
  io.bits(8, 0, 2, m.subject);
  io.bits(9, 0, 7, m.info_size);
  io.two(10, m.reason);
  io.bytes(12, m.info);
  io.bytes(84, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<Rep> auto& m) {
  io.four(0, m.comm_id);
  io.four(4, m.remote_comm_id);
  io.four(8, m.qkey);
  io.three(12, m.qpn);
  io.three(16, m.eecn);
  io.three(20, m.psn);
  io.vendor(15, m.ece.vendor);
  io.octet(24, m.responder_resources);
  io.octet(25, m.initiator_depth);
  io.bits(26, 0, 5, m.target_ack_delay);
  io.bits(26, 5, 2, m.failover_accepted);
  io.bits(26, 7, 1, m.flow_control);
  io.bits(27, 0, 3, m.rnr_retry_count);
  io.bits(27, 3, 1, m.srq);
  io.eight(28, m.ca_guid);
  io.bytes(36, m.private_data);
}

template <typename Io, typename Message>
requires(Is<Message, Rtu> || Is<Message, Drep>) void fields(const Io& io, Message& m) {
  io.four(0, m.comm_id);
  io.four(4, m.remote_comm_id);
  io.bytes(8, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<Dreq> auto& m) {
  io.four(0, m.comm_id);
  io.four(4, m.remote_comm_id);
  io.three(8, m.remote_qpn);
  io.bytes(12, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<SidrReq> auto& m) {
  io.four(0, m.request_id);
  io.two(4, m.pkey);
  io.eight(8, m.service_id);
  io.bytes(16, m.private_data);
}

template <typename Io>
void fields(const Io& io, Is<SidrRep> auto& m) {
  io.four(0, m.request_id);
  io.bits(4, 0, 8, m.status);
  io.octet(5, m.info_size);
  io.three(8, m.qpn);
  io.eight(12, m.service_id);
  io.four(20, m.qkey);
  io.bytes(24, m.info);
  io.bytes(96, m.private_data);
}

template <typename Message>
concept HasEce = requires(Message message) {
  message.ece;
};

template <typename Message>
void read_fields(const MadView& view, Message& message) {
  fields(Reader(view.body), message);
  if constexpr (HasEce<Message>) message.ece.options = view.modifier;
}

template <typename Message>
Mad make(Attribute attribute, uint64_t transaction, const Message& message) {
  Mad mad{};
  mad[0] = std::byte{kBaseVersion};
  mad[1] = std::byte{kClass};
  mad[2] = std::byte{kClassVersion};
  mad[3] = std::byte{kMethodSend};
  store_be64(mad.data() + 8, transaction);
  store_be16(mad.data() + 16, static_cast<uint16_t>(attribute));
  if constexpr (HasEce<Message>) store_be32(mad.data() + kModifier, message.ece.options);
  fields(Writer(mad.data() + kMadHeaderSize), message);
  return mad;
}

}  // namespace

MadError open_mad(std::span<const std::byte> bytes, MadView& view) {
  if (bytes.size() != kMadSize) return MadError::kSize;
  if (bytes[0] != std::byte{kBaseVersion}) return MadError::kVersion;
  if (bytes[1] != std::byte{kClass} || bytes[2] != std::byte{kClassVersion}) return MadError::kClass;
  if (bytes[3] != std::byte{kMethodSend}) return MadError::kMethod;
  const uint16_t attribute = load_be16(bytes.data() + 16);
  if (attribute < static_cast<uint16_t>(Attribute::kReq) || attribute > static_cast<uint16_t>(Attribute::kApr))
    return MadError::kAttribute;
  view = {.body = bytes.data() + kMadHeaderSize,
          .attribute = static_cast<Attribute>(attribute),
          .transaction = load_be64(bytes.data() + 8),
          .modifier = load_be32(bytes.data() + kModifier)};
  return MadError::kNone;
}

void read(const MadView& view, Req& message) {
  read_fields(view, message);
}
void read(const MadView& view, Mra& message) {
  read_fields(view, message);
}
void read(const MadView& view, Rej& message) {
  read_fields(view, message);
}
void read(const MadView& view, Rep& message) {
  read_fields(view, message);
}
void read(const MadView& view, Rtu& message) {
  read_fields(view, message);
}
void read(const MadView& view, Dreq& message) {
  read_fields(view, message);
}
void read(const MadView& view, Drep& message) {
  read_fields(view, message);
}
void read(const MadView& view, SidrReq& message) {
  read_fields(view, message);
}
void read(const MadView& view, SidrRep& message) {
  read_fields(view, message);
}

Mad make_mad(uint64_t transaction, const Req& message) {
  return make(Attribute::kReq, transaction, message);
}
Mad make_mad(uint64_t transaction, const Mra& message) {
  return make(Attribute::kMra, transaction, message);
}
Mad make_mad(uint64_t transaction, const Rej& message) {
  return make(Attribute::kRej, transaction, message);
}
Mad make_mad(uint64_t transaction, const Rep& message) {
  return make(Attribute::kRep, transaction, message);
}
Mad make_mad(uint64_t transaction, const Rtu& message) {
  return make(Attribute::kRtu, transaction, message);
}
Mad make_mad(uint64_t transaction, const Dreq& message) {
  return make(Attribute::kDreq, transaction, message);
}
Mad make_mad(uint64_t transaction, const Drep& message) {
  return make(Attribute::kDrep, transaction, message);
}
Mad make_mad(uint64_t transaction, const SidrReq& message) {
  return make(Attribute::kSidrReq, transaction, message);
}
Mad make_mad(uint64_t transaction, const SidrRep& message) {
  return make(Attribute::kSidrRep, transaction, message);
}

}  // namespace dapple::roce::cm
