// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Attributes of queue pairs.
#include <errno.h>
#include <string.h>

#include <cassert>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/network/port_mtu.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/frame_port.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/transport/qp_publication.hpp"
#include "provider/soft/transport/shown_qp.hpp"
#include "provider/soft/verbs/queue_pairs/modify_refusals.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"
#include "provider/soft/verbs/queue_pairs/xrc_handles.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft::verbs {
namespace {

static_assert(uint32_t{roce::kState} == IBV_QP_STATE && uint32_t{roce::kDestinationQpn} == IBV_QP_DEST_QPN);
static_assert(uint32_t{roce::kAddress} == IBV_QP_AV && uint32_t{roce::kQkey} == IBV_QP_QKEY);
static_assert(uint32_t{roce::kSendPsn} == IBV_QP_SQ_PSN && uint32_t{roce::kReceivePsn} == IBV_QP_RQ_PSN);
static_assert(static_cast<int>(roce::QpState::kError) == IBV_QPS_ERR);
static_assert(static_cast<int>(roce::QpState::kRts) == IBV_QPS_RTS);

constexpr uint32_t kKnown = (roce::kDestinationQpn << 1) - 1;
// Of raw packets alone. The engine does not know it.
constexpr uint32_t kRateLimit = IBV_QP_RATE_LIMIT;

// IBTA 10.2.5: such a Q_Key needs a privilege. The kernel asks for CAP_NET_RAW, since Linux 6.17 in the user namespace
// of the device's network namespace; a socket for frames needs the same.
constexpr uint32_t kPrivilegedQkey = 0x8000'0000;

int check_qkey(uint32_t qkey) {
  OwnedFd socket;
  if ((qkey & kPrivilegedQkey) == 0 || open_frames(socket) != EPERM) return 0;
  return refuse(EPERM,
                "qkey is 0x%x, whose highest bit needs the capability CAP_NET_RAW, and the process lacks it.\n"
                "Choose a Q_Key below 0x80000000, or run the program as root.",
                qkey);
}

// The engine leaves these to the host: port, P_Key, address, MTU. `path` and `source` change for kAddress only.
int check(Qp& qp, const ibv_qp_attr& attr, uint32_t mask, Path& path, GidHold& source) {
  const uint32_t known = qp.raw == nullptr ? kKnown : kKnown | kRateLimit;
  if (const uint32_t refused = mask & (~known | roce::kAlternatePath | roce::kCapabilities); refused != 0) {
    return refuse(EINVAL,
                  "attr_mask has %s, and the device has neither alternate paths nor queues that change their size.\n"
                  "Leave these bits out.",
                  attribute_names(refused).c_str());
  }
  if ((mask & roce::kPathMigration) != 0 && attr.path_mig_state != IBV_MIG_MIGRATED) {
    return refuse(EINVAL,
                  "path_mig_state is %d, and the device has no alternate paths.\n"
                  "Set path_mig_state to IBV_MIG_MIGRATED, or leave IBV_QP_PATH_MIG_STATE out.",
                  attr.path_mig_state);
  }
  if ((mask & roce::kPkeyIndex) != 0 && attr.pkey_index != 0) {
    return refuse(EINVAL, "pkey_index is %u, and the table of P_Keys has one entry, at 0.\nSet pkey_index to 0.",
                  attr.pkey_index);
  }
  if ((mask & roce::kPort) != 0 && attr.port_num != 1) {
    return refuse(EINVAL, "port_num is %u, and the device has one port, number 1.\nSet port_num to 1.", attr.port_num);
  }
  if ((mask & roce::kQkey) != 0) {
    if (const int error = check_qkey(attr.qkey); error != 0) return error;
  }
  if ((mask & kRateLimit) != 0) {
    const bool enters = (mask & roce::kState) != 0;
    const auto state = enters ? attr.qp_state : static_cast<ibv_qp_state>(qp.state.load());
    if (const int error = check_rate(attr.rate_limit, state); error != 0) return error;
  }
  const DeviceAttributes& most = qp.context->attributes();
  if ((mask & roce::kMaxRdAtomic) != 0 && attr.max_rd_atomic > most.max_qp_init_rd_atom) {
    return refuse(EINVAL,
                  "max_rd_atomic is %u, and the device's max_qp_init_rd_atom is %u.\n"
                  "Set max_rd_atomic to at most what ibv_query_device() returns there, and to at most the peer's "
                  "max_dest_rd_atomic.",
                  attr.max_rd_atomic, most.max_qp_init_rd_atom);
  }
  if ((mask & roce::kMaxDestRdAtomic) != 0 && attr.max_dest_rd_atomic > most.max_qp_rd_atom) {
    return refuse(EINVAL,
                  "max_dest_rd_atomic is %u, and the device's max_qp_rd_atom is %u.\n"
                  "Set max_dest_rd_atomic to at most what ibv_query_device() returns there.",
                  attr.max_dest_rd_atomic, most.max_qp_rd_atom);
  }
  if ((mask & roce::kAddress) != 0) {
    roce::AddressVector address;
    const int error = qp.context->check_address(attr.ah_attr, Context::Peer::kQueuePair, address, source);
    if (error != 0) return error;
    if (!qp.context->resolve(address, path)) return refusal_error(EINVAL);
  }
  if ((mask & roce::kPathMtu) != 0) {
    if (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096) {
      return refuse(EINVAL,
                    "path_mtu is %d, and enum ibv_mtu has 1 (IBV_MTU_256) to 5 (IBV_MTU_4096).\n"
                    "Set path_mtu to a constant of enum ibv_mtu, not to a number of bytes.",
                    attr.path_mtu);
    }
    DeviceInfo info;
    const int error = qp.context->look_up(info);
    if (error != 0) return error;
    // Packets that do not fit would be lost silently.
    if (const ibv_mtu active = roce_mtu(info.netdev_mtu); attr.path_mtu > active) {
      return refuse(
          EINVAL,
          "path_mtu is %s, and the port's active_mtu is %s, because the MTU of %.16s is %u and headers need up "
          "to %u bytes.\nSet path_mtu to the lesser active_mtu of both ports, or raise the MTU of both network "
          "interfaces to %u.",
          mtu_name(attr.path_mtu), mtu_name(active), info.netdev, info.netdev_mtu, kHeaderRoom,
          mtu_bytes(attr.path_mtu) + kHeaderRoom);
    }
  }
  return 0;
}

roce::QpAttributes engine_attributes(const DeviceAttributes& device, const ibv_qp_attr& attr, uint32_t mask) {
  roce::QpAttributes attributes;
  attributes.state = static_cast<roce::QpState>(attr.qp_state);
  attributes.current_state = static_cast<roce::QpState>(attr.cur_qp_state);
  attributes.notify_drained = attr.en_sqd_async_notify != 0;
  attributes.access = attr.qp_access_flags;
  // Peers have no right to operations that the device lacks.
  if (device.atomics == kAtomicsNone) attributes.access &= ~uint32_t{roce::kRemoteAtomic};
  attributes.qkey = attr.qkey;
  if ((mask & roce::kPathMtu) != 0) attributes.path_mtu = mtu_bytes(attr.path_mtu);
  attributes.timeout = attr.timeout;
  attributes.retry_count = attr.retry_cnt;
  attributes.rnr_retry = attr.rnr_retry;
  attributes.min_rnr_timer = attr.min_rnr_timer;
  attributes.receive_psn = attr.rq_psn;
  attributes.send_psn = attr.sq_psn;
  attributes.max_rd_atomic = attr.max_rd_atomic;
  attributes.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  attributes.destination_qpn = attr.dest_qp_num;
  return attributes;
}

ibv_mtu mtu_of(uint32_t bytes) {
  for (int mtu = IBV_MTU_256; mtu < IBV_MTU_4096; ++mtu) {
    if (mtu_bytes(static_cast<ibv_mtu>(mtu)) == bytes) return static_cast<ibv_mtu>(mtu);
  }
  return IBV_MTU_4096;
}

// The transport of the queue pair's packets after the change, if it becomes another one.
ChosenTransport choose_transport(Qp& qp, const ibv_qp_attr& attr, uint32_t mask, Path& path) {
  Transports& transports = qp.runtime->transports();
  const bool datagrams = qp.init.qp_type == IBV_QPT_UD;
  if (datagrams && (mask & roce::kState) != 0 && attr.qp_state == IBV_QPS_RTR) {
    return transports.choose_for_datagrams();
  }
  if (datagrams || (mask & roce::kAddress) == 0) return {};
  path.destination_qpn = (mask & roce::kDestinationQpn) != 0 ? attr.dest_qp_num : qp.transport.path.destination_qpn;
  return transports.choose(path);
}

// After a reset no earlier request is left, and no completion of one: the program could take it for a completion of the
// new connection. The drivers of most NICs drop both, too.
void start_again(Qp& qp) {
  qp.own_receives.clear();
  qp.send_cq->queue.forget(qp.qpn);
  qp.recv_cq->queue.forget(qp.qpn);
  if (qp.layers.announced_sends != nullptr) qp.layers.announced_sends->end();
  if (qp.layers.announced_receives != nullptr) qp.layers.announced_receives->end();
  if (qp.xrc != nullptr) qp.xrc->receives.reset();
}

// The kernel leaves out what the other end of XRC has, and programs rely on it (perftest).
uint32_t mask_of_half(ibv_qp_type type, uint32_t mask) {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return mask & ~uint32_t{roce::kMaxDestRdAtomic | roce::kMinRnrTimer};
    case IBV_QPT_XRC_RECV:
      return mask & ~uint32_t{roce::kMaxRdAtomic | roce::kRetryCount | roce::kRnrRetry};
    default:
      return mask;
  }
}

// False if the engine refuses. The queue pair takes `path` together with an address. If `transport` has a row, or after
// a reset, the queue pair takes `transport`, and `transport` becomes the one that the queue pair no longer uses:
// packets on two transports would overtake each other.
bool change(Qp& qp, const ibv_qp_attr& attr, uint32_t mask, const Path& path, ChosenTransport& transport) {
  EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kState);
  if (!qp.engine->modify(engine_attributes(qp.context->attributes(), attr, mask), mask & ~kRateLimit)) {
    turn.ends_by(EngineTurn::End::kWake);
    refuse_modify(qp, attr, mask);
    return false;
  }
  const bool reset = qp.engine->state() == roce::QpState::kReset;
  if ((mask & roce::kAddress) != 0) {
    qp.transport.path = path;
    qp.address.vector = attr.ah_attr;
  }
  if (transport.row != 0 || reset) {
    std::swap(qp.transport.ring, transport.ring);
    std::swap(qp.transport.row, transport.row);
  }
  // A ring has a row, and a reset queue pair has neither.
  assert(qp.transport.ring == nullptr || qp.transport.row != 0);
  assert(!reset || qp.transport.ring == nullptr);
  if ((mask & kRateLimit) != 0) qp.raw->pacer.set(attr.rate_limit);
  if (reset && qp.raw != nullptr) qp.raw->pacer.set(0);
  if ((mask & roce::kPkeyIndex) != 0) qp.address.pkey_index = attr.pkey_index;
  if ((mask & roce::kPort) != 0) qp.address.port = attr.port_num;
  qp.transport.path.source_qpn = qp.qpn;
  qp.transport.path.destination_qpn = qp.engine->attributes().destination_qpn;
  if (reset) start_again(qp);
  if (qp.layers.peers_packets != nullptr) {
    if ((mask & roce::kDestinationQpn) != 0) qp.layers.peers_packets->meet_peer();
    if ((mask & roce::kSendPsn) != 0) qp.layers.peers_packets->begin(qp.engine->attributes().send_psn);
  }
  qp.shown.show(row_of(qp));
  return true;
}

// As mlx5. 0, or the errno of a refusal.
int check_has_queues(const Qp& qp) {
  if (qp.raw == nullptr || qp.raw->table == nullptr) return 0;
  return refuse(
      EOPNOTSUPP,
      "queue pair 0x%x has receive side scaling, so it has no state and no attributes: the work queues of its "
      "table have them.\nCall ibv_modify_wq() for each.",
      qp.qpn);
}

}  // namespace

// DEVIATION of the kernel, where each handle modifies and tells the whole queue pair.
int refuse_elsewhere(const Qp& qp) {
  return refuse(EOPNOTSUPP,
                "queue pair 0x%x is in another process, and only that process can modify or query it.\n"
                "Make the call in the process that has made the queue pair.",
                qp.qpn);
}

int modify_qp(ibv_qp* ibv, ibv_qp_attr* attr, int attr_mask) {
  if (!usable(ibv->context)) return refuse_child();
  const CancelGuard whole;
  Qp& qp = meant_by(*ours<Qp>(ibv));
  if (is_elsewhere(qp)) return refuse_elsewhere(qp);
  if (const int error = check_has_queues(qp); error != 0) return error;
  const uint32_t mask = mask_of_half(qp.init.qp_type, static_cast<uint32_t>(attr_mask));
  if ((mask & roce::kState) != 0 && static_cast<unsigned>(attr->qp_state) > IBV_QPS_ERR) {
    return refuse(EINVAL, "qp_state is %d, which is no state.\nSet qp_state to a constant of enum ibv_qp_state.",
                  attr->qp_state);
  }
  Path path;
  GidHold source;
  const int error = check(qp, *attr, mask, path, source);
  if (error != 0) return error;
  const std::lock_guard modifying(qp.modifying);
  // Packets that a peer sent before it disconnected have arrived by now: its last acknowledgements must count.
  const bool ends = (mask & roce::kState) != 0 && (attr->qp_state == IBV_QPS_ERR || attr->qp_state == IBV_QPS_RESET);
  if (ends) qp.runtime->catch_up();
  Transports& transports = qp.runtime->transports();
  revoke_qp(qp, transports.publication());
  ChosenTransport transport = choose_transport(qp, *attr, mask, path);
  const bool done = change(qp, *attr, mask, path, transport);
  // As in the kernel, a reset queue pair keeps its source until it gets another one.
  if (done && (mask & roce::kAddress) != 0) qp.address.source = std::move(source);
  publish_qp(qp, transports.publication());
  transports.leave(transport);
  return done ? 0 : refusal_error(EINVAL);
}

int query_qp(ibv_qp* ibv, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  if (!usable(ibv->context)) return refuse_child();
  Qp& qp = meant_by(*ours<Qp>(ibv));
  if (is_elsewhere(qp)) return refuse_elsewhere(qp);
  if (const int error = check_has_queues(qp); error != 0) return error;
  const BiasedLock lock(qp.mutex);
  const roce::QpAttributes now = qp.engine->attributes();
  *attr = {};
  attr->qp_state = static_cast<ibv_qp_state>(qp.engine->state());
  attr->cur_qp_state = attr->qp_state;
  attr->path_mtu = mtu_of(now.path_mtu);
  attr->path_mig_state = IBV_MIG_MIGRATED;
  attr->qkey = now.qkey;
  attr->rq_psn = now.receive_psn;
  attr->sq_psn = now.send_psn;
  attr->dest_qp_num = now.destination_qpn;
  attr->qp_access_flags = now.access;
  attr->cap = qp.init.cap;
  attr->ah_attr = qp.address.vector;
  attr->pkey_index = qp.address.pkey_index;
  attr->sq_draining = now.draining ? 1 : 0;
  attr->en_sqd_async_notify = now.notify_drained ? 1 : 0;
  attr->max_rd_atomic = now.max_rd_atomic;
  attr->max_dest_rd_atomic = now.max_dest_rd_atomic;
  attr->min_rnr_timer = now.min_rnr_timer;
  attr->port_num = qp.address.port;
  attr->timeout = now.timeout;
  attr->retry_cnt = now.retry_count;
  attr->rnr_retry = now.rnr_retry;
  if (qp.raw != nullptr) attr->rate_limit = qp.raw->pacer.rate();
  *init = qp.init;
  return 0;
}

}  // namespace dapple::soft::verbs
