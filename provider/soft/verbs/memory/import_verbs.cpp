// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Imports of objects of other contexts of the same open file (provider/soft/imports).
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <cassert>
#include <new>

#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/imported.hpp"

namespace dapple::soft::verbs {
namespace {

// ENOENT as the kernel; EOPNOTSUPP for a file of another process, which may have the handle.
int refuse_import(const DeviceFile& file, const char* object, uint32_t handle) {
  if (const pid_t maker = file.maker(); maker != getpid()) {
    const bool is_gone = kill(maker, 0) != 0 && errno == ESRCH;
    return refuse(EOPNOTSUPP,
                  "process %d%s has opened the device, and the %s of the software device is in the memory of its own "
                  "process.\nMake it in this process, or import it in the process that has it.",
                  maker, is_gone ? ", which has ended," : "", object);
  }
  return refuse(
      ENOENT,
      "no %s of the open device has the handle %u.\n"
      "Import the context by a copy of the cmd_fd of the context that has it, and give the handle that it has "
      "there.",
      object, handle);
}

// An import of the object with this handle. Null with errno.
template <typename Object>
Object* import_object(ibv_context* ibv, const char* name, const char* names, uint32_t handle) {
  if (!usable(ibv)) return failed(refuse_child());
  DeviceFile& file = context_of(ibv)->file;
  Object* original = file.import <Object>(handle);
  if (original == nullptr) return failed(refuse_import(file, name, handle));
  Object* import = new (std::nothrow) Object;
  if (import == nullptr) {
    if (file.leave(*original)) delete original;
    return failed(refuse_memory(names));
  }
  assert(original->importing.original == nullptr);
  import->importing.original = original;
  context_of(ibv)->live_objects.fetch_add(1);
  return import;
}

// The object stays. A program may give an object that is no import only by mistake.
template <typename Object>
void unimport_object(ibv_context* ibv, Object* import) {
  if (import->importing.original == nullptr) {
    errno = EINVAL;  // no refusal: the verb returns nothing
    return;
  }
  Context* context = context_of(ibv);
  leave_original(*context, *import);
  leave(context->live_objects);
  delete import;
}

}  // namespace

int refuse_ended(const char* object, const char* verb) {
  return refuse(ENOENT,
                "%s of an import has ended the %s.\nEnd an object once, and call the unimport function for the others.",
                verb, object);
}

ibv_pd* import_pd(ibv_context* ibv, uint32_t handle) {
  Pd* pd = import_object<Pd>(ibv, "protection domain", "protection domains", handle);
  if (pd == nullptr) return nullptr;
  pd->context = context_of(ibv);
  pd->number = pd->importing.original->number;
  pd->ibv.context = ibv;
  pd->ibv.handle = handle;
  return &pd->ibv;
}

void unimport_pd(ibv_pd* ibv) {
  unimport_object(ibv->context, ours<Pd>(ibv));
}

// As the kernel, in whatever domain.
ibv_mr* import_mr(ibv_pd* pd, uint32_t handle) {
  Mr* mr = import_object<Mr>(pd->context, "memory region", "memory regions", handle);
  if (mr == nullptr) return nullptr;
  const abi::Mr& original = mr->importing.original->abi;
  mr->pd = mr->importing.original->pd;
  mr->abi.type = abi::kMrTypeImported;
  mr->abi.access = original.access;
  ibv_mr& shown = mr->abi.mr;
  shown.context = pd->context;
  shown.pd = pd;
  shown.length = original.mr.length;
  shown.handle = handle;
  shown.lkey = original.mr.lkey;
  shown.rkey = original.mr.rkey;
  return &shown;
}

void unimport_mr(ibv_mr* ibv) {
  unimport_object(ibv->context, ours<Mr>(ibv));
}

ibv_dm* import_dm(ibv_context* ibv, uint32_t handle) {
  Dm* dm = import_object<Dm>(ibv, "device memory", "device memory", handle);
  if (dm == nullptr) return nullptr;
  dm->context = context_of(ibv);
  dm->length = dm->importing.original->length;
  dm->ibv.context = ibv;
  dm->ibv.handle = handle;
  set_copies(dm->ibv);
  return &dm->ibv;
}

void unimport_dm(ibv_dm* ibv) {
  unimport_object(ibv->context, ours<Dm>(ibv));
}

}  // namespace dapple::soft::verbs
