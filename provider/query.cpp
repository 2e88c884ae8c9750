// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/query.hpp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "provider/attr_fields.hpp"
#include "provider/capabilities.hpp"
#include "provider/device_place.hpp"
#include "provider/firmware.hpp"
#include "provider/keep_errno.hpp"
#include "provider/overlay/overlay.hpp"
#include "provider/override.hpp"
#include "provider/pci_config.hpp"
#include "provider/persistence.hpp"
#include "provider/software_device.hpp"

namespace dapple::provider {
namespace {

void complain_once(const char* value, const char* error) {
  static std::atomic<bool> said = false;
  if (said.exchange(true, std::memory_order_relaxed)) return;
  fprintf(stderr, "dapple: %s=%s: %s\n", kCoherenceVariable, value, error);
}

}  // namespace

Machine this_machine() {
  return {coherence::cpu_back_end().cpu, this_architecture(), Path(), secure_getenv(kCoherenceVariable)};
}

void describe(const Machine& machine, const Path& ibdev, const Facts& overrides, const DeviceAnswers& answers,
              dappledv_device_attr& attr) {
  const DevicePlace place = find_device(ibdev);
  Facts facts = overrides;
  facts.software_device = answers.software_driver || sysfs_shows_no_hardware(ibdev.c_str());
  facts.registration = answers.registration;
  facts.firmware = read_firmware(machine.root, place);
  facts.architecture = machine.architecture;
  const PciOrdering ordering = facts.software_device ? PciOrdering() : read_pci_ordering(place.pci_function);

  attr = {};
  attr.comp_mask = kAllFields;
  fill_decision(decide(facts), machine.cpu, attr);
  fill_capabilities(answers.capabilities, attr);
  fill_persistence(machine.cpu, machine.root, attr);
  attr.pci_relaxed_ordering = static_cast<uint8_t>(ordering.relaxed_ordering);
  attr.pci_no_snoop = static_cast<uint8_t>(ordering.no_snoop);
}

int query_device(const Machine& machine, ibv_context* context, const char* parameter,
                 dappledv_device_attr* attr) noexcept {
  if (context == nullptr || context->device == nullptr || attr == nullptr) return EINVAL;
  const KeepErrno keep;

  Facts overrides;
  if (machine.environment != nullptr) {
    const char* name = context->device->name;
    const Override found = find_override(machine.environment, {name, strnlen(name, sizeof(context->device->name))});
    if (found.error != nullptr) {
      complain_once(machine.environment, found.error);
      return EINVAL;
    }
    overrides.environment = found.coherence;
  }
  if (parameter != nullptr) {
    overrides.parameter = parse_coherence_word(parameter);
    if (!overrides.parameter) return EINVAL;
  }
  if (fill_if_emulated(context, attr)) return 0;

  const Path ibdev(context->device->ibdev_path);
  DeviceAnswers answers;
  ibv_device_attr_ex capabilities;
  if (query_capabilities(context, capabilities)) answers.capabilities = &capabilities;
  answers.software_driver = kernel_says_software_driver(context->cmd_fd);
  // Memory is registered only where the answer can matter.
  const bool decided =
      overrides.environment || overrides.parameter || answers.software_driver || sysfs_shows_no_hardware(ibdev.c_str());
  if (!decided) {
    char release[128];
    answers.registration = try_registration(context, read_line(machine.root + "/proc/sys/kernel/osrelease", release));
  }
  dappledv_device_attr described;
  describe(machine, ibdev, overrides, answers, described);
  copy_fields(described, attr->comp_mask, attr);
  return 0;
}

}  // namespace dapple::provider
