// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <librpma.h>

#include <atomic>
#include <new>

#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"

using namespace dapple::rpma;

struct rpma_peer_cfg {
  std::atomic<bool> direct_write_to_pmem{false};
};

RPMA_EXPORT int rpma_peer_cfg_new(rpma_peer_cfg** pcfg_ptr) {
  if (!pcfg_ptr) return refuse_null(__func__, {NAMED(pcfg_ptr)});
  auto* made = new (std::nothrow) rpma_peer_cfg;
  if (!made) return refuse_memory();
  *pcfg_ptr = made;
  return 0;
}

RPMA_EXPORT int rpma_peer_cfg_delete(rpma_peer_cfg** pcfg_ptr) {
  if (!pcfg_ptr) return refuse_null(__func__, {NAMED(pcfg_ptr)});
  delete *pcfg_ptr;
  *pcfg_ptr = nullptr;
  return 0;
}

RPMA_EXPORT int rpma_peer_cfg_set_direct_write_to_pmem(rpma_peer_cfg* pcfg, bool supported) {
  if (!pcfg) return refuse_null(__func__, {NAMED(pcfg)});
  pcfg->direct_write_to_pmem = supported;
  return 0;
}

RPMA_EXPORT int rpma_peer_cfg_get_direct_write_to_pmem(const rpma_peer_cfg* pcfg, bool* supported) {
  if (!pcfg || !supported) return refuse_null(__func__, {NAMED(pcfg), NAMED(supported)});
  *supported = pcfg->direct_write_to_pmem;
  return 0;
}

// The wire has one byte; any value but 0 means true.
RPMA_EXPORT int rpma_peer_cfg_get_descriptor(const rpma_peer_cfg* pcfg, void* desc) {
  if (!pcfg || !desc) return refuse_null(__func__, {NAMED(pcfg), NAMED(desc)});
  *static_cast<uint8_t*>(desc) = pcfg->direct_write_to_pmem ? 1 : 0;
  return 0;
}

RPMA_EXPORT int rpma_peer_cfg_get_descriptor_size(const rpma_peer_cfg* pcfg, size_t* desc_size) {
  if (!pcfg || !desc_size) return refuse_null(__func__, {NAMED(pcfg), NAMED(desc_size)});
  *desc_size = 1;
  return 0;
}

RPMA_EXPORT int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, rpma_peer_cfg** pcfg_ptr) {
  if (!desc || !pcfg_ptr) return refuse_null(__func__, {NAMED(desc), NAMED(pcfg_ptr)});
  if (desc_size == 0) {
    LOG(ERROR, "the descriptor of a peer's configuration is empty");
    return refuse(__func__, RPMA_E_INVAL,
                  "desc_size is 0.\nPass the size that rpma_peer_cfg_get_descriptor_size() of the peer gives.");
  }
  if (const int error = rpma_peer_cfg_new(pcfg_ptr)) return error;
  (*pcfg_ptr)->direct_write_to_pmem = *static_cast<const uint8_t*>(desc) != 0;
  return 0;
}
