// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/listener.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdio>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {
namespace {

std::string address_of(const sockaddr* address) {
  if (!address) return "unknown";
  char text[NI_MAXHOST];
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "unknown";
}

}  // namespace

Listener::Listener(Session& session, uint16_t port) : port_(port) {
  check(dat_evd_create(session.ia(), 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd_), "dat_evd_create",
        "the device has no room");
  const DAT_RETURN result = port == 0 ? dat_psp_create_any(session.ia(), &port_, evd_, DAT_PSP_CONSUMER_FLAG, &psp_)
                                      : dat_psp_create(session.ia(), port, evd_, DAT_PSP_CONSUMER_FLAG, &psp_);
  if (result == DAT_SUCCESS) return;
  (void)dat_evd_free(evd_);
  check(result, "dat_psp_create", "another server may have this port: choose one with --port");
}

Listener::~Listener() {
  (void)dat_psp_free(psp_);
  (void)dat_evd_free(evd_);
}

Client Listener::await_client(Kind kind) {
  for (;;) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    const DAT_RETURN waited = dat_evd_wait(evd_, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    if (DAT_GET_TYPE(waited) == DAT_INTERRUPTED_CALL) continue;
    check(waited, "dat_evd_wait", "is the device gone?");
    if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) continue;
    Client client;
    client.request = event.event_data.cr_arrival_event_data.cr_handle;
    DAT_CR_PARAM asked{};
    check(dat_cr_query(client.request, DAT_CR_FIELD_ALL, &asked), "dat_cr_query", "is the client gone?");
    client.address = address_of(asked.remote_ia_address_ptr);
    std::string problem;
    const auto size = static_cast<size_t>(std::max(0, asked.private_data_size));
    const auto parameters = decode_request(asked.private_data, size, kind, problem);
    if (parameters) {
      client.parameters = *parameters;
      return client;
    }
    refuse(client, "the client " + problem);
  }
}

void Listener::refuse(const Client& client, const std::string& why) {
  fmt::print(stderr, "refused {}: {}\n", client.address, why);
  auto refusal = encode_refusal(why);
  (void)dat_cr_reject(client.request, refusal.size(), refusal.data());
}

}  // namespace dapple::perf
