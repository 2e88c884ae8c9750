// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/session.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/dat/ports.hpp"
#include "tools/dat/silence.hpp"
#include "tools/perf/common/failure.hpp"

namespace dapple::perf {
namespace {

constexpr DAT_COUNT kAsyncQueue = 8;
constexpr DAT_COUNT kMaxListed = 128;

// The names that the registry lists for this kind of program.
std::vector<std::string> listed() {
  std::vector<DAT_PROVIDER_INFO> infos(kMaxListed);
  std::vector<DAT_PROVIDER_INFO*> list;
  list.reserve(infos.size());
  for (DAT_PROVIDER_INFO& info : infos) list.push_back(&info);
  DAT_COUNT count = 0;
  check(dat_registry_list_providers(kMaxListed, &count, list.data()), "dat_registry_list_providers",
        "is dat.conf readable?");
  std::vector<std::string> names;
  for (DAT_COUNT i = 0; i < std::min(count, kMaxListed); ++i) {
    const DAT_PROVIDER_INFO& info = infos[static_cast<size_t>(i)];
    if (info.dapl_version_major == 2 && !info.is_thread_safe) names.emplace_back(info.ia_name);
  }
  return names;
}

// "::ffff:10.9.0.1" for the eight groups in which the provider prints a GID; the same text if it has another form.
std::string shortened(const std::string& gid) {
  unsigned char raw[sizeof(in6_addr)];
  char text[INET6_ADDRSTRLEN];
  return inet_pton(AF_INET6, gid.c_str(), raw) == 1 && inet_ntop(AF_INET6, raw, text, sizeof text) ? text : gid;
}

}  // namespace

bool Session::try_open(const std::string& name, DAT_RETURN& result) {
  if (name.size() >= DAT_NAME_MAX_LENGTH) throw Failure("the name of the IA is too long");
  async_evd_ = DAT_HANDLE_NULL;
  std::string copy = name;  // the interface does not accept const
  result = dat_ia_open(copy.data(), kAsyncQueue, &async_evd_, &ia_);
  if (result == DAT_SUCCESS) name_ = name;
  return result == DAT_SUCCESS;
}

void Session::open_first() {
  const std::vector<tools::NamedPort> ports = tools::named_ports();
  std::vector<std::string> others;
  DAT_RETURN result = DAT_PROVIDER_NOT_FOUND;
  for (const std::string& name : listed()) {
    if (!tools::is_of_active_port(ports, name)) {
      others.push_back(name);
    } else if (try_open(name, result)) {
      return;
    }
  }
  // dat.conf may have dozens of lines for devices of other machines, and each would cause a message.
  const tools::Silence silence;
  for (const std::string& name : others) {
    if (try_open(name, result)) return;
  }
  throw Failure(fmt::format("no IA opens ({}); 'dapple-info --dat' shows the reason", text_of(result)));
}

void Session::open_named(const std::string& name) {
  DAT_RETURN result = DAT_SUCCESS;
  {
    // The name may be that of a device, or our own line tells which names exist.
    std::optional<tools::Silence> silence;
    if (!tools::is_name_here(name)) silence.emplace();
    if (try_open(name, result)) return;
  }
  if (DAT_GET_TYPE(result) == DAT_PROVIDER_NOT_FOUND) {
    const std::vector<tools::NamedPort> ports = tools::named_ports();
    const std::string ia = tools::ia_of(ports, name);
    if (ia.empty()) {
      const std::string names = tools::names_of(ports);
      throw Failure(fmt::format("no IA, RDMA device or network device {} exists; {}", name,
                                names.empty() ? "'dapple-info' shows what this machine has" : "there are: " + names));
    }
    if (try_open(ia, result)) return;
  }
  throw Failure(fmt::format("cannot open the IA {}: {}; 'dapple-info --dat' shows the reason", name, text_of(result)));
}

Session::Session(const std::string& name) {
  name.empty() ? open_first() : open_named(name);
  try {
    check(dat_ia_query(ia_, &async_evd_, DAT_IA_FIELD_ALL, &attr_, DAT_PROVIDER_FIELD_ALL, &provider_attr_),
          "dat_ia_query", "the provider does not answer");
    check(dat_pz_create(ia_, &pz_), "dat_pz_create", "the device has no protection domain left");
  } catch (...) {
    (void)dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG);
    throw;
  }
}

// Closing the IA frees the remaining objects.
Session::~Session() {
  (void)dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG);
}

int Session::family() const {
  return attr_.ia_address_ptr ? attr_.ia_address_ptr->sa_family : AF_UNSPEC;
}

std::string Session::attribute(const char* name) const {
  for (int i = 0; i < provider_attr_.num_provider_specific_attr; ++i) {
    const DAT_NAMED_ATTR& attr = provider_attr_.provider_specific_attr[i];
    if (std::string_view(attr.name) == name) return attr.value;
  }
  return {};
}

LocalPort Session::port() const {
  return {attribute("DAT_IB_DEVICE_NAME"), attribute("DAT_IB_PORT_NUMBER"), address(),
          shortened(attribute("DAT_IB_GID")), attribute("DAT_IB_TRANSPORT_MTU")};
}

std::string Session::address() const {
  const sockaddr* address = attr_.ia_address_ptr;
  if (!address) return {};
  char text[NI_MAXHOST];
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

}  // namespace dapple::perf
