// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink/counters.hpp"

#include <errno.h>
#include <rdma/rdma_netlink.h>

#include "provider/preload/doors/netlink/parts.hpp"
#include "provider/preload/doors/netlink/resources.hpp"
#include "provider/protocol/resource_messages.hpp"

namespace dapple::doors {

using soft::ResourceKind;

int put_resource_counts(Answers& answers, const NetlinkRequest& request, uint16_t flags,
                        const soft::DeviceInfo& device) {
  soft::ResourceCountsReply reply;
  const int error = ask([&](soft::DaemonLink& link, soft::Problem& problem) {
    return link.resource_counts(device.index, reply, problem);
  });
  if (error != 0) return error;
  const auto of = [&](ResourceKind kind) { return reply.counts[static_cast<size_t>(kind)]; };
  // In the kernel's order.
  const struct {
    const char* name;
    uint64_t count;
  } kCounts[] = {
      {"pd", of(ResourceKind::kPd)},   {"cq", of(ResourceKind::kCq)},     {"qp", of(ResourceKind::kQp)},
      {"cm_id", reply.cm_ids},         {"mr", of(ResourceKind::kRegion)}, {"ctx", of(ResourceKind::kContext)},
      {"srq", of(ResourceKind::kSrq)},
  };
  answers.begin(request.header->nlmsg_type, flags, request.header->nlmsg_seq);
  put_handle(answers, device);
  const size_t table = answers.begin_nest(RDMA_NLDEV_ATTR_RES_SUMMARY);
  for (const auto& one : kCounts) {
    const size_t entry = answers.begin_nest(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
    answers.put_text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, one.name);
    answers.put_u64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, one.count);
    answers.end_nest(entry);
  }
  answers.end_nest(table);
  answers.end();
  return 0;
}

namespace {

// An entry takes 52 bytes at most.
constexpr size_t kCountersSize = 120 + 52 * soft::HwCountersReply::kCounters;

// Calls put(counter, its index) for each counter of the port.
template <typename Put>
int put_hw_counters(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device, Put put) {
  soft::HwCountersReply reply;
  const int error = ask(
      [&](soft::DaemonLink& link, soft::Problem& problem) { return link.hw_counters(device.index, reply, problem); });
  if (error != 0) return error;
  answers.begin(request.header->nlmsg_type, 0, request.header->nlmsg_seq, kCountersSize);
  put_handle(answers, device);
  answers.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, request.port);
  const size_t table = answers.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  for (uint32_t i = 0; i < reply.count && i < soft::HwCountersReply::kCounters; i++) {
    soft::HwCounter& counter = reply.counters[i];
    counter.name[sizeof counter.name - 1] = '\0';
    put(counter, i);
  }
  answers.end_nest(table);
  answers.end();
  return 0;
}

}  // namespace

int answer_statistic(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device) {
  if (request.has_counted && request.counted == RDMA_NLDEV_ATTR_RES_MR)
    return answer_region_statistic(answers, request, device);
  // No other object has counters of its own, so a list of those is empty.
  if (request.dump) return request.has_counted ? 0 : EINVAL;
  if (request.has_counted) return EOPNOTSUPP;
  if (!request.has_port) return EINVAL;
  const auto put = [&](const soft::HwCounter& counter, uint32_t) { put_counter(answers, counter.name, counter.value); };
  return put_hw_counters(answers, request, device, put);
}

// No counter is optional.
int answer_statistic_mode(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device) {
  if (!request.has_port) return EINVAL;
  const auto put = [&](const soft::HwCounter& counter, uint32_t index) {
    const size_t entry = answers.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    answers.put_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, counter.name);
    answers.put_u32(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
    answers.end_nest(entry);
  };
  return put_hw_counters(answers, request, device, put);
}

}  // namespace dapple::doors
