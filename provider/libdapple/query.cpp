// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/query.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/device/capabilities.hpp"
#include "provider/device/machine/device_location.hpp"
#include "provider/device/machine/firmware.hpp"
#include "provider/device/machine/pci_config.hpp"
#include "provider/device/machine/persistence.hpp"
#include "provider/device/override.hpp"
#include "provider/device/refusal.hpp"
#include "provider/device/software_device.hpp"
#include "provider/overlay/overlay.hpp"

namespace dapple::provider {

int refuse_persistence(const char* value) noexcept {
  return refuse(EINVAL, "DAPPLE_PERSISTENCE is \"%.60s\".\nMend or remove the variable.", value);
}

Machine this_machine() {
  // A program may set them between two queries.
  const Settings now = Settings::of_environment();
  return {coherence::cpu_back_end().cpu, this_architecture(), Path(), now.coherence, now.persistence};
}

void describe(const Machine& machine, const Path& ibdev, const Overrides& overrides, const DeviceAnswers& answers,
              dappledv_device_attr& attr) {
  // A software device has no place in the machine. Under dapple-run a look at its files would have dappled render them.
  const DeviceLocation location = answers.software_driver ? DeviceLocation() : find_device(ibdev);
  Facts facts;
  facts.environment = overrides.environment;
  facts.parameter = overrides.parameter;
  facts.software_device = answers.software_driver;
  facts.bounced = answers.bounced;
  facts.registration = answers.registration;
  facts.firmware = read_firmware(machine.root, location);
  facts.architecture = machine.architecture;
  const PciOrdering ordering = facts.software_device ? PciOrdering() : read_pci_ordering(location.pci_function);

  attr = {};
  fill_coherence(decide(facts), machine.cpu, attr);
  fill_cpu(machine.cpu, attr);
  fill_persistence(machine.cpu, machine.root, overrides.persistence, attr);
  attr.pci_relaxed_ordering = static_cast<uint8_t>(ordering.relaxed_ordering);
  attr.pci_no_snoop = static_cast<uint8_t>(ordering.no_snoop);
}

int query_device(const Machine& machine, ibv_context* context, const char* parameter,
                 dappledv_device_attr* attr) noexcept {
  if (context == nullptr || context->device == nullptr)
    return refuse(EINVAL, "context is no open device.\nPass the context of ibv_open_device().");
  if (attr == nullptr) return refuse(EINVAL, "attr is NULL.\nPass the address of a struct dappledv_device_attr.");
  const ErrnoGuard keep;

  Overrides overrides;
  if (machine.coherence != nullptr) {
    static std::atomic<bool> said = false;
    const char* name = context->device->name;
    const Override found = find_override(machine.coherence, {name, strnlen(name, sizeof(context->device->name))});
    if (found.error != nullptr) {
      complain_once(said, kCoherenceVariable, machine.coherence, found.error);
      return refuse(EINVAL, "DAPPLE_COHERENCE is \"%.60s\": %s.\nMend or remove the variable.", machine.coherence,
                    found.error);
    }
    overrides.environment = found.coherence;
  }
  if (!read_persistence(machine.persistence, overrides.persistence)) return refuse_persistence(machine.persistence);
  if (parameter != nullptr) {
    overrides.parameter = parse_coherence_word(parameter);
    if (!overrides.parameter)
      return refuse(EINVAL, "coherence is \"%.60s\".\nPass \"coherent\", \"cpu\" or \"io\", or NULL.", parameter);
  }
  if (fill_if_emulated(context, attr)) return 0;

  const Path ibdev(context->device->ibdev_path);
  DeviceAnswers answers;
  answers.software_driver = kernel_says_software_driver(context->cmd_fd);
  answers.bounced = bounces_dma(context);
  // Memory is registered only where the answer can matter.
  const bool decided = overrides.environment || overrides.parameter || answers.software_driver || answers.bounced;
  if (!decided) {
    char release[128];
    answers.registration = try_registration(context, read_line(machine.root + "/proc/sys/kernel/osrelease", release));
  }
  describe(machine, ibdev, overrides, answers, *attr);
  return 0;
}

}  // namespace dapple::provider
