// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The answer of a RoCE node to a ping, intact or changed on its way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "roce/cm/mad.hpp"
#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"
#include "tests/roce-support/crc32.hpp"
#include "tools/dapple-info/ping/question.hpp"

namespace dapple::test {

inline uint32_t icrc_between(const info::Gid16& source, const info::Gid16& destination, uint16_t source_port,
                             uint16_t identification, std::span<const std::byte> transport) {
  roce::IcrcAddresses addresses;
  addresses.ipv6 = !info::is_ipv4(source);
  const long from = addresses.ipv6 ? 0 : 12;
  std::copy(source.begin() + from, source.end(), addresses.source);
  std::copy(destination.begin() + from, destination.end(), addresses.destination);
  addresses.source_port = source_port;
  addresses.identification = identification;
  return roce::icrc_of(roce::icrc_prefix(addresses, transport.size(), roce::test::crc32), transport, roce::test::crc32);
}

// True if the ICRC is right for the addresses that these ends see.
inline bool whole(std::span<const std::byte> packet, const info::Gid16& source, const info::Gid16& destination,
                  uint16_t source_port) {
  const auto transport = packet.first(packet.size() - roce::kIcrcSize);
  uint32_t received;
  std::memcpy(&received, packet.data() + transport.size(), sizeof received);
  return received == icrc_between(source, destination, source_port, 0, transport);
}

// Empty if the packet is not a question. `source_port`, `identification`: the values that the ICRC covers.
inline std::vector<std::byte> answer_to(std::span<const std::byte> question, const info::Gid16& source,
                                        const info::Gid16& destination, uint16_t source_port,
                                        uint16_t identification = 0) {
  roce::Packet packet;
  roce::cm::MadView view;
  if (question.size() <= roce::kIcrcSize ||
      roce::parse(question.first(question.size() - roce::kIcrcSize), packet) != roce::ParseError::kNone ||
      packet.headers.destination_qpn != roce::cm::kGsiQpn ||
      roce::cm::open_mad(packet.payload, view) != roce::cm::MadError::kNone ||
      view.attribute != roce::cm::Attribute::kSidrReq) {
    return {};
  }
  roce::cm::SidrReq request;
  roce::cm::read(view, request);
  roce::cm::SidrRep reply;
  reply.request_id = request.request_id;
  reply.service_id = request.service_id;
  reply.status = roce::cm::SidrStatus::kUnsupported;
  const roce::cm::Mad mad = roce::cm::make_mad(view.transaction, reply);
  std::vector<std::byte> answer(roce::kMaxHeaderSize);
  answer.resize(roce::write_headers(packet.headers, answer));
  answer.insert(answer.end(), mad.begin(), mad.end());
  const uint32_t icrc = icrc_between(source, destination, source_port, identification, answer);
  const auto* bytes = reinterpret_cast<const std::byte*>(&icrc);
  answer.insert(answer.end(), bytes, bytes + sizeof icrc);
  return answer;
}

}  // namespace dapple::test
