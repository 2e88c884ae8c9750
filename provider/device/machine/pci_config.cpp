// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/pci_config.hpp"

namespace dapple::provider {
namespace {

// PCI Local Bus 3.0, 6.1 and 6.7; PCI Express Base 5.0, 7.5.3.4.
constexpr size_t kStatus = 0x06;
constexpr uint16_t kHasCapabilities = 1 << 4;
constexpr size_t kCapabilityPointer = 0x34;
constexpr size_t kFirstCapability = 0x40;
constexpr size_t kEndOfCapabilities = 0x100;
constexpr uint8_t kPciExpress = 0x10;
constexpr size_t kDeviceControl = 8;  // within the capability
constexpr uint16_t kEnableRelaxedOrdering = 1 << 4;
constexpr uint16_t kEnableNoSnoop = 1 << 11;

dappledv_answer answer(bool yes) {
  return yes ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_NO;
}

}  // namespace

PciOrdering parse_pci_config(const uint8_t* config, size_t size) {
  const auto word = [config](size_t at) { return static_cast<uint16_t>(config[at] | config[at + 1] << 8); };
  // A removed device returns all ones.
  if (size < kFirstCapability || word(0) == 0xffff || !(word(kStatus) & kHasCapabilities)) return {};
  size_t at = config[kCapabilityPointer] & 0xfc;
  // A bounded number, so that a circular list ends, too.
  for (size_t i = 0; i < (kEndOfCapabilities - kFirstCapability) / 4; ++i) {
    if (at < kFirstCapability || at + kDeviceControl + 2 > size || at + kDeviceControl + 2 > kEndOfCapabilities)
      return {};
    if (config[at] == kPciExpress) {
      const uint16_t control = word(at + kDeviceControl);
      return {answer(control & kEnableRelaxedOrdering), answer(control & kEnableNoSnoop)};
    }
    at = config[at + 1] & 0xfc;
  }
  return {};
}

PciOrdering read_pci_ordering(const Path& function) {
  if (function.empty()) return {};
  uint8_t config[kEndOfCapabilities];
  const Look physical = look(function + "/physfn");
  if (physical == Look::kUnreadable) return {};
  const ssize_t size =
      read_file(function + (physical == Look::kThere ? "/physfn/config" : "/config"), config, sizeof(config));
  return size < 0 ? PciOrdering() : parse_pci_config(config, static_cast<size_t>(size));
}

}  // namespace dapple::provider
