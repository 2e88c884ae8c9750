// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/texts.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "provider/protocol/port_speed.hpp"

namespace dapple::face {
namespace {

constexpr uint32_t kMaxCpus = 8192;

__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace

std::string guid_text(uint64_t guid) {
  return text_of("%04x:%04x:%04x:%04x\n", static_cast<unsigned>(guid >> 48), static_cast<unsigned>(guid >> 32 & 0xFFFF),
                 static_cast<unsigned>(guid >> 16 & 0xFFFF), static_cast<unsigned>(guid & 0xFFFF));
}

std::string gid_text(const uint8_t gid[16]) {
  const auto part = [gid](int i) { return static_cast<unsigned>(gid[2 * i] << 8 | gid[2 * i + 1]); };
  return text_of("%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n", part(0), part(1), part(2), part(3), part(4), part(5),
                 part(6), part(7));
}

std::string state_text(bool up) {
  return up ? "4: ACTIVE\n" : "1: DOWN\n";
}

std::string physical_state_text(bool up) {
  return up ? "5: LinkUp\n" : "3: Disabled\n";
}

std::string rate_text(uint32_t speed, uint32_t width) {
  const soft::LaneSpeed& lane = soft::lane_speed(speed);
  const uint32_t lanes = soft::lanes_of(width);
  const uint32_t rate = lane.rate * lanes;
  return text_of("%u%s Gb/sec (%uX %s)\n", rate / 10, rate % 10 != 0 ? ".5" : "", lanes, lane.name);
}

std::string pci_speed_text(uint32_t tenths) {
  return tenths == 0 ? "Unknown\n" : text_of("%u.%u GT/s PCIe\n", tenths / 10, tenths % 10);
}

std::string number_text(uint64_t number) {
  return text_of("%" PRIu64 "\n", number);
}

std::string hexadecimal_text(uint32_t number, int digits) {
  return text_of("0x%0*x\n", digits, number);
}

std::string cpu_mask_text(const char* list) {
  uint32_t words[kMaxCpus / 32] = {};
  uint32_t used = 1;
  for (const char* at = list; *at >= '0' && *at <= '9';) {
    char* end;
    const unsigned long first = strtoul(at, &end, 10);
    const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
    for (unsigned long cpu = first; cpu <= last && cpu < kMaxCpus; cpu++) {
      words[cpu / 32] |= 1U << cpu % 32;
      if (cpu / 32 >= used) used = static_cast<uint32_t>(cpu / 32) + 1;
    }
    at = *end == ',' ? end + 1 : end;
  }
  std::string mask;
  for (uint32_t i = used; i > 0; i--) mask += text_of(i > 1 ? "%08x," : "%08x\n", words[i - 1]);
  return mask;
}

std::string pci_name(uint32_t domain, uint32_t bus, uint32_t slot, uint32_t function) {
  return text_of("%04x:%02x:%02x.%u", domain, bus, slot, function);
}

}  // namespace dapple::face
