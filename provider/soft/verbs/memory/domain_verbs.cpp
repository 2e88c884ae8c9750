// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Protection domains, thread domains and parent domains.
#include <errno.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/imported.hpp"
#include "provider/soft/verbs/memory/region_refusals.hpp"

namespace dapple::soft::verbs {

ibv_pd* alloc_pd(ibv_context* ibv) {
  if (!usable(ibv)) return failed(refuse_child());
  CountedObject counted_object = context_of(ibv)->objects.take(ObjectKind::kPd);
  Pd* pd = counted_object ? new (std::nothrow) Pd : nullptr;
  if (pd == nullptr) return failed(refuse_limit(*context_of(ibv), ObjectKind::kPd));
  pd->counted_object = std::move(counted_object);
  pd->context = context_of(ibv);
  pd->number = pd->context->next_domain.fetch_add(1);
  pd->ibv.context = ibv;
  pd->ibv.handle = pd->number;
  pd->shown = context_of(ibv)->resources().add(context_of(ibv)->row_of(ResourceKind::kPd));
  context_of(ibv)->live_objects.fetch_add(1);
  context_of(ibv)->file.add(*pd);
  return &pd->ibv;
}

// Of both kinds, and imports.
int dealloc_pd(ibv_pd* ibv) {
  Pd* pd = original_of<Pd>(ibv);
  if (pd->below == nullptr && has_ended(*pd)) return refuse_ended("protection domain", "ibv_dealloc_pd()");
  if (const uint32_t users = pd->users.load(); users != 0) {
    return refuse(EBUSY,
                  "%u objects of the protection domain are left.\n"
                  "Destroy its queue pairs, shared receive queues, address handles and parent domains, and deregister "
                  "its memory first.",
                  users);
  }
  leave(pd->context->live_objects);
  if (pd->below == nullptr) {
    pd->counted_object = {};
    pd->shown = {};
    end_object(*context_of(ibv->context), *ours<Pd>(ibv));
    return 0;
  }
  assert(pd->number == pd->below->number && pd->importing.original == nullptr);
  leave(pd->below->users);
  if (pd->td != nullptr) leave(pd->td->users);
  delete pd;
  return 0;
}

ibv_td* alloc_td(ibv_context* ibv, ibv_td_init_attr* attr) {
  if (!usable(ibv)) return failed(refuse_child());
  if (attr->comp_mask != 0) return failed(refuse(EINVAL, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask));
  Td* td = new (std::nothrow) Td;
  if (td == nullptr) return failed(refuse_memory("thread domains"));
  td->ibv.context = ibv;
  context_of(ibv)->live_objects.fetch_add(1);
  return &td->ibv;
}

int dealloc_td(ibv_td* ibv) {
  Td* td = ours<Td>(ibv);
  if (const uint32_t users = td->users.load(); users != 0)
    return refuse(EBUSY, "%u parent domains use the thread domain.\nDeallocate them first.", users);
  leave(context_of(ibv->context)->live_objects);
  delete td;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* ibv, ibv_parent_domain_init_attr* attr) {
  if (!usable(ibv)) return failed(refuse_child());
  // A newer name of libibverbs, ALLOW_CC_UNPROTECTED_ALLOC. The device needs no such memory, and so ignores it, as
  // mlx5.
  constexpr uint32_t kAllowUnprotected = 1 << 2;
  constexpr uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kAllowUnprotected;
  const bool allocates = (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (const uint32_t unknown = attr->comp_mask & ~kKnown; unknown != 0) {
    return failed(
        refuse(EINVAL, "comp_mask has 0x%x, which the device does not know.\nLeave these bits out.", unknown));
  }
  if (attr->pd == nullptr || attr->pd->context != ibv) return failed(refuse_other_device("protection domain"));
  if (attr->td != nullptr && attr->td->context != ibv) return failed(refuse_other_device("thread domain"));
  if (allocates && (attr->alloc == nullptr || attr->free == nullptr)) {
    return failed(refuse(EINVAL,
                         "comp_mask has IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, and alloc or free is null.\n"
                         "Set both functions, or leave the bit out."));
  }
  if (const int error = check_lives(attr->pd); error != 0) return failed(error);
  Pd* pd = new (std::nothrow) Pd;
  if (pd == nullptr) return failed(refuse_memory("parent domains"));
  Pd* given = original_of<Pd>(attr->pd);
  pd->below = given->below == nullptr ? given : given->below;
  // A parent domain has no other one below it.
  assert(pd->below->below == nullptr && pd->below->importing.original == nullptr);
  pd->below->users.fetch_add(1);
  if (attr->td != nullptr) {
    pd->td = ours<Td>(attr->td);
    pd->td->users.fetch_add(1);
  }
  pd->number = pd->below->number;
  pd->context = context_of(ibv);
  pd->ibv.context = ibv;
  pd->ibv.handle = pd->number;
  pd->allocator.pd = &pd->ibv;
  if (allocates) {
    pd->allocator.alloc = attr->alloc;
    pd->allocator.free = attr->free;
  }
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0) pd->allocator.context = attr->pd_context;
  context_of(ibv)->live_objects.fetch_add(1);
  return &pd->ibv;
}

}  // namespace dapple::soft::verbs
