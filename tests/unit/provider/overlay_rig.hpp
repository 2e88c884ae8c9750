// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The overlay over contexts of every known layout, with a provider that records its requests and a CPU that counts
// maintenance.
#pragma once

#include "provider/overlay/overlay.hpp"
#include "provider/private_api/operation_types.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/fake_context.hpp"

namespace dapple::provider {

// The provider: its last request, and its next answer.
struct Provider {
  RegionRequest told;
  ibv_pd* pd;
  ibv_mr* mr;
  uint32_t next_lkey;
  int error;
  int num_deregistered;
  int num_reregistered;
  int num_closed;
};
extern Provider provider;

extern FakeContext* fake;
extern ibv_pd pd;
alignas(64) extern char memory[4096];
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;

// These do the work of libibverbs.
ibv_mr* reg_mr(void* address, size_t length, uint64_t iova);
ibv_mr* reg_mr_ex(RegionInitAttr* attr);
ibv_mr* alloc_null_mr();
ibv_mr* reg_dm_mr(uint64_t offset, size_t length);
ibv_mr* reg_dmabuf_mr(uint64_t offset, size_t length, uint64_t iova, int fd);
int rereg_mr(ibv_mr* mr, int flags, void* address, size_t length, int access);
int dereg_mr(ibv_mr* mr);
void close_context();

// Makes a context of this layout the fake one, and resets everything.
void open_context(const Layout& layout);
// Returns the overlay's result; `why` then holds its reason.
int attach_it(dappledv_coherence coherence, RegionPolicy* policy, uint64_t flags = 0);
extern const char* why;
void open_attached(const Layout& layout, dappledv_coherence coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
                   RegionPolicy* policy = nullptr);
void end_context();

// The CPU: the maintenance that it has done.
struct Cpu {
  int num_cleaned;
  int num_invalidated;
  int num_waits;
  int num_orderings;
  const void* last;
  size_t bytes;
};
extern Cpu cpu;

constexpr size_t kNoSegment = SIZE_MAX;
extern size_t bad_segment;  // as the last sync has set it

// Syncs memory of the fake context; `cpu` records the maintenance.
int sync_device(const ibv_sge* segments, size_t count);
int sync_cpu(const ibv_sge* segments, size_t count);

uint64_t at(const void* address);

}  // namespace dapple::provider
