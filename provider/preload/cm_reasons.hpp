// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Why librdmacm itself refuses a call. Each text is a sentence, and after a line break the remedy.
#pragma once

#include <rdma/rdma_cma.h>

namespace dapple::preload {

inline constexpr char kNoReason[] = "librdmacm refuses it, and gives no other reason.\nSee rdma_cm(7).";
inline constexpr char kNoEvent[] =
    "the pointer to the event is null.\nGive the address of a pointer, and acknowledge the event that came.";
inline constexpr char kEstablishes[] =
    "librdmacm sends this message itself for an id with a queue pair of rdma_create_qp().\n"
    "Call rdma_establish() only for a queue pair of ibv_create_qp().";
inline constexpr char kMigrates[] =
    "the id is synchronous already, and the new channel is null.\nGive an event channel, or leave the id as it is.";

const char* reason_of_address(const sockaddr* address);
// The id would have to use this address of InfiniBand as its source. Without InfiniBand the kernel then answers ENODEV.
bool wants_infiniband(const rdma_cm_id& id, const sockaddr* source);
// For an id of a queue pair or a shared receive queue. `pd` may be null.
const char* reason_of_domain(const rdma_cm_id* id, const ibv_pd* pd);
const char* reason_of_qp(const rdma_cm_id* id, const ibv_qp_init_attr_ex* attr);
const char* reason_of_qp(const rdma_cm_id* id, const ibv_pd* pd, const ibv_qp_init_attr* attr);
const char* reason_of_srq(const rdma_cm_id* id, const ibv_pd* pd);
const char* reason_of_parameters(const rdma_cm_id* id, const rdma_conn_param* parameters);
// The same for rdma_accept().
const char* reason_of_answer(const rdma_cm_id* id, const rdma_conn_param* parameters);
const char* reason_of_request(int error);
const char* reason_of_group(const sockaddr* address, int error);
const char* reason_of_ece(const rdma_cm_id* id, const ibv_ece* ece);
// `error`: of getaddrinfo(3).
const char* reason_of_name(int error);

}  // namespace dapple::preload
