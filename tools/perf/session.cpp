// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/session.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <vector>

#include "tools/perf/failure.hpp"

namespace dapple::perf {
namespace {

constexpr DAT_COUNT kAsyncQueue = 8;
constexpr DAT_COUNT kMaxListed = 128;

}  // namespace

bool Session::try_open(const std::string& name, DAT_RETURN& result) {
  if (name.size() >= DAT_NAME_MAX_LENGTH) throw Failure("the name of the IA is too long");
  async_evd_ = DAT_HANDLE_NULL;
  std::string copy = name;  // the interface takes no constant
  result = dat_ia_open(copy.data(), kAsyncQueue, &async_evd_, &ia_);
  if (result == DAT_SUCCESS) name_ = name;
  return result == DAT_SUCCESS;
}

void Session::open_first() {
  std::vector<DAT_PROVIDER_INFO> infos(kMaxListed);
  std::vector<DAT_PROVIDER_INFO*> list;
  list.reserve(infos.size());
  for (DAT_PROVIDER_INFO& info : infos) list.push_back(&info);
  DAT_COUNT count = 0;
  check(dat_registry_list_providers(kMaxListed, &count, list.data()), "dat_registry_list_providers",
        "is dat.conf readable?");
  DAT_RETURN result = DAT_PROVIDER_NOT_FOUND;
  for (DAT_COUNT i = 0; i < std::min(count, kMaxListed); ++i) {
    const DAT_PROVIDER_INFO& info = infos[static_cast<size_t>(i)];
    if (info.dapl_version_major == 2 && !info.is_thread_safe && try_open(info.ia_name, result)) return;
  }
  throw Failure(fmt::format("no IA opens ({}); 'dapple-info --dat' says why", text_of(result)));
}

Session::Session(const std::string& ia_name) {
  DAT_RETURN result = DAT_SUCCESS;
  if (ia_name.empty()) {
    open_first();
  } else if (!try_open(ia_name, result)) {
    throw Failure(
        fmt::format("cannot open the IA {}: {}; 'dapple-info --dat' lists those there are", ia_name, text_of(result)));
  }
  try {
    check(dat_ia_query(ia_, &async_evd_, DAT_IA_FIELD_ALL, &attr_, DAT_PROVIDER_FIELD_ALL, &provider_attr_),
          "dat_ia_query", "the provider does not answer");
    check(dat_pz_create(ia_, &pz_), "dat_pz_create", "the device has no protection domain left");
  } catch (...) {
    (void)dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG);
    throw;
  }
}

// What was not freed before goes with the IA.
Session::~Session() {
  (void)dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG);
}

int Session::family() const {
  return attr_.ia_address_ptr ? attr_.ia_address_ptr->sa_family : AF_UNSPEC;
}

std::string Session::address() const {
  const sockaddr* address = attr_.ia_address_ptr;
  if (!address) return {};
  char text[NI_MAXHOST];
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

}  // namespace dapple::perf
