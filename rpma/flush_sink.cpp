// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/flush_sink.hpp"

#include <librpma.h>

#include <cerrno>

#include "rpma/common/destroy_once.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/memory/peer.hpp"

namespace dapple::rpma {

int FlushSink::make(const rpma_peer& peer) noexcept {
  maintenance_ = peer.maintenance();
  page_size_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, page_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return refuse_memory();
  page_ = page;
  uint8_t unused = 0;
  mr_ = register_memory(peer, page_, kFlushReadSize, RPMA_MR_USAGE_READ_DST, unused);
  return mr_ ? 0 : RPMA_E_PROVIDER;  // no refusal: ibv_reg_mr() has its report
}

int FlushSink::close() noexcept {
  int result = 0;
  // The emulator reports data from a device that nothing has synced.
  const iovec written = {page_, kFlushReadSize};
  if (mr_ && maintenance_) (void)dappledv_sync_for_cpu(maintenance_, &written, 1);
  if (const int error = destroy_once(mr_)) result = FAILED("ibv_dereg_mr", error);
  mr_.reset();
  if (page_ && munmap(page_, page_size_) && !result) {
    result = refuse(in_a_line("rpma_conn_delete"), RPMA_E_INVAL,
                    "munmap() has failed for a page of librpma.\nDo not unmap memory of others.");
  }
  page_ = nullptr;
  return result;
}

}  // namespace dapple::rpma
