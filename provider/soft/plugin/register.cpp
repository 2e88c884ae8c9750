// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The software device's driver, and its registration with each libibverbs that loads this plug-in.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "provider/private_api/context_view.hpp"
#include "provider/protocol/identity.hpp"
#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/abi/structures.hpp"
#include "provider/soft/explain/cm_failures.hpp"
#include "provider/soft/hang/watcher.hpp"
#include "provider/soft/plugin/copies.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/problem.hpp"
#include "provider/system/verbs_caller.hpp"

namespace dapple::soft::abi {
namespace {

// An open device. verbs_context grows at its front with each release. It ends where `context` begins. So `front` has
// room for the structure of any release, and `context` stays at the place where context_of() looks for it.
struct OpenDevice {
  alignas(16) unsigned char front[2048];
  Context* context;
  const VerbsCopy* copy;
  int async_writer;
  // A libibverbs whose structures are not those of its version may write here before this is detected.
  unsigned char behind[1024];
};

OpenDevice* open_device_of(ibv_context* context) {
  return reinterpret_cast<OpenDevice*>(reinterpret_cast<unsigned char*>(context + 1) - sizeof(OpenDevice::front));
}

ibv_context* ibv_of(OpenDevice* open) {
  return reinterpret_cast<ibv_context*>(open->front + sizeof(open->front)) - 1;
}

verbs_context* extended_of(OpenDevice* open) {
  return reinterpret_cast<verbs_context*>(open->front + sizeof(open->front) - open->copy->library.layout->context_size);
}

// The fields of a verbs_context that this is built with, at the same distance from its end in each release.
verbs_context& known_part_of(OpenDevice* open) {
  return reinterpret_cast<verbs_context*>(open->front + sizeof(open->front))[-1];
}

// The last devices that the program has closed, under dapple-run --check.
constexpr size_t kKept = 64;
constinit std::atomic<OpenDevice*> kept[kKept] = {};
constinit std::atomic<size_t> kept_so_far = 0;

// The oldest one makes room. `table`: libibverbs' table of functions, which a later call with the context reads.
void keep_closed(OpenDevice* open, verbs_ex_private* table) {
  ibv_of(open)->cmd_fd = ibv_of(open)->async_fd = -1;
  known_part_of(open).priv = table;
  const size_t place = kept_so_far.fetch_add(1, std::memory_order_relaxed) % kKept;
  OpenDevice* oldest = kept[place].exchange(open, std::memory_order_acq_rel);
  if (oldest == nullptr) return;
  forget_closed(ibv_of(oldest));
  free(known_part_of(oldest).priv);
  free(oldest);
}

void close_context(ibv_context* context) {
  if (was_closed(context)) {
    errno = EINVAL;
    return;
  }
  OpenDevice* open = open_device_of(context);
  const bool keeps = keeps_closed(context);
  free_context(open->context);
  verbs_ex_private* table = nullptr;
  if (keeps) std::swap(table, known_part_of(open).priv);
  open->copy->functions.uninit_context(extended_of(open));
  if (keeps) {
    keep_closed(open, table);
  } else {
    free(open);
  }
}

provider::Replacements replacements() {
  provider::Replacements table = {};
  const Operations& ours = operations();
  const auto set = [&](provider::Operation operation, auto function) {
    table[static_cast<size_t>(operation)] = reinterpret_cast<provider::AnyFunction>(function);
  };
#define DAPPLE_SET(name) set(provider::Operation::name, ours.name)
  DAPPLE_SET(advise_mr);
  DAPPLE_SET(alloc_dm);
  DAPPLE_SET(alloc_dmah);
  DAPPLE_SET(alloc_mw);
  DAPPLE_SET(alloc_null_mr);
  DAPPLE_SET(alloc_parent_domain);
  DAPPLE_SET(alloc_pd);
  DAPPLE_SET(alloc_td);
  DAPPLE_SET(async_event);
  DAPPLE_SET(attach_counters_point_flow);
  DAPPLE_SET(attach_mcast);
  DAPPLE_SET(bind_mw);
  DAPPLE_SET(close_xrcd);
  DAPPLE_SET(cq_event);
  DAPPLE_SET(create_ah);
  DAPPLE_SET(create_comp_cntr);
  DAPPLE_SET(create_counters);
  DAPPLE_SET(create_cq);
  DAPPLE_SET(create_cq_ex);
  DAPPLE_SET(create_flow);
  DAPPLE_SET(create_qp);
  DAPPLE_SET(create_qp_ex);
  DAPPLE_SET(create_rwq_ind_table);
  DAPPLE_SET(create_srq);
  DAPPLE_SET(create_srq_ex);
  DAPPLE_SET(create_wq);
  DAPPLE_SET(dealloc_dmah);
  DAPPLE_SET(dealloc_mw);
  DAPPLE_SET(dealloc_pd);
  DAPPLE_SET(dealloc_td);
  DAPPLE_SET(dereg_mr);
  DAPPLE_SET(destroy_ah);
  DAPPLE_SET(destroy_comp_cntr);
  DAPPLE_SET(destroy_counters);
  DAPPLE_SET(destroy_cq);
  DAPPLE_SET(destroy_flow);
  DAPPLE_SET(destroy_qp);
  DAPPLE_SET(destroy_rwq_ind_table);
  DAPPLE_SET(destroy_srq);
  DAPPLE_SET(destroy_wq);
  DAPPLE_SET(detach_mcast);
  DAPPLE_SET(dm_export_dmabuf_fd);
  DAPPLE_SET(free_dm);
  DAPPLE_SET(get_srq_num);
  DAPPLE_SET(import_dm);
  DAPPLE_SET(import_mr);
  DAPPLE_SET(import_pd);
  DAPPLE_SET(inc_comp_cntr);
  DAPPLE_SET(inc_err_comp_cntr);
  DAPPLE_SET(modify_cq);
  DAPPLE_SET(modify_qp);
  DAPPLE_SET(modify_qp_rate_limit);
  DAPPLE_SET(modify_srq);
  DAPPLE_SET(modify_wq);
  DAPPLE_SET(open_qp);
  DAPPLE_SET(open_xrcd);
  DAPPLE_SET(poll_cq);
  DAPPLE_SET(post_recv);
  DAPPLE_SET(post_send);
  DAPPLE_SET(post_srq_ops);
  DAPPLE_SET(post_srq_recv);
  DAPPLE_SET(qp_attach_comp_cntr);
  DAPPLE_SET(query_comp_cntr_caps);
  DAPPLE_SET(query_device_ex);
  DAPPLE_SET(query_ece);
  DAPPLE_SET(query_port);
  DAPPLE_SET(query_port_speed);
  DAPPLE_SET(query_qp);
  DAPPLE_SET(query_qp_data_in_order);
  DAPPLE_SET(query_rt_values);
  DAPPLE_SET(query_srq);
  DAPPLE_SET(read_comp_cntr);
  DAPPLE_SET(read_counters);
  DAPPLE_SET(read_err_comp_cntr);
  DAPPLE_SET(reg_dm_mr);
  DAPPLE_SET(reg_dmabuf_mr);
  DAPPLE_SET(reg_mr);
  DAPPLE_SET(reg_mr_ex);
  DAPPLE_SET(req_notify_cq);
  DAPPLE_SET(rereg_mr);
  DAPPLE_SET(resize_cq);
  DAPPLE_SET(set_comp_cntr);
  DAPPLE_SET(set_ece);
  DAPPLE_SET(set_err_comp_cntr);
  DAPPLE_SET(unimport_dm);
  DAPPLE_SET(unimport_mr);
  DAPPLE_SET(unimport_pd);
#undef DAPPLE_SET
  set(provider::Operation::free_context, &close_context);
  return table;
}

// A pipe for asynchronous events: the program's end blocks, ours does not.
bool open_async_events(OpenDevice* open) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    fprintf(stderr, "dapple: cannot open the device: no pipe for its events: %s%s\n", strerror(error),
            descriptor_remedy(error));
    errno = error;
    return false;
  }
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  ibv_of(open)->async_fd = ends[0];
  open->async_writer = hide_own(ends[1]);
  return true;
}

bool complete(OpenDevice* open, ibv_device* device, bool is_import) {
  const provider::VerbsLibrary& library = open->copy->library;
  ibv_context* context = ibv_of(open);
  const verbs_context* extended = verbs_get_ctx(context);
  if (extended == nullptr || extended->sz != library.layout->context_size) {
    fprintf(stderr, "dapple: cannot open %s: the contexts of this libibverbs are not those of rdma-core %s\n",
            device->name, library.layout->releases);
    errno = EPROTONOSUPPORT;
    return false;
  }
  if (!open_async_events(open)) return false;
  provider::set_operations(library, extended_of(open), replacements());

  const SysfsDevice* found = reinterpret_cast<Device*>(device)->sysfs;
  const ContextInit init = {
      .ibv = context,
      .device_name = device->name,
      .node_guid = htobe64(found->node_guid),
      .device_index = static_cast<uint32_t>(found->ibdev_idx),
      .async_writer = open->async_writer,
      .has_wr_flush = open->copy->has_wr_flush,
      .is_import = is_import,
  };
  open->context = make_context(init);
  if (open->context == nullptr) return false;
  if (!is_import || doors()->answer_async_fd(context->cmd_fd, context->async_fd)) return true;
  // Closes the writer.
  free_context(open->context);
  open->async_writer = -1;
  errno = EMFILE;
  return false;
}

verbs_context* open_context(ibv_device* device, int cmd_fd, bool is_import) {
  const VerbsCopy& copy = copy_of(device);
  const size_t offset = sizeof(OpenDevice::front) - copy.library.layout->context_size;
  auto* open = static_cast<OpenDevice*>(copy.functions.init_and_alloc_context(
      device, cmd_fd, sizeof(OpenDevice), reinterpret_cast<verbs_context*>(offset), kDriverId));
  if (open == nullptr) return nullptr;
  open->copy = &copy;
  open->async_writer = -1;
  if (complete(open, device, is_import)) return extended_of(open);
  const int error = errno;
  if (open->async_writer >= 0) close_own(open->async_writer);
  copy.functions.uninit_context(extended_of(open));
  free(open);
  errno = error;
  return nullptr;
}

verbs_context* alloc_context(ibv_device* device, int cmd_fd, void*) {
  return open_context(device, cmd_fd, false);
}

// libibverbs then asks the descriptor for that of asynchronous events.
verbs_context* import_context(ibv_device* device, int cmd_fd) {
  if (doors() == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return open_context(device, cmd_fd, true);
}

Device* alloc_device(SysfsDevice*) {
  auto* device = static_cast<Device*>(calloc(1, sizeof(Device)));
  // Without it libibverbs keeps optional access flags, such as relaxed ordering, from us.
  if (device != nullptr) device->core_support = 1;
  return device;
}

void uninit_device(Device* device) {
  free(device);
}

const MatchEntry kMatches[] = {
    {.driver_data = nullptr, .driver_id = kDriverId, .vendor = 0, .device = 0, .kind = kMatchDriverId},
    {.driver_data = nullptr, .driver_id = 0, .vendor = 0, .device = 0, .kind = kMatchEnd},
};

const DeviceOperations kDriver = {
    .name = "dapple",
    .match_min_abi_version = 1,
    .match_max_abi_version = 1,
    .match_table = kMatches,
    .static_providers = nullptr,
    .match_device = nullptr,
    .alloc_context = alloc_context,
    .import_context = import_context,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};

void register_copy(const void* in_verbs_library) {
  register_with(in_verbs_library, kDriver);
}

// A libibverbs, or the doors for it, load this library, and the constructor runs. Another copy would load it again,
// which does nothing. So the doors tell when a copy lists devices.
[[gnu::constructor]] void on_load() {
  register_copy(calling_verbs_library());
  if (doors() != nullptr) doors()->when_listing(register_copy);
  explain::explain_cm();
  hang::Watcher::start_with_cm();
}

}  // namespace
}  // namespace dapple::soft::abi
