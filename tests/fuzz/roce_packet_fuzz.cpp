// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Runs the codec on arbitrary bytes: parse() reads none outside of them and keeps its header's promises, and
// write_headers() writes the same headers again, except reserved bits.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/roce-support/crc32.hpp"
#include "tests/roce-support/frame.hpp"
#include "tests/roce-support/samples.hpp"

namespace {

using dapple::fuzz::require;
using namespace dapple::roce;
using namespace dapple::roce::test;

void check_accepted(std::span<const std::byte> bytes, const Packet& packet) {
  const Headers& headers = packet.headers;
  require(packet.info == &opcode_info(headers.opcode) && packet.info->known);
  require(headers.pad < 4 && headers.psn <= 0xFFFFFF && headers.destination_qpn <= 0xFFFFFF);
  const size_t headers_size = kBthSize + packet.info->extended_size;
  require(headers_size + packet.payload.size() + headers.pad == bytes.size() && bytes.size() % 4 == 0);
  require(packet.payload.data() == bytes.data() + headers_size);
  require(packet.info->has(kHasPayload) || packet.payload.empty());
  require(packet.info->operation != Operation::kAtomicWrite || packet.payload.size() == 8);

  Bytes again(kMaxHeaderSize);
  require(write_headers(headers, again) == headers_size);
  again.resize(headers_size);
  again.insert(again.end(), packet.payload.begin(), packet.payload.end());
  again.resize(bytes.size());
  Packet copy;
  require(parse(again, copy) == ParseError::kNone);
  require(same_headers(copy.headers, headers));
}

// The ICRC of any bytes, and the identification inferred from it.
void check_icrc(std::span<const std::byte> bytes) {
  IcrcAddresses addresses = sample_addresses(false);
  const uint32_t zero = icrc_of(icrc_prefix(addresses, bytes.size(), crc32), bytes, crc32);
  uint32_t icrc = 0;
  std::memcpy(&icrc, bytes.data(), std::min(bytes.size(), sizeof icrc));
  const int32_t identification = icrc_identification(icrc, zero, bytes.size());
  require(identification >= -1 && identification <= 0xFFFF);
  if (identification < 0) return;
  addresses.identification = static_cast<uint16_t>(identification);
  require(icrc_of(icrc_prefix(addresses, bytes.size(), crc32), bytes, crc32) == icrc);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  Packet packet;
  if (parse(bytes, packet) == ParseError::kNone) check_accepted(bytes, packet);
  if (size > 0) check_icrc(bytes);
  return 0;
}
