// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/overlay/entry.hpp"

#include <errno.h>
#include <stdio.h>

#include <atomic>

#include "provider/emulation.hpp"
#include "provider/keep_errno.hpp"
#include "provider/overlay/overlay.hpp"
#include "provider/query.hpp"

namespace dapple::provider {
namespace {

constexpr uint64_t kKnownFlags = DAPPLEDV_ATTACH_EMULATE;

int refuse(const ibv_context& context, const char* why) {
  static std::atomic<const char*> last_said = nullptr;
  if (last_said.exchange(why, std::memory_order_relaxed) == why) return EOPNOTSUPP;
  fprintf(stderr, "dapple: cannot attach to %.*s: %s\n", static_cast<int>(sizeof(context.device->name)),
          context.device->name, why);
  return EOPNOTSUPP;
}

// Sets the request's policy and attributes. Returns null, or the reason why there is no emulator for the device.
const char* prepare_emulator(AttachRequest& request) {
  dappledv_device_attr attr = {};
  const char* why = nullptr;
  // A context with the emulator has passed the test, and now behaves differently.
  request.policy = start_emulation(request.context, !fill_if_emulated(request.context, &attr), &why);
  if (request.policy == nullptr) return why;
  fill_emulated_attr(request.attr);
  return nullptr;
}

}  // namespace

int attach_loaded(ibv_context* context, uint64_t flags) noexcept {
  const KeepErrno keep;
  AttachRequest request = {context, flags, {}, nullptr, {}};
  int error = EINVAL;
  if ((flags & ~kKnownFlags) == 0) {
    error = query_device(this_machine(), context, nullptr, &request.attr);
  }
  if (error == 0) {
    const char* why = nullptr;
    if ((flags & DAPPLEDV_ATTACH_EMULATE) != 0) why = prepare_emulator(request);
    request.library = loaded_verbs_library();
    error = why == nullptr ? attach(request, &why) : EOPNOTSUPP;
    if (error == EOPNOTSUPP) error = refuse(*context, why);
  }
  return error;
}

}  // namespace dapple::provider
