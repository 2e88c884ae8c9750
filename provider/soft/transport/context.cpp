// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/context.hpp"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/soft/trace/program_trace.hpp"

namespace dapple::soft {
namespace {

// The index of another address may change while it is looked up.
constexpr int kHoldTries = 3;

bool is_ipv4(const uint8_t gid[16]) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return memcmp(gid, kMapped, sizeof(kMapped)) == 0;
}

}  // namespace

std::nullptr_t failed(int error) {
  errno = error;
  return nullptr;
}

int refused(int error) {
  errno = error;
  return error;
}

int Context::refresh(DeviceInfo& info) {
  const CancelGuard whole;
  Problem problem;
  const uint32_t removals = ports_.gid_uses.removals();
  const bool known = ports_.link.device(device_index, info, problem);
  ports_.watch.look_for_changes();
  if (!known) return problem.error != 0 ? problem.error : EIO;
  // The device has gone, and another one has its index.
  if (htobe64(info.guid) != node_guid) return ENODEV;
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

bool Context::is_roce_v1(uint32_t gid_index) {
  const std::lock_guard lock(info_mutex_);
  return gid_index < kMaxGids && info_.gids[gid_index].valid != 0 && info_.gids[gid_index].type == GidType::kRoceV1;
}

int Context::hold_gid(uint32_t index, uint8_t gid[16], GidHold& hold) {
  if (index >= kMaxGids) return EINVAL;
  DeviceInfo info;
  if (const int error = look_up(info); error != 0) return error;
  GidEntry entry = info.gids[index];
  for (int i = 0; i < kHoldTries; i++) {
    const uint8_t base_index = entry.base_index;
    hold = ports_.gid_uses.hold(info.index, base_index);
    if (!hold) return ENOMEM;
    // After the hold, so that the entry is no other address' meanwhile.
    if (!is_current(index, entry)) {
      if (const int error = refresh(info); error != 0) return error;
      entry = info.gids[index];
    }
    if (entry.valid == 0) return ENODATA;  // as the kernel
    // RoCE v1 has Ethernet frames of its own, which no UDP socket sends. As rxe, which has no such entries itself.
    if (entry.type != GidType::kRoceV2) return EINVAL;
    memcpy(gid, entry.gid, 16);
    if (entry.base_index == base_index) return 0;
  }
  return EAGAIN;
}

bool Context::resolve(const roce::AddressVector& address, Path& path) {
  if (!gid(address.source_gid_index, path.source)) return false;
  if (is_ipv4(path.source) != is_ipv4(address.destination_gid)) return false;
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
  if (attr.is_global == 0 || attr.port_num != 1) return EINVAL;
  uint8_t source[16];
  const int error = hold_gid(attr.grh.sgid_index, source, hold);
  if (error != 0) return error;
  if (is_ipv4(source) != is_ipv4(attr.grh.dgid.raw)) return EINVAL;
  // The kernel has no route for the default GID then, as for rxe. Shared memory needs none.
  const bool same_host = peer == Peer::kQueuePair && memcmp(source, attr.grh.dgid.raw, sizeof source) == 0;
  if (!same_host && !has_address(attr.grh.sgid_index)) return ENETUNREACH;
  memcpy(address.destination_gid, attr.grh.dgid.raw, 16);
  address.flow_label = attr.grh.flow_label & 0xFFFFF;
  address.source_gid_index = attr.grh.sgid_index;
  // 0 would keep every packet on this host.
  address.hop_limit = attr.grh.hop_limit == 0 ? 64 : attr.grh.hop_limit;
  address.traffic_class = attr.grh.traffic_class;
  return 0;
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
