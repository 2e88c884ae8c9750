// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/entry.hpp"

#include <errno.h>
#include <stdio.h>

#include <atomic>

#include "provider/common/host_guards.hpp"
#include "provider/device/refusal.hpp"
#include "provider/libdapple/emulation.hpp"
#include "provider/libdapple/query.hpp"
#include "provider/overlay/overlay.hpp"

namespace dapple::provider {
namespace {

constexpr uint64_t kKnownFlags = DAPPLEDV_ATTACH_EMULATE;

int refuse_context(const ibv_context& context, const char* why) {
  static std::atomic<const char*> last_said = nullptr;
  if (last_said.exchange(why, std::memory_order_relaxed) == why) return EOPNOTSUPP;
  fprintf(stderr, "dapple: cannot attach to %.*s: %s\n", static_cast<int>(sizeof(context.device->name)),
          context.device->name, why);
  return EOPNOTSUPP;
}

// Sets the request's policy and attributes. Returns 0 or an errno as attach() does; EOPNOTSUPP also if there is no
// emulator for the device.
int prepare_emulator(AttachRequest& request, const char** why) {
  // The emulator lasts, and a call that fails changes nothing.
  if (const int error = check_attach(request, why)) return error;
  dappledv_device_attr attr = {};
  // A context with the emulator has passed the test, and now behaves differently.
  request.policy = start_emulation(request.context, !fill_if_emulated(request.context, &attr), why);
  if (request.policy == nullptr) return EOPNOTSUPP;
  fill_emulated_attr(request.attr);
  return 0;
}

}  // namespace

int attach_loaded(ibv_context* context, uint64_t flags) noexcept {
  const ErrnoGuard keep;
  AttachRequest request = {context, flags, {}, nullptr, {}};
  if ((flags & ~kKnownFlags) != 0)
    return refuse(EINVAL, "flags is 0x%llx.\nPass 0 or DAPPLEDV_ATTACH_EMULATE.",
                  static_cast<unsigned long long>(flags));
  int error = query_device(this_machine(), context, nullptr, &request.attr);
  if (error == 0) {
    const char* why = nullptr;
    request.library = verbs_library_of(context);
    if ((flags & DAPPLEDV_ATTACH_EMULATE) != 0) error = prepare_emulator(request, &why);
    if (error == 0) error = attach(request, &why);
    if (error == EOPNOTSUPP) error = refuse_context(*context, why);
  }
  return error;
}

}  // namespace dapple::provider
