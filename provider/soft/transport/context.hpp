// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open device: the data that all of its verbs objects share.
#pragma once

#include <endian.h>
#include <stdint.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "provider/common/mutex.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/imports/device_file.hpp"
#include "provider/soft/memory/disordered_writes.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/fork_generation.hpp"
#include "provider/soft/objects/gid_uses.hpp"
#include "provider/soft/objects/object_limits.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/queues/event_pipe.hpp"
#include "provider/soft/objects/resource_table.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/sanitizers/shown_memory.hpp"
#include "provider/soft/wire/outages.hpp"

namespace dapple::soft {

// Somebody who looks at dappled's reports.
class ChangeWatch {
 public:
  // A thread that asked dappled may have got a report, too.
  virtual void look_for_changes() = 0;

 protected:
  ~ChangeWatch() = default;
};

// The parts of the process that a context uses.
struct ContextPorts {
  DaemonLink& link;
  GidUses& gid_uses;
  ResourceTable& resources;
  const Outages* outages;  // null without a plan of them
  ChangeWatch& watch;
  SlotDevices& devices;  // of the slot
  uint32_t most_queue_pairs;
};

// The device memory of a context: as much as a ConnectX has.
inline constexpr uint64_t kMaxDeviceMemory = 256 * 1024;

// Internally locked.
class Context {
 public:
  // The context is one of `open`.
  Context(const ContextInit& init, Runtime& process, const ContextPorts& ports, DeviceFile& open)
      : ibv(init.ibv),
        device_index(init.device_index),
        node_guid(init.node_guid),
        async_writer(init.async_writer),
        has_wr_flush(init.has_wr_flush),
        traffic(traffic_of(ports.devices, be64toh(init.node_guid))),
        runtime(process),
        file(open),
        memory(open.memory),
        ports_(ports) {}

  // Asks dappled for the present state of the device. 0 or an errno.
  int refresh(DeviceInfo& info);
  // The device as of dappled's last notification; asks dappled only after a new one. Returns 0 or an errno.
  int look_up(DeviceInfo& info);
  // A source address by its index, as of the last refresh. False if there is none.
  bool gid(uint32_t index, uint8_t gid[16]);
  // A source address that keeps its index as long as `hold`. Asks dappled if the last refresh may be outdated. 0,
  // ENODATA if there is none, EINVAL if it is one of RoCE v1, or an errno.
  int hold_gid(uint32_t index, uint8_t gid[16], GidHold& hold);
  // The path that an address describes. False if the source does not exist or the families differ.
  bool resolve(const roce::AddressVector& address, Path& path);
  // The same for a program's attributes; `hold` keeps the source. 0 or an errno.
  enum class Peer { kQueuePair, kAny };  // kAny: of datagrams
  int check_address(const ibv_ah_attr& attr, Peer peer, roce::AddressVector& address, GidHold& hold);

  // Tells whether the device has this GID, as of the last refresh.
  bool has_gid(const uint8_t gid[16]);
  // Looks for the queue pair of a program of this host with this number. Asks dappled, which does not see all objects
  // of a program that has very many.
  enum class Found { kYes, kNo, kMaybe };
  Found find_qp(uint32_t qpn, ResourceRow& row);

  // Raises asynchronous events for changes since the last call, or since the device was opened. Called by the
  // background thread.
  void tell_changes();
  void opened(const DeviceInfo& info);

  // What the program is told of the device, and its limits. They stay as they were when the device was opened.
  const DeviceAttributes& attributes() const { return attributes_; }

  // An asynchronous event about an object (ibv_cq*, ibv_qp*, ibv_srq*).
  void raise(ibv_event_type type, const void* element, EventCount& count);
  // An asynchronous event about the device or its port.
  void raise_port_event(ibv_event_type type);
  // Takes unread asynchronous events of an object back.
  void withdraw(const void* element, EventCount& count);

  // The slot of the process. False if it is lost.
  bool slot(Slot& slot) {
    Problem problem;
    return ports_.link.slot(slot, problem);
  }
  // The objects that dappled sees.
  ResourceTable& resources() const { return ports_.resources; }
  // A row for an object of this context.
  ResourceRow row_of(ResourceKind kind) const {
    ResourceRow row;
    row.kind = kind;
    row.device = device_index;
    row.context = shown.row_number();
    return row;
  }
  ShownObject shown;  // the context itself

  ibv_context* const ibv;
  const uint32_t device_index;
  const uint64_t node_guid;  // in network byte order
  int async_writer;          // changes before anybody else has it, in revive(), and under the lock of `pipes`
  const bool has_wr_flush;   // its libibverbs has ibv_wr_flush()
  DeviceTraffic& traffic;    // of this device, shared with dappled
  Runtime& runtime;
  DeviceFile& file;     // shared by the contexts that import it
  MemoryTable& memory;  // of the file
  // For queue pairs: the table, or the layers around it.
  roce::Memory& seen_memory() { return disordered_writes_ ? *disordered_writes_ : checked_memory(); }
  // Tells whether nothing watches or disturbs the accesses of queue pairs.
  bool memory_is_bare() { return &seen_memory() == &memory; }
  EventPipes pipes;  // of asynchronous events; the file has those of completion channels
  // Counts for all devices of the process, because peers compare the domains of keys and queue pairs.
  static inline constinit std::atomic<uint32_t> next_domain{1};
  std::atomic<uint32_t> next_counter{1};  // a completion counter's handle
  ContextObjects objects;                 // counted until the context leaves DaemonWatch
  std::atomic<uint32_t> live_queue_pairs{0};
  std::atomic<uint64_t> device_memory{0};  // bytes that the program has
  // Objects that need no other one (PDs, CQs, counters, thread domains and more): each other object needs one of them.
  std::atomic<uint32_t> live_objects{0};
  const uint32_t generation = ForkGeneration::now();
  Context* next = nullptr;  // DaemonWatch's; of a closed context its file's

 private:
  static std::optional<ShownMemory> check(MemoryTable& table) {
    Sanitizer* sanitizer = Sanitizer::of_program();
    return sanitizer == nullptr ? std::nullopt : std::optional<ShownMemory>(std::in_place, table, *sanitizer);
  }
  std::optional<ShownMemory> shown_memory_ = check(memory);
  roce::Memory& checked_memory() { return shown_memory_ ? static_cast<roce::Memory&>(*shown_memory_) : memory; }
  static std::optional<DisorderedWrites> disorder(roce::Memory& below) {
    const FaultSettings& faults = program_faults();
    if (!faults.disorders_writes) return std::nullopt;
    return std::optional<DisorderedWrites>(std::in_place, below, faults.seed);
  }
  std::optional<DisorderedWrites> disordered_writes_ = disorder(checked_memory());

  const ContextPorts ports_;
  DeviceAttributes attributes_;  // written before anybody else has the context

  // The state that the program knows; used by the background thread.
  DeviceInfo told_;
  bool told_gone_ = false;
  EventCount port_events_;
  bool is_current(uint32_t gid_index, GidEntry& entry);
  // The GIDs as of the last refresh, for a refusal: "0 (fe80::1), 1 (10.0.0.1)". Only those of RoCE v2, and of the
  // family of `like` unless it is null.
  ShortText gids_for(const uint8_t* like);
  // The netdev has the address of this GID.
  bool has_address(uint32_t gid_index);

  Mutex info_mutex_{LockRank::kContextInfo};
  DeviceInfo info_;
  uint32_t known_removals_ = 0;  // of addresses, before dappled was asked for info_
};

// 0, or EINVAL as the kernel: somebody has ended the object, and the program makes another one by an import of it.
int check_lives(ibv_pd* pd);
int check_lives(const Dm& original);

// For a verb that returns a pointer: sets errno and returns null. `error` is a refusal's (refuse()).
std::nullptr_t failed(int error);
// ENOMEM and its reason, for an object that the device has no room or the process no memory for.
int refuse_limit(Context& context, ObjectKind kind);
// For a verb of the data path that returns an error number: sets errno, too. errno_operations() does so for the others.
int refused(int error);

}  // namespace dapple::soft
