// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/question.hpp"

#include <algorithm>
#include <cstring>

#include "roce/cm/mad.hpp"
#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::info {
namespace {

using roce::cm::kGsiQkey;
using roce::cm::kGsiQpn;

// IBTA A3.2.3.3: a local service id that no service uses.
constexpr uint64_t kNobodysService = 0x02'64'61'70'70'6C'65'00;
// A queue pair number in the slot that is never used, and above those of all other nodes.
constexpr uint32_t kNobodysQpn = 0xFFFFFE;
constexpr size_t kIpv4HeaderSize = 20, kIpv6HeaderSize = 40, kUdpHeaderSize = 8;
// The identifications that a sender with "don't fragment" uses: 0, or a segment's index.
constexpr int32_t kMaxSegments = 127;

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320U : 0);
    table[i] = value;
  }
  return table;
}

uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  for (size_t i = 0; i < size; i++) seed = seed >> 8 ^ kTable[(seed ^ static_cast<uint32_t>(bytes[i])) & 0xFF];
  return seed;
}

uint32_t icrc(const Gid16& source, const Gid16& destination, uint16_t source_port,
              std::span<const std::byte> transport) {
  roce::IcrcAddresses addresses;
  addresses.ipv6 = !is_ipv4(destination);
  const size_t from = addresses.ipv6 ? 0 : 12;
  std::copy(source.begin() + static_cast<long>(from), source.end(), addresses.source);
  std::copy(destination.begin() + static_cast<long>(from), destination.end(), addresses.destination);
  addresses.source_port = source_port;
  return roce::icrc_of(roce::icrc_prefix(addresses, transport.size(), crc32), transport, crc32);
}

std::vector<std::byte> packet_of(const Ends& ends, uint16_t source_port, const roce::Headers& headers,
                                 std::span<const std::byte> payload) {
  std::vector<std::byte> packet(roce::kMaxHeaderSize);
  packet.resize(roce::write_headers(headers, packet));
  packet.insert(packet.end(), payload.begin(), payload.end());
  const uint32_t check = icrc(ends.local, ends.peer, source_port, packet);
  const auto* bytes = reinterpret_cast<const std::byte*>(&check);
  packet.insert(packet.end(), bytes, bytes + sizeof check);
  return packet;
}

// True if the ICRC is right for a packet that went from source to destination.
bool fits(uint32_t received, const Gid16& source, const Gid16& destination, uint16_t source_port,
          std::span<const std::byte> transport, int32_t most) {
  const uint32_t expected = icrc(source, destination, source_port, transport);
  if (received == expected) return true;
  if (!is_ipv4(destination)) return false;
  const int32_t identification = roce::icrc_identification(received, expected, transport.size());
  return identification >= 0 && identification <= most;
}

bool answers(std::span<const std::byte> transport, uint32_t request_id, uint64_t transaction) {
  roce::Packet packet;
  if (roce::parse(transport, packet) != roce::ParseError::kNone) return false;
  if (packet.headers.destination_qpn != kGsiQpn || packet.headers.deth.qkey != kGsiQkey) return false;
  roce::cm::MadView view;
  if (roce::cm::open_mad(packet.payload, view) != roce::cm::MadError::kNone) return false;
  if (view.attribute != roce::cm::Attribute::kSidrRep || view.transaction != transaction) return false;
  roce::cm::SidrRep reply;
  roce::cm::read(view, reply);
  return reply.request_id == request_id;
}

}  // namespace

bool is_ipv4(const Gid16& address) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::equal(std::begin(kMapped), std::end(kMapped), address.begin());
}

std::vector<std::byte> question(const Ends& ends, uint16_t source_port, uint32_t request_id, uint64_t transaction) {
  roce::Headers headers;
  headers.opcode = roce::opcode_of(roce::Transport::kUd, roce::Operation::kSendOnly);
  headers.destination_qpn = kGsiQpn;
  headers.psn = request_id & 0xFFFFFF;
  headers.deth = {kGsiQkey, kGsiQpn};
  roce::cm::SidrReq request;
  request.request_id = request_id;
  request.service_id = kNobodysService;
  return packet_of(ends, source_port, headers, roce::cm::make_mad(transaction, request));
}

std::vector<std::byte> filler(const Ends& ends, uint16_t source_port, size_t datagram_size) {
  roce::Headers headers;
  headers.opcode = roce::opcode_of(roce::Transport::kUd, roce::Operation::kSendOnly);
  headers.destination_qpn = kNobodysQpn;
  headers.deth = {kGsiQkey, kGsiQpn};
  std::byte room[roce::kMaxHeaderSize];
  const size_t others = (is_ipv4(ends.peer) ? kIpv4HeaderSize : kIpv6HeaderSize) + kUdpHeaderSize +
                        roce::write_headers(headers, room) + roce::kIcrcSize;
  const size_t payload = datagram_size > others ? (datagram_size - others) / 4 * 4 : 0;
  return packet_of(ends, source_port, headers, std::vector<std::byte>(payload));
}

Reading read_answer(std::span<const std::byte> packet, const Ends& ends, const Gid16& from, uint16_t source_port,
                    uint32_t request_id, uint64_t transaction) {
  if (packet.size() <= roce::kIcrcSize) return Reading::kForeign;
  const std::span<const std::byte> transport = packet.first(packet.size() - roce::kIcrcSize);
  if (!answers(transport, request_id, transaction)) return Reading::kForeign;
  uint32_t received;
  std::memcpy(&received, packet.data() + transport.size(), sizeof received);
  const bool same = from == ends.peer;
  if (same && fits(received, ends.peer, ends.local, source_port, transport, 0xFFFF)) return Reading::kGood;
  if (!same && fits(received, ends.peer, ends.local, source_port, transport, 0xFFFF)) return Reading::kAddress;
  // With more tries, a wrong identification would fit by chance.
  for (uint32_t port = 0; port <= 0xFFFF; port++) {
    if (fits(received, ends.peer, ends.local, static_cast<uint16_t>(port), transport, kMaxSegments)) {
      return same ? Reading::kPort : Reading::kAddress;
    }
  }
  return same ? Reading::kBadIcrc : Reading::kAddress;
}

}  // namespace dapple::info
