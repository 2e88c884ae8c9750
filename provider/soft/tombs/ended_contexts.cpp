// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/ended_contexts.hpp"

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/tombs/tombs.hpp"

namespace dapple::soft::tombs {

bool has_ended(const ibv_context* context) {
  return Tombs::get().report_if_ended(context, "ibv_close_device");
}

void end_context(const ibv_context* context) {
  Tombs::get().add(context, {.name = check::format("the open device %s", context->device->name),
                             .verb = "ibv_close_device",
                             .places = {{"closed by ibv_close_device", check::here()}}});
}

void forget_context(const ibv_context* context) {
  Tombs::get().remove(context);
}

}  // namespace dapple::soft::tombs
