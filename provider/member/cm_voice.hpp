// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What libdapple-doors.so tells the plug-in about rdma_cm under dapple-run --explain and --check.
#pragma once

#include <netinet/in.h>
#include <stdint.h>

namespace dapple::soft {

// The family of an unknown address is 0.
struct CmFailure {
  uint32_t event;  // rdma_cm_event_type
  int status;
  sockaddr_in6 source;  // or a sockaddr_in
  sockaddr_in6 destination;
};

// These functions run in the thread of the call.
struct CmVoice {
  // A function of librdmacm fails with this errno. `reason` is as Refusal::text.
  void (*refused)(const char* function, int error, const char* reason, bool is_planned);
  // Tells whether events of this type are failures.
  bool (*is_failure)(uint32_t event);
  // The program gets such an event.
  void (*failed)(const CmFailure& failure);
};

}  // namespace dapple::soft
