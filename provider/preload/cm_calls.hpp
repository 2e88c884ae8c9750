// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For dapple-run --explain and --check: sees which calls of librdmacm return an error to the program.
#pragma once

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

namespace dapple::preload {

// A call, for as long as it runs. librdmacm calls functions of its own, so only the outermost call of a thread counts.
class CmCall {
 public:
  explicit CmCall(const char* function);
  ~CmCall();
  CmCall(const CmCall&) = delete;
  CmCall& operator=(const CmCall&) = delete;

  // True if the call is reported as a failure with `error`, for which nothing else has been reported since it began.
  bool is_unexplained(int error) const;
  // See CmCallWatcher::failed. errno stays.
  void report(int error, const char* reason) const;
  // The call has succeeded. Reports it if it tells the peer of no queue pair.
  void look_for_qp(const rdma_cm_id& id, const rdma_conn_param* parameters) const;
  // The call has given the program this event.
  void look_for_end(const rdma_cm_event& event) const;
  // The same for errno and this address, unless it is explained. A librdmacm that sees no InfiniBand refuses AF_IB by
  // itself, with EINVAL: if the call needs InfiniBand, errno becomes ENODEV, as the kernel's.
  void report_address(const sockaddr* address, bool needs_infiniband) const;

 private:
  const char* function_;
  unsigned reported_ = 0;
  bool is_watched_ = false;
};

// librdmacm's function, behind those of this library, for this caller. Null with ENOSYS in errno if there is none.
void* next_cm_function(const char* name, const char* version, const void* caller);

}  // namespace dapple::preload

#define DAPPLE_NEXT_CM(function, version)  \
  reinterpret_cast<decltype(&(function))>( \
      dapple::preload::next_cm_function(#function, version, __builtin_return_address(0)))
