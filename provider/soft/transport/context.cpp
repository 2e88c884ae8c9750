// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/context.hpp"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/network/address_text.hpp"
#include "provider/network/gid.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/faults/disturbances.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/soft/memory/order_watch.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/trace/program_trace.hpp"

namespace dapple::soft {
namespace {

// The index of another address may change while it is looked up.
constexpr int kHoldTries = 3;

// The addresses that a refusal has room for.
constexpr int kShownGids = 8;

}  // namespace

std::nullptr_t failed(int error) {
  errno = error;
  return nullptr;
}

int refused(int error) {
  errno = error;
  return error;
}

namespace {

int refuse_use(const char* object) {
  return refuse(EINVAL, "the %s has ended, and this is an import of it.\nEnd it when no import is in use any more.",
                object);
}

}  // namespace

int check_lives(ibv_pd* pd) {
  return original_of<Pd>(pd)->importing.end != ObjectEnd::kNone ? refuse_use("protection domain") : 0;
}

int check_lives(const Dm& original) {
  return original.importing.end != ObjectEnd::kNone ? refuse_use("device memory") : 0;
}

int refuse_limit(Context& context, ObjectKind kind) {
  static constexpr struct {
    const char* name;
    const char* limit;
  } kNames[kObjectKinds] = {
      {"protection domains", "max_pd"},       {"memory regions", "max_mr"},
      {"memory windows", "max_mw"},           {"completion queues", "max_cq"},
      {"shared receive queues", "max_srq"},   {"queue pairs", "max_qp"},
      {"address handles", "max_ah"},          {"indirection tables", "max_rwq_indirection_tables"},
      {"completion counters", "max_counters"}};
  const auto& [name, limit] = kNames[static_cast<size_t>(kind)];
  const DeviceObjects& objects = context.objects.device();
  if (objects.count(kind) < objects.most(kind)) return refuse_memory(name);
  return refuse(ENOMEM,
                "the process has %u %s of the device, and %s is %u.\n"
                "Destroy those that are no longer needed.",
                objects.count(kind), name, limit, objects.most(kind));
}

int Context::refresh(DeviceInfo& info) {
  const CancelGuard whole;
  Problem problem;
  const uint32_t removals = ports_.gid_uses.removals();
  const bool known = ports_.link.device(device_index, info, problem);
  ports_.watch.look_for_changes();
  if (!known) {
    return refuse(problem.error != 0 ? problem.error : EIO,
                  "dappled, which owns the device, does not answer: %s.\n"
                  "Read dappled's messages, and see DAPPLE_DAPPLED in dapple-soft(7).",
                  problem.line);
  }
  // The device has gone, and another one has its index.
  if (htobe64(info.guid) != node_guid)
    return refuse(ENODEV, "the network interface of the device is gone.\nClose the device, and open another one.");
  if (ports_.outages != nullptr && ports_.outages->is_down(device_index)) info.up = 0;
  const std::lock_guard lock(info_mutex_);
  info_ = info;
  known_removals_ = removals;
  return 0;
}

int Context::look_up(DeviceInfo& info) {
  if (ports_.link.changed()) return refresh(info);
  const std::lock_guard lock(info_mutex_);
  info = info_;
  return 0;
}

bool Context::gid(uint32_t index, uint8_t gid[16]) {
  if (index >= kMaxGids) return false;
  const std::lock_guard lock(info_mutex_);
  const GidEntry& entry = info_.gids[index];
  if (entry.valid == 0) return false;
  memcpy(gid, entry.gid, 16);
  return true;
}

bool Context::is_current(uint32_t gid_index, GidEntry& entry) {
  const std::lock_guard lock(info_mutex_);
  entry = info_.gids[gid_index];
  return entry.valid != 0 && known_removals_ == ports_.gid_uses.removals();
}

ShortText Context::gids_for(const uint8_t* like) {
  ShortText list;
  int listed = 0;
  const std::lock_guard lock(info_mutex_);
  for (uint32_t i = 0; i < kMaxGids; i++) {
    const GidEntry& entry = info_.gids[i];
    const bool fits = like == nullptr || is_ipv4(like) == is_ipv4(entry.gid);
    if (entry.valid == 0 || entry.type != GidType::kRoceV2 || !fits) continue;
    if (listed++ == kShownGids) {
      list.add(", and others");
      break;
    }
    list.add("%s%u (%s)", list.empty() ? "" : ", ", i, AddressText(entry.gid).c_str());
  }
  if (list.empty()) list.add("none");
  return list;
}

int Context::hold_gid(uint32_t index, uint8_t gid[16], GidHold& hold) {
  if (index >= kMaxGids) {
    return refuse(EINVAL,
                  "grh.sgid_index is %u, and the table of GIDs has %u entries.\n"
                  "Use the index of a GID of RoCE v2 from ibv_query_gid_table(); the device has: %s.",
                  index, kMaxGids, gids_for(nullptr).c_str());
  }
  DeviceInfo info;
  if (const int error = look_up(info); error != 0) return error;
  GidEntry entry = info.gids[index];
  for (int i = 0; i < kHoldTries; i++) {
    const uint8_t base_index = entry.base_index;
    hold = ports_.gid_uses.hold(info.index, base_index);
    if (!hold) {
      return refuse(ENOMEM,
                    "the process cannot note another use of the GID with the index %u.\n"
                    "Destroy queue pairs and address handles that are no longer needed.",
                    index);
    }
    // After the hold, so that the entry is no other address' meanwhile.
    if (!is_current(index, entry)) {
      if (const int error = refresh(info); error != 0) return error;
      entry = info.gids[index];
    }
    if (entry.valid == 0) {  // ENODATA as the kernel
      return refuse(ENODATA,
                    "grh.sgid_index is %u, and the table of GIDs has no address there.\n"
                    "Use the index of a GID of RoCE v2 from ibv_query_gid_table(); the device has: %s.",
                    index, gids_for(nullptr).c_str());
    }
    // RoCE v1 has Ethernet frames of its own, which no UDP socket sends. As rxe, which has no such entries itself.
    if (entry.type != GidType::kRoceV2) {
      return refuse(EINVAL,
                    "grh.sgid_index is %u, and the GID there (%s) is of RoCE v1, which the software device does not "
                    "send.\nUse a GID of the type RoCE v2, as ibv_query_gid_ex() tells it; the device has: %s.",
                    index, AddressText(entry.gid).c_str(), gids_for(nullptr).c_str());
    }
    memcpy(gid, entry.gid, 16);
    if (entry.base_index == base_index) return 0;
  }
  return refuse(EAGAIN, "the GID with the index %u changes all the time.\nTry again when the network is stable.",
                index);
}

bool Context::resolve(const roce::AddressVector& address, Path& path) {
  if (!gid(address.source_gid_index, path.source) || is_ipv4(path.source) != is_ipv4(address.destination_gid)) {
    refuse(EINVAL, "the GID with the index %u has just been removed or changed.\nTry again with a present index.",
           address.source_gid_index);
    return false;
  }
  memcpy(path.destination, address.destination_gid, 16);
  path.flow_label = address.flow_label;
  path.hop_limit = address.hop_limit;
  path.traffic_class = address.traffic_class;
  const std::lock_guard lock(info_mutex_);
  path.netdev_index = info_.netdev_index;
  return true;
}

bool Context::has_address(uint32_t gid_index) {
  const std::lock_guard lock(info_mutex_);
  return info_.gids[gid_index].base_index != kDefaultGid || info_.has_default_address != 0;
}

// RoCEv2 has only global addresses (IBTA A17.4.5).
int Context::check_address(const ibv_ah_attr& attr, Peer peer, roce::AddressVector& address, GidHold& hold) {
  if (attr.is_global == 0) {
    return refuse(EINVAL,
                  "is_global of the address (struct ibv_ah_attr) is 0, and RoCE has no addresses without a GRH.\n"
                  "Set is_global to 1, and grh.dgid, grh.sgid_index and grh.hop_limit.");
  }
  if (attr.port_num != 1) {
    return refuse(EINVAL,
                  "port_num of the address (struct ibv_ah_attr) is %u, and the device has one port, number 1.\n"
                  "Set port_num of the address to 1.",
                  attr.port_num);
  }
  uint8_t source[16];
  const int error = hold_gid(attr.grh.sgid_index, source, hold);
  if (error != 0) return error;
  if (is_ipv4(source) != is_ipv4(attr.grh.dgid.raw)) {
    return refuse(EINVAL,
                  "grh.sgid_index is %u, whose address %s is of IPv%c, and grh.dgid is %s, of IPv%c.\n"
                  "Use the index of an address of the peer's family; the device has: %s.",
                  attr.grh.sgid_index, AddressText(source).c_str(), is_ipv4(source) ? '4' : '6',
                  AddressText(attr.grh.dgid.raw).c_str(), is_ipv4(source) ? '6' : '4',
                  gids_for(attr.grh.dgid.raw).c_str());
  }
  // The kernel has no route for the default GID then, as for rxe. Shared memory needs none.
  const bool same_host = peer == Peer::kQueuePair && memcmp(source, attr.grh.dgid.raw, sizeof source) == 0;
  if (!same_host && !has_address(attr.grh.sgid_index)) {
    return refuse(ENETUNREACH,
                  "grh.sgid_index is %u, whose GID %s is no address of the network interface, so the kernel has no "
                  "route from there.\nGive the interface this address, or use another GID; the device has: %s.",
                  attr.grh.sgid_index, AddressText(source).c_str(), gids_for(attr.grh.dgid.raw).c_str());
  }
  memcpy(address.destination_gid, attr.grh.dgid.raw, 16);
  address.flow_label = attr.grh.flow_label & 0xFFFFF;
  address.source_gid_index = attr.grh.sgid_index;
  // 0 would keep every packet on this host.
  address.hop_limit = attr.grh.hop_limit == 0 ? 64 : attr.grh.hop_limit;
  address.traffic_class = attr.grh.traffic_class;
  return 0;
}

bool Context::has_gid(const uint8_t gid[16]) {
  const std::lock_guard lock(info_mutex_);
  for (const GidEntry& entry : info_.gids) {
    if (entry.valid != 0 && memcmp(entry.gid, gid, sizeof entry.gid) == 0) return true;
  }
  return false;
}

Context::Found Context::find_qp(uint32_t qpn, ResourceRow& row) {
  const uint32_t slot = slot_of(qpn);
  ResourcesReply reply;
  Problem problem;
  for (uint32_t first = 0;; first = reply.next) {
    if (!ports_.link.resources(device_index, ResourceKind::kQp, slot, first, reply, problem)) return Found::kMaybe;
    if (reply.slot != slot) return Found::kNo;
    for (uint32_t i = 0; i < reply.count && i < ResourcesReply::kRows; i++) {
      row = reply.rows[i].row;
      if (row.number == qpn) return Found::kYes;
    }
    if (reply.next <= first) return reply.lacks_rows != 0 ? Found::kMaybe : Found::kNo;
  }
}

void Context::raise(ibv_event_type type, const void* element, EventCount& count) {
  const AsyncMessage message = {reinterpret_cast<uintptr_t>(element), static_cast<uint32_t>(type), 0};
  if (program_trace() != nullptr) trace_event(type, element);
  pipes.write(async_writer, &message, sizeof(message), count);
}

void Context::raise_port_event(ibv_event_type type) {
  const AsyncMessage message = {1, static_cast<uint32_t>(type), 0};
  if (program_trace() != nullptr) trace_event(type, nullptr);
  pipes.write(async_writer, &message, sizeof(message), port_events_);
}

void Context::opened(const DeviceInfo& info) {
  if (program_faults().disorders_writes || has_weak_order())
    order_watch.store([] { note_disturbance(Disturbance::kOrder); }, std::memory_order_relaxed);
  told_ = info;
  attributes_ = info.attributes;
  if (attributes_.max_qp <= ports_.most_queue_pairs) return;
  attributes_.max_qp = ports_.most_queue_pairs;
  const uint64_t reads = uint64_t{attributes_.max_qp_rd_atom} * attributes_.max_qp;
  attributes_.max_res_rd_atom = static_cast<uint32_t>(std::min<uint64_t>(attributes_.max_res_rd_atom, reads));
}

// IBTA 11.6.3.1 and 11.6.3.4: the events that the kernel's rxe reports for its netdev.
void Context::tell_changes() {
  DeviceInfo info;
  const int error = refresh(info);
  if (error == ENODEV && !told_gone_) {
    told_gone_ = true;
    raise_port_event(IBV_EVENT_DEVICE_FATAL);
  }
  if (error != 0) return;
  if (memcmp(told_.gids, info.gids, sizeof(info.gids)) != 0) raise_port_event(IBV_EVENT_GID_CHANGE);
  if (told_.up != info.up) raise_port_event(info.up != 0 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  told_ = info;
}

void Context::withdraw(const void* element, EventCount& count) {
  pipes.remove(ibv->async_fd, async_writer, sizeof(AsyncMessage), reinterpret_cast<uintptr_t>(element), count);
}

}  // namespace dapple::soft
