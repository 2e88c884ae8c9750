// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The features of a peer and a connection, with the reason for each answer.
#include <librpma.h>

#include <cerrno>
#include <cstdint>

#include "ibverbs-glue/verbs.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/native.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/conn.hpp"
#include "rpma/memory/mr.hpp"
#include "rpma/memory/peer.hpp"

namespace dapple::rpma {
namespace {

struct Answer {
  bool has = false;
  const char* reason = nullptr;  // text for the user; static
};

constexpr const char* kForbidden = "DAPPLE_RPMA_NATIVE=no forbids native operations";
constexpr const char* kNotInDevice = "the device or the kernel lacks it";
constexpr const char* kNotInLibibverbs = "libibverbs or the driver cannot make a queue pair with it";

// The native operation of a feature.
struct Native {
  uint8_t bit;
  uint64_t queue_pair;  // native::kQpWith*
};

// False if the feature is not a native operation.
bool native_of(rpma_feature feature, Native& out) {
  switch (static_cast<int>(feature)) {
    case RPMA_FEATURE_NATIVE_ATOMIC_WRITE:
      out = {native::kAtomicWrite, native::kQpWithAtomicWrite};
      return true;
    case RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY:
      out = {native::kFlushVisibility, native::kQpWithFlush};
      return true;
    case RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT:
      out = {native::kFlushPersistent, native::kQpWithFlush};
      return true;
    default:
      return false;
  }
}

// The reason why the peer's device does not support an operation; null if it does.
const char* obstacle_in(const rpma_peer& peer, const Native& native) {
  if (peer.native & native.bit) return nullptr;
  return peer.native_forbidden ? kForbidden : kNotInDevice;
}

// Only making a queue pair shows which operations libibverbs knows. Returns an RPMA_E_* or 0.
int try_queue_pair(const rpma_peer& peer, uint64_t operations, bool& possible) {
  ibv_context* const context = peer.pd->context;
  verbs::Cq cq(ibv_create_cq(context, 1, nullptr, nullptr, 0));
  if (!cq) return FAILED("ibv_create_cq", errno);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  attr.pd = peer.pd.get();
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = operations;
  verbs::Qp qp(ibv_create_qp_ex(context, &attr));
  possible = qp != nullptr;
  if (!qp && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) return FAILED("ibv_create_qp_ex", errno);
  if (const int error = verbs::destroy(qp)) return FAILED("ibv_destroy_qp", error);
  if (const int error = verbs::destroy(cq)) return FAILED("ibv_destroy_cq", error);
  return 0;
}

// Bytes that the device has written to memory must survive a loss of power without further action.
Answer direct_write_of(const rpma_peer& peer) {
  switch (static_cast<int>(peer.device.attr().caches_persistent)) {
    case DAPPLEDV_ANSWER_YES:
      return {true, "the CPU's caches survive a loss of power (eADR)"};
    case DAPPLEDV_ANSWER_NO:
      return {false, "the CPU's caches do not survive a loss of power, and the device's writes may stop there (DDIO)"};
    default:
      return {false, "the kernel reports no persistent memory, or no persistence domain"};
  }
}

int refuse_feature(const char* function, rpma_feature feature) {
  return refuse(function, RPMA_E_INVAL, "feature is %d.\nPass a value of enum rpma_feature.",
                static_cast<int>(feature));
}

int answer_for(const rpma_peer& peer, rpma_feature feature, Answer& out) {
  Native native;
  if (feature == RPMA_FEATURE_DIRECT_WRITE_TO_PMEM) {
    out = direct_write_of(peer);
    return 0;
  }
  if (!native_of(feature, native)) return refuse_feature("rpma_peer_has_feature", feature);
  if (const char* obstacle = obstacle_in(peer, native)) {
    out = {false, obstacle};
    return 0;
  }
  bool possible = false;
  if (const int error = try_queue_pair(peer, native.queue_pair, possible)) return error;
  out = possible ? Answer{true, "the device, the kernel and libibverbs have it; a peer's region decides"}
                 : Answer{false, kNotInLibibverbs};
  return 0;
}

int answer_for(const rpma_conn& conn, const rpma_mr_remote* mr, rpma_feature feature, Answer& out) {
  Native native;
  if (feature == RPMA_FEATURE_DIRECT_WRITE_TO_PMEM) {
    out = conn.direct_write_to_pmem ? Answer{true, "the peer's configuration says so"}
                                    : Answer{false, "no applied configuration of the peer says so"};
    return 0;
  }
  if (!native_of(feature, native)) return refuse_feature("rpma_conn_has_feature", feature);
  if (const char* obstacle = obstacle_in(conn.peer, native)) {
    out = {false, obstacle};
  } else if (!(native.bit == native::kAtomicWrite ? conn.link.native.atomic_write != nullptr
                                                  : conn.link.native.flush != nullptr)) {
    out = {false, kNotInLibibverbs};
  } else if (!mr) {
    out = {true, "this side has it; a peer's region decides"};
  } else if (!(mr->descriptor.native & native.bit)) {
    out = {false, "the peer's descriptor of the region does not offer it"};
  } else if (native.bit == native::kAtomicWrite && mr->descriptor.address % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) {
    out = {false, "the region does not begin at a multiple of 8"};
  } else {
    out = {true, "this side and the peer have it"};
  }
  return 0;
}

int give(const Answer& answer, bool* has, const char** reason) {
  *has = answer.has;
  if (reason) *reason = answer.reason;
  return 0;
}

}  // namespace
}  // namespace dapple::rpma

using namespace dapple::rpma;

RPMA_EXPORT int rpma_peer_has_feature(const rpma_peer* peer, rpma_feature feature, bool* has, const char** reason) {
  if (!peer || !has) return refuse_null(__func__, {NAMED(peer), NAMED(has)});
  Answer answer;
  const int error = answer_for(*peer, feature, answer);
  return error ? error : give(answer, has, reason);
}

RPMA_EXPORT int rpma_conn_has_feature(const rpma_conn* conn, const rpma_mr_remote* mr, rpma_feature feature, bool* has,
                                      const char** reason) {
  if (!conn || !has) return refuse_null(__func__, {NAMED(conn), NAMED(has)});
  Answer answer;
  const int error = answer_for(*conn, mr, feature, answer);
  return error ? error : give(answer, has, reason);
}

RPMA_EXPORT int rpma_peer_cfg_set_from_platform(rpma_peer_cfg* pcfg, const rpma_peer* peer) {
  if (!pcfg || !peer) return refuse_null(__func__, {NAMED(pcfg), NAMED(peer)});
  const Answer answer = direct_write_of(*peer);
  LOG(INFO, "direct write to persistent memory: %s: %s", answer.has ? "yes" : "no", answer.reason);
  return rpma_peer_cfg_set_direct_write_to_pmem(pcfg, answer.has);
}
