// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/rpma.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <librpma.h>

#include <optional>

#include "tools/report/table.hpp"

namespace dapple::info {
namespace {

// The functions of librpma that are needed. Some machines with this program lack librpma.
struct Librpma {
  decltype(&rpma_utils_get_ibv_context) get_ibv_context;
  decltype(&rpma_peer_new) peer_new;
  decltype(&rpma_peer_delete) peer_delete;
  decltype(&rpma_peer_has_feature) peer_has_feature;
  decltype(&rpma_log_set_threshold) log_set_threshold;
  decltype(&rpma_err_2str) err_2str;
};

// False if the library lacks the function.
template <class Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

// Loads the library, which stays loaded. Without a value, the library cannot be used, and problem says why.
std::optional<Librpma> load(const std::string& name, std::string& problem) {
  void* library = dlopen(name.c_str(), RTLD_NOW);
  if (!library) {
    problem = fmt::format("{} cannot be loaded: {}", name, dlerror());
    return {};
  }
  Librpma out{};
  if (!find(library, "rpma_utils_get_ibv_context", out.get_ibv_context) ||
      !find(library, "rpma_peer_new", out.peer_new) || !find(library, "rpma_peer_delete", out.peer_delete) ||
      !find(library, "rpma_log_set_threshold", out.log_set_threshold) ||
      !find(library, "rpma_err_2str", out.err_2str)) {
    problem = name + " is not a librpma";
    return {};
  }
  if (!find(library, "rpma_peer_has_feature", out.peer_has_feature)) {
    problem = name + " is the original librpma, which does not report features";
    return {};
  }
  return out;
}

struct Question {
  rpma_feature feature;
  const char* title;
  const char* key;
};
constexpr Question kQuestions[] = {
    {RPMA_FEATURE_NATIVE_ATOMIC_WRITE, "native atomic write", "native_atomic_write"},
    {RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, "native flush to visibility", "native_flush_visibility"},
    {RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT, "native flush to persistence", "native_flush_persistent"},
    {RPMA_FEATURE_DIRECT_WRITE_TO_PMEM, "direct write to persistent memory", "direct_write_to_pmem"},
};

void ask(const Librpma& librpma, RpmaReport& report) {
  ibv_context* context = nullptr;
  rpma_peer* peer = nullptr;
  if (const int error = librpma.get_ibv_context(report.address.c_str(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context)) {
    report.problem = fmt::format("no RDMA device of this machine has the address: {}", librpma.err_2str(error));
    return;
  }
  report.device = ibv_get_device_name(context->device);
  if (const int error = librpma.peer_new(context, &peer)) {
    report.problem = fmt::format("librpma cannot use the device: {}", librpma.err_2str(error));
    return;
  }
  for (const Question& question : kQuestions) {
    bool has = false;
    const char* reason = "";
    if (const int error = librpma.peer_has_feature(peer, question.feature, &has, &reason)) {
      reason = librpma.err_2str(error);
    }
    report.features.push_back({question.title, question.key, has, reason});
  }
  (void)librpma.peer_delete(&peer);
}

}  // namespace

RpmaReport read_rpma(const std::string& library, const std::string& address) {
  RpmaReport report;
  report.address = address;
  const std::optional<Librpma> librpma = load(library, report.problem);
  if (!librpma) return report;
  librpma->log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);
  ask(*librpma, report);
  return report;
}

std::string rpma_for_people(const RpmaReport& report) {
  if (!report.problem.empty()) return fmt::format("librpma on {}: {}\n", report.address, report.problem);
  std::vector<std::vector<std::string>> rows{{"LIBRPMA ON " + report.address, report.device, "REASON"}};
  for (const RpmaFeature& feature : report.features) {
    rows.push_back({feature.title, feature.has ? "yes" : "no", feature.reason});
  }
  return format_table(rows);
}

Json rpma_as_json(const RpmaReport& report) {
  Json json = {{"address", report.address}, {"device", report.device}};
  for (const RpmaFeature& feature : report.features) {
    json[feature.key] = {{"has", feature.has ? "yes" : "no"}, {"reason", feature.reason}};
  }
  json["problem"] = text_or_null(report.problem);
  return json;
}

}  // namespace dapple::info
