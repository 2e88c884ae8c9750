// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations that replace a context's own. libibverbs calls them as it would call the provider's.
#include <errno.h>
#include <fcntl.h>

#include <new>

#include "provider/overlay/attached.hpp"

namespace dapple::provider {
namespace {

ibv_mr* keep(Attached& attached, Region* region, ibv_mr* mr) {
  region->mr = mr;
  region->lkey = mr->lkey;
  const WriteLock lock;
  attached.regions.insert(region);
  return mr;
}

// Registers through call(request), which asks the provider. The table keeps the program's request.
template <typename Call>
ibv_mr* register_region(Attached& attached, const RegionRequest& wanted, Call call) {
  auto* region = new (std::nothrow) Region;
  if (region == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  RegionRequest told = wanted;
  RegionPolicy* policy = attached.request.policy;
  if (policy != nullptr) {
    if (const int error = policy->before_registration(told, &region->policy_state)) {
      delete region;
      errno = error;
      return nullptr;
    }
  }
  ibv_mr* mr = call(told);
  if (mr == nullptr) {
    const int error = errno;
    if (policy != nullptr) policy->registration_failed(region->policy_state);
    delete region;
    errno = error;
    return nullptr;
  }
  region->address = reinterpret_cast<uintptr_t>(wanted.address);
  region->length = wanted.length;
  region->iova = wanted.iova;
  region->access = wanted.access;
  if (policy != nullptr) policy->registered(region->policy_state);
  return keep(attached, region, mr);
}

// The same for regions without an address in the program. No policy is asked.
template <typename Call>
ibv_mr* register_elsewhere(Attached& attached, size_t length, uint64_t iova, int dmabuf_fd, Call call) {
  auto* region = new (std::nothrow) Region;
  if (region == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  region->has_address = false;
  region->length = length;
  region->iova = iova;
  // The region needs a descriptor of its own, because the program may close the one that it passed.
  if (dmabuf_fd >= 0) region->dmabuf_fd = fcntl(dmabuf_fd, F_DUPFD_CLOEXEC, 0);
  ibv_mr* mr = (dmabuf_fd >= 0) == (region->dmabuf_fd >= 0) ? call() : nullptr;
  if (mr == nullptr) {
    const int error = errno;
    delete region;
    errno = error;
    return nullptr;
  }
  return keep(attached, region, mr);
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  Attached& attached = attached_to(pd->context);
  return register_region(attached, {address, length, iova, access}, [&](const RegionRequest& told) {
    return attached.originals.reg_mr(pd, told.address, told.length, told.iova, told.access);
  });
}

ibv_mr* reg_mr_ex(ibv_pd* pd, RegionInitAttr* attr) {
  Attached& attached = attached_to(pd->context);
  const bool has_iova = (attr->comp_mask & kRegionInitIova) != 0;
  if ((attr->comp_mask & kRegionInitFd) != 0) {
    return register_elsewhere(attached, attr->length, has_iova ? attr->iova : 0, attr->fd,
                              [&] { return attached.originals.reg_mr_ex(pd, attr); });
  }
  if ((attr->comp_mask & kRegionInitAddr) == 0) return attached.originals.reg_mr_ex(pd, attr);
  const uint64_t iova = has_iova ? attr->iova : reinterpret_cast<uintptr_t>(attr->addr);
  const RegionRequest wanted = {attr->addr, attr->length, iova, attr->access};
  return register_region(attached, wanted, [&](const RegionRequest& told) {
    const uint64_t old_mask = attr->comp_mask;
    const uint64_t old_iova = attr->iova;
    attr->addr = told.address;
    if (told.iova != reinterpret_cast<uintptr_t>(told.address)) {
      attr->iova = told.iova;
      attr->comp_mask |= kRegionInitIova;
    }
    ibv_mr* mr = attached.originals.reg_mr_ex(pd, attr);
    // libibverbs reads the structure again after this call, so it gets its old values back.
    attr->addr = wanted.address;
    attr->iova = old_iova;
    attr->comp_mask = old_mask;
    return mr;
  });
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  Attached& attached = attached_to(pd->context);
  return register_elsewhere(attached, SIZE_MAX, 0, -1, [&] { return attached.originals.alloc_null_mr(pd); });
}

// Device memory is addressed from 0.
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access) {
  Attached& attached = attached_to(pd->context);
  return register_elsewhere(attached, length, 0, -1,
                            [&] { return attached.originals.reg_dm_mr(pd, dm, offset, length, access); });
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
  Attached& attached = attached_to(pd->context);
  return register_elsewhere(attached, length, iova, fd,
                            [&] { return attached.originals.reg_dmabuf_mr(pd, offset, length, iova, fd, access); });
}

Region* take_region(Attached& attached, const ibv_mr* mr) {
  const WriteLock lock;
  return attached.regions.remove(mr, mr->lkey);
}

void give_back_region(Attached& attached, Region* region) {
  const WriteLock lock;
  attached.regions.insert(region);
}

// A region that is not in the table was registered before attach(), or by a call that the overlay does not replace.
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  Attached& attached = attached_to(mr->context);
  Region* region = take_region(attached, mr);
  if (region == nullptr) return attached.originals.rereg_mr(mr, flags, pd, address, length, access);

  RegionPolicy* policy = attached.request.policy;
  int error = policy == nullptr ? 0 : policy->before_reregistration(flags, access, region->policy_state);
  if (error != 0) {
    errno = error;
  } else {
    error = attached.originals.rereg_mr(mr, flags, pd, address, length, access);
  }
  const int saved_errno = errno;
  if (error == 0) {
    region->lkey = mr->lkey;
    if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
      region->access = access;
      if (policy != nullptr) policy->access_changed(access, region->policy_state);
    }
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
      region->address = reinterpret_cast<uintptr_t>(address);
      region->length = length;
      // ibv_rereg_mr() has no argument for another IOVA.
      region->iova = region->address;
    }
  }
  give_back_region(attached, region);
  errno = saved_errno;
  return error;
}

int dereg_mr(ibv_mr* mr) {
  Attached& attached = attached_to(mr->context);
  // The region leaves the table before the device frees its key, which another thread's registration may get at once.
  Region* region = take_region(attached, mr);
  const int error = attached.originals.dereg_mr(mr);
  const int saved_errno = errno;
  if (region != nullptr && error != 0) {
    give_back_region(attached, region);
  } else if (region != nullptr) {
    if (RegionPolicy* policy = attached.request.policy) policy->deregistered(region->policy_state);
    delete region;
  }
  errno = saved_errno;
  return error;
}

void free_context(ibv_context* context) {
  Attached* attached = &attached_to(context);
  // The provider may deregister its own regions while it frees the context. Our operations are removed first, so the
  // provider's own are called.
  lay_operations(attached->view, {attached->originals, attached->original_transfers});
  {
    // This comes before the context is freed, after which its address may belong to another context.
    const WriteLock lock;
    remove_attached(attached);
  }
  attached->originals.free_context(context);
  for (Region* region = attached->regions.remove_all(); region != nullptr;) {
    Region* next = region->next;
    if (RegionPolicy* policy = attached->request.policy) policy->deregistered(region->policy_state);
    delete region;
    region = next;
  }
  delete attached;
}

}  // namespace

const RegionOperations kOverlayOperations = {reg_mr,        reg_mr_ex, alloc_null_mr, reg_dm_mr,
                                             reg_dmabuf_mr, rereg_mr,  dereg_mr,      free_context};

}  // namespace dapple::provider
