// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/cm_reasons.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <sys/socket.h>

#include "provider/common/cm_refusals.hpp"
#include "provider/preload/real_dlsym.hpp"

namespace dapple::preload {

const char* reason_of_address(const sockaddr* address) {
  if (address == nullptr) return "the address is null.\nGive an address, with its family and its port.";
  if (address->sa_family == AF_IB) {
    return "the address is one of InfiniBand (AF_IB), and the devices of this program are RoCE.\n"
           "Give an IP address of a device, with the family AF_INET or AF_INET6.";
  }
  if (address->sa_family == AF_INET || address->sa_family == AF_INET6) return kNoReason;
  return "the address has a family that librdmacm does not know.\n"
         "Set sin_family to AF_INET, or sin6_family to AF_INET6, and clear the other members first.";
}

bool wants_infiniband(const rdma_cm_id& id, const sockaddr* source) {
  return source != nullptr && source->sa_family == AF_IB && id.route.addr.src_addr.sa_family == AF_UNSPEC;
}

const char* reason_of_domain(const rdma_cm_id* id, const ibv_pd* pd) {
  if (id->verbs == nullptr) {
    return "the id has no device yet.\n"
           "Bind it to an address of a device, or wait for RDMA_CM_EVENT_ADDR_RESOLVED before.";
  }
  if (pd != nullptr && pd->context != id->verbs) {
    return "the protection domain belongs to another open device than the id.\n"
           "Allocate it with the id's member verbs, by ibv_alloc_pd(id->verbs).";
  }
  return kNoReason;
}

const char* reason_of_qp(const rdma_cm_id* id, const ibv_qp_init_attr_ex* attr) {
  if (id->qp != nullptr) {
    return "the id has a queue pair already.\nDestroy that one by rdma_destroy_qp(), or make another id.";
  }
  const bool has_domain = attr != nullptr && (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
  return reason_of_domain(id, has_domain ? attr->pd : nullptr);
}

const char* reason_of_qp(const rdma_cm_id* id, const ibv_pd* pd, const ibv_qp_init_attr* attr) {
  if (id->qp == nullptr && attr != nullptr) {
    const auto differs = [](const void* own, const void* given) {
      return own != nullptr && given != nullptr && own != given;
    };
    if (differs(id->send_cq, attr->send_cq) || differs(id->recv_cq, attr->recv_cq)) {
      return "the attributes name another completion queue than the id has from an earlier queue pair.\n"
             "Give the same queues, or null.";
    }
    if (differs(id->srq, attr->srq)) {
      return "the attributes name another shared receive queue than the id has.\nGive the same queue, or null.";
    }
  }
  if (id->qp == nullptr) return reason_of_domain(id, pd);
  return reason_of_qp(id, nullptr);
}

const char* reason_of_srq(const rdma_cm_id* id, const ibv_pd* pd) {
  if (id->srq != nullptr) {
    return "the id has a shared receive queue already.\nDestroy that one by rdma_destroy_srq(), or make another id.";
  }
  return reason_of_domain(id, pd);
}

const char* reason_of_parameters(const rdma_cm_id* id, const rdma_conn_param* parameters) {
  if (parameters == nullptr && id->qp == nullptr) {
    return "the id has no queue pair, and the parameters are null.\n"
           "Call rdma_create_qp() first, or give parameters with the number of the program's own queue pair.";
  }
  if (parameters == nullptr) return kNoReason;
  return "responder_resources or initiator_depth is above the limit of the device.\n"
         "Give at most max_qp_rd_atom and max_qp_init_rd_atom of ibv_query_device(), or RDMA_MAX_RESP_RES and "
         "RDMA_MAX_INIT_DEPTH.";
}

const char* reason_of_answer(const rdma_cm_id* id, const rdma_conn_param* parameters) {
  const auto query = reinterpret_cast<decltype(&ibv_query_device)>(real_dlsym()(RTLD_DEFAULT, "ibv_query_device"));
  ibv_device_attr device;
  const bool is_known =
      parameters != nullptr && id->verbs != nullptr && query != nullptr && query(id->verbs, &device) == 0;
  const auto is_within = [](int asked, int most, int largest) { return asked == largest || asked <= most; };
  // Then librdmacm has asked for the attributes of the connection in vain.
  if (is_known && is_within(parameters->responder_resources, device.max_qp_rd_atom, RDMA_MAX_RESP_RES) &&
      is_within(parameters->initiator_depth, device.max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH))
    return DAPPLE_CONNECTION_MAY_BE_OVER "\nRead the events of the id, and answer a request once.";
  return reason_of_parameters(id, parameters);
}

const char* reason_of_request(int error) {
  if (error != EINVAL) return kNoReason;
  return "the listening id has an event channel of the program's, or the event is no connection request.\n"
         "Use rdma_get_request() with an id whose channel was null in rdma_create_id(), and rdma_get_cm_event() with "
         "others.";
}

const char* reason_of_group(const sockaddr* address, int error) {
  if (error == EADDRNOTAVAIL) {
    return "the id has not joined the group of this address.\nGive the address of rdma_join_multicast(), and leave "
           "once.";
  }
  return reason_of_address(address);
}

const char* reason_of_ece(const rdma_cm_id* id, const ibv_ece* ece) {
  if (ece == nullptr) return "the pointer is null.\nGive a struct ibv_ece.";
  if (id->qp == nullptr) return kNoReason;
  return "librdmacm exchanges these options itself for an id with a queue pair of rdma_create_qp().\n"
         "Call this only for a queue pair of ibv_create_qp().";
}

const char* reason_of_name(int error) {
  switch (error) {
    case EAI_NONAME:
      return "no host or service has this name.\nCompare with `getent ahosts NAME`, and give a port as a number.";
    case EAI_SERVICE:
      return "the service has no port of this kind.\nGive the port as a number.";
    case EAI_FAMILY:
    case EAI_ADDRFAMILY:
      return "the host has no address of the family in ai_family.\nSet the hints to zero, and leave the family open.";
    case EAI_AGAIN:
      return "the name server does not answer.\nTry again, or give an address.";
    default:
      return "the name is not resolved.\nSee gai_strerror(3).";
  }
}

}  // namespace dapple::preload
