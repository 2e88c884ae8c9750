// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <algorithm>
#include <optional>

#include "udapl/core/memory/sync.hpp"
#include "udapl/functions/functions.hpp"
#include "udapl/functions/lmr.hpp"

namespace dapple::udapl::functions {

static_assert(DAT_MEM_PRIV_LOCAL_READ_FLAG == int{kLocalRead} && DAT_MEM_PRIV_REMOTE_READ_FLAG == int{kRemoteRead} &&
              DAT_MEM_PRIV_LOCAL_WRITE_FLAG == int{kLocalWrite} && DAT_MEM_PRIV_REMOTE_WRITE_FLAG == int{kRemoteWrite});

static_assert(DAT_MEM_TYPE_VIRTUAL == static_cast<int>(MemType::kVirtual) &&
              DAT_MEM_TYPE_LMR == static_cast<int>(MemType::kLmr) &&
              DAT_MEM_TYPE_SHARED_VIRTUAL == static_cast<int>(MemType::kSharedVirtual));

namespace {

// Fills in the memory's location from the description of its kind, and the cookie of shared memory.
DAT_RETURN describe(const Ia& ia, const DAT_REGION_DESCRIPTION& region, LmrAttr& request,
                    std::optional<SharedCookie>& cookie) {
  switch (request.type) {
    case MemType::kVirtual:
    case MemType::kSoVirtual:
      request.address = region.for_va;
      return kSuccess;
    case MemType::kLmr: {
      const auto* original = find_object<Lmr>(region.for_lmr_handle, ia);
      if (!original) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
      request.address = original->attr().address;
      request.length = original->attr().length;
      request.description = original;
      request.relaxed_ordering &= original->attr().relaxed_ordering;
      return kSuccess;
    }
    case MemType::kSharedVirtual: {
      const DAT_SHARED_MEMORY& shared = region.for_shared_memory;
      if (!shared.shared_memory_id) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
      request.address = shared.virtual_address;
      cookie.emplace();
      std::copy_n(*shared.shared_memory_id, cookie->size(), cookie->begin());
      return kSuccess;
    }
  }
  return wrong_argument(DAT_INVALID_ARG2, "no such kind of memory is supported");
}

DAT_REGION_DESCRIPTION description_of(const Lmr& lmr) {
  DAT_REGION_DESCRIPTION region{};
  switch (lmr.attr().type) {
    case MemType::kVirtual:
    case MemType::kSoVirtual:
      region.for_va = lmr.attr().address;
      break;
    case MemType::kLmr:
      region.for_lmr_handle = const_cast<void*>(lmr.attr().description);
      break;
    case MemType::kSharedVirtual:
      region.for_shared_memory.virtual_address = lmr.attr().address;
      // The provider's copy of the consumer's bytes, for the life of the LMR.
      region.for_shared_memory.shared_memory_id =
          reinterpret_cast<DAT_LMR_COOKIE>(const_cast<char*>(lmr.cookie()->data()));
      break;
  }
  return region;
}

}  // namespace

DAT_RETURN create_lmr(Ia& ia, DAT_PZ_HANDLE pz_handle, const DAT_REGION_DESCRIPTION& region, LmrAttr request,
                      const LmrOutputs& out) {
  auto* pz = find_object<Pz>(pz_handle, ia);
  if (!pz) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  std::optional<SharedCookie> cookie;
  return controlled([&](std::unique_lock<std::mutex>& control) {
    if (const DAT_RETURN status = describe(ia, region, request, cookie); status != DAT_SUCCESS) return status;
    auto lmr = Lmr::create(ia, *pz, request, control, cookie ? &*cookie : nullptr);
    if (!lmr) {
      return to_dat(lmr.error(), {{Subtype::kAddress, DAT_INVALID_ARG3},
                                  {Subtype::kLength, DAT_INVALID_ARG4},
                                  {Subtype::kPrivileges, DAT_INVALID_ARG6}});
    }
    *out.handle = *lmr;
    if (out.lmr_context) *out.lmr_context = (*lmr)->context();
    if (out.rmr_context) *out.rmr_context = (*lmr)->remote_context();
    if (out.size) *out.size = (*lmr)->attr().length;
    if (out.address) *out.address = reinterpret_cast<DAT_VADDR>((*lmr)->attr().address);
    return kSuccess;
  });
}

DAT_RETURN lmr_query(Lmr& lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  if (auto status = check_query(mask, DAT_LMR_FIELD_ALL, param)) return status;
  *param = {};
  param->ia_handle = consumer_handle(lmr.ia());
  param->mem_type = static_cast<DAT_MEM_TYPE>(lmr.attr().type);
  param->region_desc = description_of(lmr);
  param->length = lmr.attr().length;
  param->pz_handle = &lmr.pz();
  param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(lmr.attr().privileges);
  fill_of_version(lmr, *param);
  param->lmr_context = lmr.context();
  param->rmr_context = lmr.remote_context();
  param->registered_size = lmr.attr().length;
  param->registered_address = reinterpret_cast<DAT_VADDR>(lmr.attr().address);
  return DAT_SUCCESS;
}

DAT_RETURN lmr_free(Lmr& lmr) {
  return controlled([&](std::unique_lock<std::mutex>& control) { return to_dat(Lmr::free(lmr, control)); });
}

DAT_RETURN lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  Ia* ia = object_of<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  return to_dat(sync_segments(*ia, segments, count, dappledv_sync_for_device),
                {{Subtype::kSegments, DAT_INVALID_ARG2}});
}

DAT_RETURN lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  Ia* ia = object_of<Ia>(ia_handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  return to_dat(sync_segments(*ia, segments, count, dappledv_sync_for_cpu), {{Subtype::kSegments, DAT_INVALID_ARG2}});
}

}  // namespace dapple::udapl::functions
