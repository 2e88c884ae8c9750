// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// samples-pcap FILE: writes packets of every kind over IPv4 and IPv6 to FILE, and their fields, as `dissector` asks
// tshark for them, to the standard output: a line for each packet, a tab between two fields.
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "roce/packet/big_endian.hpp"
#include "tests/roce-support/pcap.hpp"
#include "tests/roce-support/samples.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string hex(uint64_t value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%0*" PRIx64, digits, value);
  return text.data();
}

std::string raw(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += hex(static_cast<const uint8_t*>(bytes)[i], 2).substr(2);
  return text;
}

std::string if_present(bool present, const std::string& text) {
  return present ? text : "";
}

// In the order of `fields` in the script.
void print_fields(const Headers& h, uint32_t icrc) {
  const OpcodeInfo& info = opcode_info(h.opcode);
  const bool reth = info.has(kHasReth);
  const bool aeth = info.has(kHasAeth);
  const bool atomic = info.has(kHasAtomicEth);
  const bool deth = info.has(kHasDeth);
  std::array<std::byte, 4> invalidated{};
  store_be32(invalidated.data(), h.invalidated_rkey);
  const std::string fields[] = {
      number(h.opcode),
      number(h.solicited),
      number(h.migrated),
      number(h.pad),
      "0",
      number(h.pkey),
      hex(h.destination_qpn, 6),
      number(h.ack_request),
      number(h.psn),
      if_present(reth || atomic, hex(reth ? h.reth.address : h.atomic.address, 16)),
      if_present(reth || atomic, hex(reth ? h.reth.rkey : h.atomic.rkey, 8)),
      if_present(reth, number(h.reth.length)),
      if_present(atomic, number(h.atomic.swap_or_add)),
      if_present(atomic, number(h.atomic.compare)),
      if_present(aeth, number(h.aeth.syndrome)),
      if_present(aeth, number(h.aeth.msn)),
      if_present(info.has(kHasAtomicAckEth), number(h.atomic_original)),
      if_present(info.has(kHasImmediate), raw(&h.immediate, 4)),
      if_present(info.has(kHasIeth), raw(invalidated.data(), 4)),
      if_present(deth, hex(h.deth.qkey, 16)),
      if_present(deth, hex(h.deth.source_qpn, 8)),
      hex(icrc, 8),
  };
  for (const std::string& field : fields) std::printf("%s%s", &field == fields ? "" : "\t", field.c_str());
  std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  PcapFile file(argv[1]);
  uint64_t time_ns = 0;
  for (const bool ipv6 : {false, true}) {
    for (const uint8_t opcode : known_opcodes()) {
      for (const size_t size : {0, 1, 4, 1022, 4096}) {
        const Bytes payload = sample_payload(opcode, size);
        if (payload.size() != size && size != 0) continue;
        IcrcAddresses addresses = sample_addresses(ipv6);
        addresses.identification = static_cast<uint16_t>(size * 17);
        Headers headers = sample_headers(opcode);
        headers.pad = pad_of(payload.size());
        const Bytes frame = frame_of(addresses, transport_of(headers, payload));
        file.write(++time_ns, frame);
        print_fields(headers, load_be32(frame.data() + frame.size() - kIcrcSize));
      }
    }
  }
  return file.close() ? 0 : 1;
}
