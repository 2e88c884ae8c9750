// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/refused_handle.hpp"

#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>
#include <string>

#include "ibverbs-glue/explains.hpp"
#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/registry/common/log.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::registry {
namespace {

std::string about(DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) {
  if (!handle) return "the handle is DAT_HANDLE_NULL";
  char text[64];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<uintptr_t>(handle));
  if (subtype == DAT_INVALID_HANDLE_IA) return std::string("no IA with the handle ") + text + " is open";
  return std::string("the handle ") + text + " is no object of this version of DAT";
}

void report(const char* function, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype, DAT_RETURN refused) {
  const char* type = nullptr;
  const char* more = nullptr;
  if (!spell(refused, &type, &more)) return;
  const std::string text =
      std::string(function) + "() fails with " + type + ", " + more + ": " + about(handle, subtype) + ".";
  const std::string remedy = "Pass the handle that the object's call has stored, if that call has succeeded. See " +
                             std::string(function) + "(3dat).";
  // The provider has brought libdapple with it. A registry alone needs no RDMA library.
  using ReportFailure = int (*)(const char*, const char*);
  const auto report_failure = reinterpret_cast<ReportFailure>(::dlsym(RTLD_DEFAULT, "dappledv_report_failure"));
  if (report_failure && report_failure(text.c_str(), remedy.c_str()) != 0) return;
  log(LogType::kError, text + " " + remedy);
}

}  // namespace

DAT_RETURN refuse_handle(const char* function, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) noexcept {
  const DAT_RETURN refused = error(DAT_INVALID_HANDLE, subtype);
  if (!explains()) return refused;
  const NoCancel whole;
  try {
    report(function, handle, subtype, refused);
  } catch (...) {
    // Without memory there is no line.
  }
  return refused;
}

}  // namespace dapple::registry
