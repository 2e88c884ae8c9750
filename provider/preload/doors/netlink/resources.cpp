// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink/resources.hpp"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "provider/preload/doors/netlink/capabilities.hpp"
#include "provider/preload/doors/netlink/parts.hpp"
#include "provider/protocol/resource_messages.hpp"

namespace dapple::doors {
namespace {

// A path never migrates.
constexpr uint8_t kMigrated = 0;

using soft::ResourceKind;
using soft::ShownCmId;
using soft::ShownResource;

// The attributes of one kind, as the kernel's table of them.
struct Kind {
  unsigned operation;
  uint16_t table;
  uint16_t entry;
  ResourceKind kind;  // kNone: the ids of rdma_cm
};

constexpr Kind kKinds[] = {
    {RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, ResourceKind::kQp},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, ResourceKind::kNone},
    {RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY, ResourceKind::kCq},
    {RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY, ResourceKind::kRegion},
    {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY, ResourceKind::kPd},
    {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY, ResourceKind::kContext},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, ResourceKind::kSrq},
};

const Kind* kind_of(unsigned operation) {
  for (const Kind& kind : kKinds) {
    if (kind.operation == operation) return &kind;
  }
  return nullptr;
}

// The kernel leaves out the number of an object without a row here, and that of an invisible process.
void put_known(Answers& answers, uint16_t attribute, uint32_t number) {
  if (number != 0) answers.put_u32(attribute, number);
}

void put_queue_pair(Answers& answers, const ShownResource& shown) {
  const soft::ResourceRow& row = shown.row;
  const bool connected = row.type == IB_UVERBS_QPT_RC || row.type == IB_UVERBS_QPT_UC;
  put_known(answers, RDMA_NLDEV_ATTR_PORT_INDEX, row.port);
  answers.put_u32(RDMA_NLDEV_ATTR_RES_LQPN, row.number);
  put_known(answers, RDMA_NLDEV_ATTR_RES_PDN, row.pd);
  if (connected) {
    answers.put_u32(RDMA_NLDEV_ATTR_RES_RQPN, row.remote_qpn);
    answers.put_u32(RDMA_NLDEV_ATTR_RES_RQ_PSN, row.receive_psn);
  }
  answers.put_u32(RDMA_NLDEV_ATTR_RES_SQ_PSN, row.send_psn);
  if (connected) answers.put_u8(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, kMigrated);
  answers.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, row.type);
  answers.put_u8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<uint8_t>(row.state));
}

void put_object(Answers& answers, const ShownResource& shown, bool shows_keys) {
  const soft::ResourceRow& row = shown.row;
  switch (row.kind) {
    case ResourceKind::kQp:
      return put_queue_pair(answers, shown);
    case ResourceKind::kCq:
      answers.put_u32(RDMA_NLDEV_ATTR_RES_CQE, row.number);
      answers.put_u64(RDMA_NLDEV_ATTR_RES_USECNT, shown.users);
      answers.put_u8(RDMA_NLDEV_ATTR_DEV_DIM, 0);
      answers.put_u32(RDMA_NLDEV_ATTR_RES_CQN, shown.number);
      return put_known(answers, RDMA_NLDEV_ATTR_RES_CTXN, row.context);
    case ResourceKind::kRegion:
      if (shows_keys) {
        answers.put_u32(RDMA_NLDEV_ATTR_RES_RKEY, row.number);
        answers.put_u32(RDMA_NLDEV_ATTR_RES_LKEY, row.number);
      }
      answers.put_u64(RDMA_NLDEV_ATTR_RES_MRLEN, row.length);
      answers.put_u32(RDMA_NLDEV_ATTR_RES_MRN, shown.number);
      return put_known(answers, RDMA_NLDEV_ATTR_RES_PDN, row.pd);
    case ResourceKind::kPd:
      answers.put_u64(RDMA_NLDEV_ATTR_RES_USECNT, shown.users);
      answers.put_u32(RDMA_NLDEV_ATTR_RES_PDN, shown.number);
      return put_known(answers, RDMA_NLDEV_ATTR_RES_CTXN, row.context);
    case ResourceKind::kContext:
      return answers.put_u32(RDMA_NLDEV_ATTR_RES_CTXN, shown.number);
    case ResourceKind::kSrq:
      answers.put_u32(RDMA_NLDEV_ATTR_RES_SRQN, shown.number);
      answers.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, IB_UVERBS_SRQT_BASIC);
      put_known(answers, RDMA_NLDEV_ATTR_RES_PDN, row.pd);
      // Its queue pairs, none of which are listed: iproute2 shows nothing without the table.
      return answers.end_nest(answers.begin_nest(RDMA_NLDEV_ATTR_RES_QP | NLA_F_NESTED));
    default:
      return;
  }
}

void put_address(Answers& answers, uint16_t attribute, const sockaddr_in6& address) {
  if (address.sin6_family == 0) return;
  sockaddr_storage storage = {};
  memcpy(&storage, &address, sizeof address);
  answers.put(attribute, &storage, sizeof storage);
}

void put_cm_id(Answers& answers, const ShownCmId& id) {
  answers.put_u32(RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  if (id.qpn != 0) {
    answers.put_u32(RDMA_NLDEV_ATTR_RES_LQPN, id.qpn);
    answers.put_u8(RDMA_NLDEV_ATTR_RES_TYPE, id.qp_type);
  }
  answers.put_u32(RDMA_NLDEV_ATTR_RES_PS, id.port_space);
  answers.put_u8(RDMA_NLDEV_ATTR_RES_STATE, id.state);
  put_address(answers, RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.source);
  put_address(answers, RDMA_NLDEV_ATTR_RES_DST_ADDR, id.destination);
  answers.put_u32(RDMA_NLDEV_ATTR_RES_CM_IDN, id.number);
  put_known(answers, RDMA_NLDEV_ATTR_RES_PID, id.process);
}

// One answer: a dump, whose messages hold some entries each, or the one object that is asked for.
class Listing {
 public:
  Listing(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device, const Kind& kind)
      : answers_(answers), request_(request), device_(device), kind_(kind) {}
  ~Listing() { end_message(); }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  template <typename Put>
  void add(uint32_t number, Put put) {
    if (!request_.dump && (found_ || number != request_.id)) return;
    found_ = true;
    if (entries_ == kMaxEntries) end_message();
    if (entries_ == 0) begin_message();
    entries_++;
    const size_t entry = request_.dump ? answers_.begin_nest(kind_.entry) : 0;
    put();
    if (request_.dump) answers_.end_nest(entry);
  }
  bool found() const { return found_; }

 private:
  // An entry with two addresses takes 340 bytes.
  static constexpr uint32_t kMaxEntries = 8;
  static constexpr size_t kSize = 3000;

  void begin_message() {
    answers_.begin(request_.header->nlmsg_type, request_.dump ? NLM_F_MULTI : 0, request_.header->nlmsg_seq, kSize);
    put_handle(answers_, device_);
    table_ = request_.dump ? answers_.begin_nest(kind_.table) : 0;
  }
  void end_message() {
    if (entries_ == 0) return;
    if (request_.dump) answers_.end_nest(table_);
    answers_.end();
    entries_ = 0;
  }

  Answers& answers_;
  const NetlinkRequest& request_;
  const soft::DeviceInfo& device_;
  const Kind& kind_;
  uint32_t entries_ = 0;
  size_t table_ = 0;
  bool found_ = false;
};

int list_cm_ids(Listing& listing, Answers& answers, const soft::DeviceInfo& device) {
  uint64_t after = 0;
  soft::CmIdsReply reply;
  do {
    const int error = ask([&](soft::DaemonLink& link, soft::Problem& problem) {
      return link.cm_ids(device.index, after, reply, problem);
    });
    if (error != 0) return error;
    for (uint32_t i = 0; i < reply.count && i < soft::CmIdsReply::kIds; i++) {
      const ShownCmId& id = reply.ids[i];
      after = id.key;
      listing.add(id.number, [&] { put_cm_id(answers, id); });
    }
  } while (reply.more != 0 && reply.count != 0);
  return 0;
}

// Calls put(object, process) for each object of this kind that is listed.
template <typename Put>
int list_objects(Listing& listing, const NetlinkRequest& request, const soft::DeviceInfo& device, ResourceKind kind,
                 Put put) {
  uint32_t slot = 1, first = 0;
  while (slot < soft::kMaxSlots) {
    soft::ResourcesReply reply;
    const int error = ask([&](soft::DaemonLink& link, soft::Problem& problem) {
      return link.resources(device.index, kind, slot, first, reply, problem);
    });
    if (error != 0) return error;
    if (reply.slot == 0) break;
    for (uint32_t i = 0; i < reply.count && i < soft::ResourcesReply::kRows; i++) {
      const ShownResource& shown = reply.rows[i];
      const bool is_qp = kind == ResourceKind::kQp;
      if (is_qp && request.has_port && shown.row.port != request.port) continue;
      listing.add(is_qp ? shown.row.number : shown.number, [&] { put(shown, reply.process); });
    }
    slot = reply.next != 0 ? reply.slot : reply.slot + 1;
    first = reply.next;
  }
  return 0;
}

}  // namespace

bool asks_for_resources(const NetlinkRequest& request) {
  return kind_of(request.operation) != nullptr;
}

int answer_resources(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device) {
  const Kind& kind = *kind_of(request.operation);
  const bool of_port = kind.kind == ResourceKind::kQp || kind.kind == ResourceKind::kNone;
  if (!request.dump && (!request.has_id || of_port != request.has_port)) return EINVAL;
  Listing listing(answers, request, device, kind);
  const bool shows_keys = may_administer();
  const auto put = [&](const ShownResource& shown, uint32_t process) {
    put_object(answers, shown, shows_keys);
    put_known(answers, RDMA_NLDEV_ATTR_RES_PID, process);
  };
  const int error = kind.kind == ResourceKind::kNone ? list_cm_ids(listing, answers, device)
                                                     : list_objects(listing, request, device, kind.kind, put);
  if (error != 0) return error;
  return request.dump || listing.found() ? 0 : ENOENT;
}

// Regions without on-demand paging are listed without counters, as with mlx5.
int answer_region_statistic(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device) {
  constexpr Kind kKind = {RDMA_NLDEV_CMD_STAT_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
                          ResourceKind::kRegion};
  if (!request.dump && (!request.has_id || request.has_port)) return EINVAL;
  Listing listing(answers, request, device, kKind);
  const auto put = [&](const ShownResource& shown, uint32_t) {
    answers.put_u32(RDMA_NLDEV_ATTR_RES_MRN, shown.number);
    if (shown.row.type != soft::kOnDemandRegion) return;
    const size_t table = answers.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    put_counter(answers, "page_faults", shown.row.page_faults);
    put_counter(answers, "page_invalidations", shown.row.page_invalidations);
    put_counter(answers, "page_prefetch", shown.row.page_prefetches);
    answers.end_nest(table);
  };
  const int error = list_objects(listing, request, device, kKind.kind, put);
  if (error != 0) return error;
  return request.dump || listing.found() ? 0 : ENOENT;
}

}  // namespace dapple::doors
