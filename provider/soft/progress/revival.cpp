// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The beginning and the end of contexts: the functions of the registration's interface.
#include "provider/soft/progress/revival.hpp"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/transport/closing_watch.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/random.hpp"
#include "provider/system/uverbs_file.hpp"

namespace dapple::soft {
namespace {

constinit Mutex revival_mutex{LockRank::kRevival};

int vectors_of(const DeviceAttributes& attributes) {
  if (attributes.num_comp_vectors != 0) return static_cast<int>(attributes.num_comp_vectors);
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// The open file of a context. Null with the reason in `problem`.
DeviceFile* open_file(const ContextInit& init, Runtime& runtime, Problem& problem) {
  struct stat status = {};
  if (fstat(init.ibv->cmd_fd, &status) != 0) status = {};
  const FileIdentity identity = {status.st_dev, status.st_ino};
  pid_t maker = getpid();
  if (init.is_import) {
    if (DeviceFile* file = runtime.daemon_watch().join(identity); file != nullptr) return file;
    UverbsFile file;
    if (file.read(init.ibv->cmd_fd)) maker = file.maker;
    if (file.network != network_of_process()) {
      problem.set(ENODEV, "the descriptor comes from another network namespace, which has other devices");
      return nullptr;
    }
  }
  auto* file = new (std::nothrow) DeviceFile(random_number(RandomUse::kKeys), identity, maker);
  if (file == nullptr) problem.set(ENOMEM, "no memory is left");
  return file;
}

// Objects may still refer to a closed context, so it ends with the file.
void end(Context* context) {
  DeviceFile& file = context->file;
  context->next = file.closed.load();
  while (!file.closed.compare_exchange_weak(context->next, context)) continue;
  if (!file.leave()) return;
  if (context->generation != ForkGeneration::now()) file.forget_objects();
  for (Context* each = file.closed.load(); each != nullptr;) delete std::exchange(each, each->next);
  delete &file;
}

}  // namespace

Context* make_context(const ContextInit& init) {
  const InsidePlugin inside;
  Problem problem;
  Runtime* runtime = trace_is_possible(problem) ? Runtime::get(problem) : nullptr;
  if (runtime == nullptr) {
    fprintf(stderr, "dapple: cannot open %s: %s\n", init.device_name, problem.line);
    return failed(problem.error != 0 ? problem.error : EIO);
  }
  if (FaultPlan* plan = fault_plan(); plan != nullptr) {
    if (const int planned = plan->next_call(kOpenDevice); planned != 0) return failed(planned);
  }
  DeviceFile* file = open_file(init, *runtime, problem);
  if (file == nullptr) {
    fprintf(stderr, "dapple: cannot open %s: %s\n", init.device_name, problem.line);
    return failed(problem.error);
  }
  auto* context = new (std::nothrow) Context(init, *runtime, runtime->context_ports(), *file);
  if (context == nullptr) {
    if (file->leave()) delete file;
    return failed(ENOMEM);
  }
  DeviceInfo info;
  const bool has_room = context->pipes.ready() && file->channels.ready();
  const int error = has_room ? context->refresh(info) : ENOMEM;
  if (program_trace() != nullptr) trace_open(init.device_name, error);
  if (error == 0) {
    context->opened(info);
    init.ibv->num_comp_vectors = vectors_of(info.attributes);
    context->shown = context->resources().add(context->row_of(ResourceKind::kContext));
    if (!runtime->daemon_watch().add(*context)) {
      end(context);
      return failed(ENOMEM);
    }
    // A change between the question and this line was reported to other members only.
    runtime->daemon_watch().link().note_change();
    runtime->daemon_watch().look_for_changes();
    return context;
  }
  end(context);
  return failed(error);
}

int refuse_child() {
  return refuse(ENODEV,
                "the object belongs to the parent of this process: a child of fork() cannot use its parent's objects.\n"
                "Open the device after fork(), or make all calls in the process that has opened it.");
}

void lock_revival() {
  revival_mutex.lock();
}

void unlock_revival() {
  revival_mutex.unlock();
}

bool revive(const ibv_context* ibv) {
  const std::lock_guard lock(revival_mutex);
  Context* parents = context_of(ibv);
  if (parents->generation == ForkGeneration::now()) return true;
  if (parents->live_objects.load() != 0 || parents->live_queue_pairs.load() != 0) return false;
  const int writer = renew_async_events(parents->ibv->async_fd, parents->async_writer);
  if (writer < 0) return false;
  parents->async_writer = writer;
  // The parent's Context stays in memory: a thread of the parent may have held its locks.
  Context* own = make_context({.ibv = parents->ibv,
                               .device_name = ibv->device->name,
                               .node_guid = parents->node_guid,
                               .device_index = parents->device_index,
                               .async_writer = writer,
                               .has_wr_flush = parents->has_wr_flush});
  if (own == nullptr) return false;
  set_context_of(parents->ibv, own);
  return true;
}

void free_context(Context* context) {
  const InsidePlugin inside;
  if (const ClosingWatch watch = closing_watch.load(std::memory_order_acquire)) watch(*context);
  // A child of fork() has only a copy of the parent's runtime, in whatever state its locks were.
  if (context->generation == ForkGeneration::now()) {
    const CancelGuard whole;
    // The kernel ends the queue pairs of a closed device, too: peers must not reach memory that the program frees next.
    context->runtime.remove_xrc(*context);
    if (context->live_queue_pairs.load() != 0) context->runtime.remove_all(*context);
    context->runtime.engines().held_events.forget(*context);
    // The background thread may write events at any time, and the descriptor's number may belong to another file soon.
    context->resources().remove_all(context->shown.row_number());
    context->shown = {};
    context->runtime.daemon_watch().remove(*context);
    context->pipes.close(context->async_writer);
  } else {
    close_own(context->async_writer);
  }
  // The queue pairs that the program has left stay in memory, and they use it.
  if (context->live_queue_pairs.load() == 0) end(context);
}

}  // namespace dapple::soft
