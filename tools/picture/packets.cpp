// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/packets.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>

namespace dapple::picture {
namespace {

constexpr uint32_t kMagic = 0xA1B23C4D;  // nanoseconds, in this machine's byte order
constexpr uint32_t kLinuxCooked = 113;
constexpr size_t kCookedSize = 16;
constexpr unsigned char kOutgoing = 4;
constexpr uint32_t kMaxBytes = 65535;
constexpr uint16_t kRocePort = 4791;
constexpr size_t kUdpSize = 8;

struct FileHeader {
  uint32_t magic;
  uint16_t major;
  uint16_t minor;
  uint32_t zone;
  uint32_t accuracy;
  uint32_t most;
  uint32_t link_type;
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t size;
  uint32_t original_size;
};
static_assert(sizeof(RecordHeader) == 16);

std::string address_text(int family, const char* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family, bytes, text, sizeof text);
  return text;
}

// Sets the addresses and returns what follows the IP header; nothing for another protocol than UDP.
std::string_view behind_ip(std::string_view bytes, CapturedPacket& packet) {
  if (bytes.empty()) return {};
  const unsigned first = static_cast<unsigned char>(bytes[0]);
  if (first >> 4 == 4) {
    const size_t size = (first & 15) * size_t{4};
    if (size < 20 || bytes.size() < size || bytes[9] != IPPROTO_UDP) return {};
    packet.source = address_text(AF_INET, bytes.data() + 12);
    packet.destination = address_text(AF_INET, bytes.data() + 16);
    return bytes.substr(size);
  }
  if (first >> 4 != 6 || bytes.size() < 40 || bytes[6] != IPPROTO_UDP) return {};
  packet.source = address_text(AF_INET6, bytes.data() + 8);
  packet.destination = address_text(AF_INET6, bytes.data() + 24);
  return bytes.substr(40);
}

void dissect(std::string_view bytes, CapturedPacket& packet) {
  if (bytes.size() < kCookedSize) return;
  packet.is_sent = static_cast<unsigned char>(bytes[1]) == kOutgoing;
  std::string_view rest = behind_ip(bytes.substr(kCookedSize), packet);
  if (rest.size() < kUdpSize + roce::kIcrcSize) return;
  uint16_t port = 0;
  memcpy(&port, rest.data() + 2, sizeof port);
  if (ntohs(port) != kRocePort) return;
  rest.remove_prefix(kUdpSize);
  packet.bytes = rest;
  rest.remove_suffix(roce::kIcrcSize);
  roce::Packet parsed;
  if (roce::parse(std::as_bytes(std::span(rest)), parsed) != roce::ParseError::kNone) return;
  packet.headers = parsed.headers;
  packet.info = parsed.info;
  packet.payload_size = parsed.payload.size();
}

}  // namespace

std::vector<CapturedPacket> read_packets(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read: " + strerror(errno));
  std::vector<CapturedPacket> packets;
  if (file.peek() == std::ifstream::traits_type::eof()) return packets;
  FileHeader header = {};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || header.magic != kMagic || header.link_type != kLinuxCooked)
    throw std::runtime_error(path + " is not a capture of DAPPLE_PCAP");
  std::string bytes;
  RecordHeader record = {};
  while (file.read(reinterpret_cast<char*>(&record), sizeof record)) {
    if (record.size > kMaxBytes || record.nanoseconds >= 1'000'000'000)
      throw std::runtime_error(path + " has a malformed record after " + std::to_string(packets.size()) + " packets");
    bytes.resize(record.size);
    if (!file.read(bytes.data(), record.size)) break;
    CapturedPacket packet;
    packet.time_ns = int64_t{record.seconds} * 1'000'000'000 + record.nanoseconds;
    dissect(bytes, packet);
    packets.push_back(std::move(packet));
  }
  if (file.bad()) throw std::runtime_error(path + " cannot be read: " + strerror(errno));
  std::stable_sort(packets.begin(), packets.end(),
                   [](const CapturedPacket& one, const CapturedPacket& other) { return one.time_ns < other.time_ns; });
  return packets;
}

std::string name_of(const roce::OpcodeInfo& info) {
  constexpr const char* kNames[32] = {"SEND_FIRST",
                                      "SEND_MIDDLE",
                                      "SEND_LAST",
                                      "SEND_LAST_IMM",
                                      "SEND_ONLY",
                                      "SEND_ONLY_IMM",
                                      "WRITE_FIRST",
                                      "WRITE_MIDDLE",
                                      "WRITE_LAST",
                                      "WRITE_LAST_IMM",
                                      "WRITE_ONLY",
                                      "WRITE_ONLY_IMM",
                                      "READ_REQUEST",
                                      "READ_RESPONSE_FIRST",
                                      "READ_RESPONSE_MIDDLE",
                                      "READ_RESPONSE_LAST",
                                      "READ_RESPONSE_ONLY",
                                      "ACK",
                                      "ATOMIC_ACK",
                                      "COMPARE_SWAP",
                                      "FETCH_ADD",
                                      nullptr,
                                      "SEND_LAST_INV",
                                      "SEND_ONLY_INV",
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      nullptr,
                                      "FLUSH",
                                      "ATOMIC_WRITE",
                                      nullptr,
                                      nullptr};
  const char* const name = kNames[static_cast<size_t>(info.operation) % std::size(kNames)];
  return name == nullptr ? "unknown" : name;
}

std::string refusal_of(const CapturedPacket& packet) {
  // IBTA 9.7.5.2.1: the upper bits have the kind, the lower five of a NAK its code.
  constexpr const char* kCodes[] = {"sequence error", "invalid request", "remote access error",
                                    "remote operational error", "invalid RD request"};
  if (packet.info == nullptr || !packet.info->has(roce::kHasAeth)) return {};
  const unsigned kind = packet.headers.aeth.syndrome >> 5 & 3;
  const unsigned code = packet.headers.aeth.syndrome & 31;
  if (kind == 1) return "RNR NAK";
  if (kind != 3) return {};
  return std::string("NAK: ") + (code < std::size(kCodes) ? kCodes[code] : "unknown code");
}

}  // namespace dapple::picture
