// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/memory/peer.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "ibverbs-glue/capabilities.hpp"
#include "ibverbs-glue/memlock.hpp"
#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/common/destroy_once.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/native.hpp"
#include "rpma/common/refusal.hpp"

namespace dapple::rpma {
namespace {

// False if DAPPLE_RPMA_NATIVE forbids native operations. An unknown word is logged and ignored.
bool native_allowed() {
  const char* word = secure_getenv("DAPPLE_RPMA_NATIVE");
  if (!word || !std::strcmp(word, "yes")) return true;
  if (!std::strcmp(word, "no")) return false;
  LOG(WARNING, "DAPPLE_RPMA_NATIVE=%s is ignored: it is neither \"yes\" nor \"no\"", word);
  return true;
}

// The reason why the device cannot be used, as text for the user; null if it can. A device that is known to be
// non-coherent needs an override: no sync call reaches its queues, which lie in the same kind of memory.
const char* obstacle_of(const dappledv_device_attr& attr) {
  if (attr.coherence == DAPPLEDV_COHERENCE_BOUNCED) {
    return "its DMA is bounced: it works on copies of memory, which no sync call updates; set "
           "DAPPLE_COHERENCE=coherent if all memory comes from ibv_alloc_buf()";
  }
  const bool known_non_coherent =
      attr.coherence == DAPPLEDV_COHERENCE_NONCOHERENT_CPU || attr.coherence == DAPPLEDV_COHERENCE_NONCOHERENT_IO;
  if (known_non_coherent && attr.certainty != DAPPLEDV_CERTAINTY_OVERRIDE) {
    return "it is not cache-coherent, but Linux verbs needs coherent queues; if its queues are coherent, set "
           "DAPPLE_COHERENCE=cpu";
  }
  if (!attr.sync_supported) {
    return "it needs cache maintenance, and this CPU or kernel gives user space no instruction for it";
  }
  return nullptr;
}

uint8_t native_of(const ibv_device_attr_ex& device) {
  unsigned found = 0;
  if (device.device_cap_flags_ex & verbs::kDeviceAtomicWrite) found |= native::kAtomicWrite;
  if (device.device_cap_flags_ex & verbs::kDeviceFlushGlobal) found |= native::kFlushVisibility;
  if (device.device_cap_flags_ex & verbs::kDeviceFlushPersistent) found |= native::kFlushPersistent;
  return static_cast<uint8_t>(found);
}

struct Memory {
  ibv_pd* pd;
  void* address;
  size_t size;
};

// The native operations that apply to a region with this usage.
uint8_t native_for(int usage, int possible) {
  unsigned found = 0;
  if (usage & RPMA_MR_USAGE_WRITE_DST) found |= native::kAtomicWrite;
  if (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) found |= native::kFlushVisibility;
  if (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) found |= native::kFlushPersistent;
  return static_cast<uint8_t>(found & static_cast<unsigned>(possible));
}

// The native operations that a device supports for memory that is not pinned.
uint8_t native_on_demand(uint32_t rc_caps) {
  unsigned found = 0;
  if (rc_caps & native::kOdpAtomicWrite) found |= native::kAtomicWrite;
  if (rc_caps & native::kOdpFlush) found |= native::kFlushAny;
  return static_cast<uint8_t>(found);
}

// native: in: the operations to try; out: those that the device supports for this memory. The device may refuse native
// flushes for memory that is not persistent, or for any memory. A Read still flushes it.
verbs::Mr reg_mr(const Memory& memory, unsigned access, uint8_t& native) {
  const uint8_t wanted = native;
  uint8_t tried = 0xff;
  verbs::Mr mr;
  for (const unsigned refused : {0U, unsigned{native::kFlushPersistent}, unsigned{native::kFlushAny}}) {
    native = static_cast<uint8_t>(wanted & ~refused);
    if (native == tried) continue;
    tried = native;
    unsigned all = access;
    if (native & native::kFlushVisibility) all |= native::kAccessFlushGlobal;
    if (native & native::kFlushPersistent) all |= native::kAccessFlushPersistent;
    // ibv_reg_mr() is a macro that checks optional access only if it is not constant.
    mr.reset(ibv_reg_mr(memory.pd, memory.address, memory.size, static_cast<int>(all)));
    if (mr) break;
  }
  return mr;
}

}  // namespace

bool is_odp_capable(uint64_t general_caps, uint32_t rc_caps) noexcept {
  constexpr uint32_t kBoth = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  return (general_caps & IBV_ODP_SUPPORT) && (rc_caps & kBoth) == kBoth;
}

unsigned access_of(int usage, bool iwarp) noexcept {
  constexpr int kRead =
      RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
  constexpr int kWritten =
      RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV;
  unsigned access = 0;
  if (usage & kRead) access |= IBV_ACCESS_REMOTE_READ;
  if (usage & kWritten) access |= IBV_ACCESS_LOCAL_WRITE;
  if (usage & RPMA_MR_USAGE_WRITE_DST) access |= IBV_ACCESS_REMOTE_WRITE;
  // On this transport the peer answers a Read by writing here.
  if (iwarp && usage & RPMA_MR_USAGE_READ_DST) access |= IBV_ACCESS_REMOTE_WRITE;
  return access;
}

verbs::Mr register_memory(const rpma_peer& peer, void* address, size_t size, int usage, uint8_t& native) noexcept {
  const unsigned access = access_of(usage, peer.iwarp);
  const Memory memory = {peer.pd.get(), address, size};
  native = native_for(usage, peer.native);
  verbs::Mr mr = reg_mr(memory, access, native);
  if (!mr && errno == EOPNOTSUPP && peer.on_demand_paging) {
    // on_demand_paging uses these bits.
    const ibv_device_attr_ex& capabilities = *peer.device.capabilities();
    native = native_for(usage, peer.native & native_on_demand(capabilities.odp_caps.per_transport_caps.rc_odp_caps));
    mr = reg_mr(memory, access | IBV_ACCESS_ON_DEMAND, native);
  }
  if (!mr) {
    const int error = errno;
    (void)FAILED("ibv_reg_mr", error);
    char why[256];
    if (verbs::explain_memlock(error, reinterpret_cast<uintptr_t>(address), size, why, sizeof why)) {
      LOG(ERROR, "%s", why);
    }
  }
  return mr;
}

}  // namespace dapple::rpma

using namespace dapple::rpma;

RPMA_EXPORT int rpma_peer_new(ibv_context* ibv_ctx, rpma_peer** peer_ptr) {
  if (!ibv_ctx || !peer_ptr) return refuse_null(__func__, {NAMED(ibv_ctx), NAMED(peer_ptr)});
  const dapple::NoCancel whole;
  std::unique_ptr<rpma_peer> peer(new (std::nothrow) rpma_peer);
  if (!peer) return refuse_memory();
  if (const int error = peer->device.open(ibv_ctx)) {
    return error == ENOMEM ? refuse_memory() : FAILED("dappledv_query_device", error);
  }
  const dappledv_device_attr& attr = peer->device.attr();
  if (const char* obstacle = obstacle_of(attr)) {
    LOG(ERROR, "%s is not used: %s", ibv_get_device_name(ibv_ctx->device), obstacle);
    return refuse(in_a_line(__func__), RPMA_E_PROVIDER, "%s is not used: %s.\nSee librpma(7).",
                  ibv_get_device_name(ibv_ctx->device), obstacle);
  }
  peer->iwarp = dapple::verbs::is_iwarp(*ibv_ctx);
  peer->native_forbidden = !native_allowed();
  if (const ibv_device_attr_ex* capabilities = peer->device.capabilities()) {
    peer->on_demand_paging =
        is_odp_capable(capabilities->odp_caps.general_caps, capabilities->odp_caps.per_transport_caps.rc_odp_caps);
    if (!peer->native_forbidden) peer->native = native_of(*capabilities);
  }
  errno = 0;
  peer->pd.reset(ibv_alloc_pd(ibv_ctx));
  if (!peer->pd) {
    if (errno == 0) {
      return refuse(in_a_line(__func__), RPMA_E_UNKNOWN,
                    "ibv_alloc_pd() fails, but errno is 0.\nAsk the device's vendor.");
    }
    if (errno != ENOMEM) return FAILED("ibv_alloc_pd", errno);
    return RPMA_E_NOMEM;  // no refusal: ibv_alloc_pd() has its report
  }
  LOG(INFO, "%s: Atomic Write %s, Flush %s", ibv_get_device_name(ibv_ctx->device),
      peer->native & native::kAtomicWrite ? "native" : "by an ordinary Write",
      peer->native & native::kFlushAny ? "native" : "by a Read");
  *peer_ptr = peer.release();
  return 0;
}

RPMA_EXPORT int rpma_peer_delete(rpma_peer** peer_ptr) {
  if (!peer_ptr) return refuse_null(__func__, {NAMED(peer_ptr)});
  const dapple::NoCancel whole;
  const std::unique_ptr<rpma_peer> peer(std::exchange(*peer_ptr, nullptr));
  if (!peer) return 0;
  const int error = destroy_once(peer->pd);
  return error ? FAILED("ibv_dealloc_pd", error) : 0;
}
