// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/process.hpp"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "tests/sim/threads/host.hpp"

// --- dappled, and the network, where nothing ever happens

namespace dapple::soft {
namespace {

SlotPages* own_pages;

}  // namespace

bool DaemonConnection::open(Problem&, bool&) {
  fd_.store(eventfd(0, 0));
  return true;
}

std::unique_ptr<DaemonLink> DaemonLink::open(Problem& problem, Start start) {
  std::unique_ptr<DaemonLink> made(new DaemonLink(start));
  bool nobody = false;
  made->connection_.open(problem, nobody);
  return made;
}

bool DaemonLink::slot(Slot& slot, Problem&) {
  slot.number = 1 + static_cast<uint32_t>(sim::sim_kernel()->process());
  slot.lease = socket(AF_UNIX, SOCK_STREAM, 0);
  char name[32];
  snprintf(name, sizeof name, "%s%u", kSlotName, slot.number);
  sockaddr_un address;
  const socklen_t size = abstract_address(name, address);
  bind(slot.lease, reinterpret_cast<const sockaddr*>(&address), size);
  auto* pages = own_pages = new SlotPages();
  slot.counters = &pages->counters;
  slot.devices = &pages->devices;
  slot.transports = &pages->transports;
  slot.gid_uses = &pages->gid_uses;
  slot.resources = &pages->resources;
  return true;
}

// Both processes have the same address.
bool DaemonLink::device(uint32_t index, DeviceInfo& info, Problem&) {
  info = {};
  info.index = index;
  info.guid = 1;
  info.netdev_index = 1;
  info.netdev_mtu = 1500;
  info.up = 1;
  constexpr uint8_t kLocal[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
  memcpy(info.gids[0].gid, kLocal, sizeof kLocal);
  info.gids[0].valid = 1;
  return true;
}

bool DaemonLink::check(Problem&) {
  return true;
}
DaemonLink::State DaemonLink::look() {
  return State::kConnected;
}
void DaemonLink::fork_child() {}
bool DaemonLink::resources(uint32_t, ResourceKind, uint32_t, uint32_t, ResourcesReply&, Problem&) {
  return false;
}
bool DaemonLink::open_xrc(XrcHold&, uint32_t, XrcOutcome&, Problem&) {
  return false;
}
void DaemonLink::close_xrc(XrcHold&) {}

struct UdpWire::Room {};

std::unique_ptr<UdpWire> UdpWire::open(const Slot&, Problem&, Environment) {
  std::unique_ptr<UdpWire> made(new UdpWire);
  made->slot_.receive_socket = eventfd(0, 0);
  return made;
}
UdpWire::~UdpWire() = default;
SendBatch* UdpWire::make_batch() {
  return nullptr;
}
size_t UdpWire::receive(ArrivalSink&) {
  return 0;
}
int UdpWire::receive_fd() const {
  return slot_.receive_socket;
}
void UdpWire::expect_datagrams() {}
int UdpWire::join(const uint8_t*, uint32_t) {
  return 0;
}
int UdpWire::leave(const uint8_t*, uint32_t) {
  return 0;
}

// --- libibverbs

namespace {

struct OpenDevice {
  ibv_device device = {};
  ibv_context ibv = {};
  Context* context = nullptr;  // context_of() looks for it here
};
OpenDevice* open_device;

}  // namespace

// The writing end has the next number in this kernel.
int channel_writer(const ibv_comp_channel* channel) {
  return channel->fd + 1;
}
int renew_async_events(int, int) {
  return -1;
}

}  // namespace dapple::soft

namespace dapple::sim {

using namespace dapple::soft;

ibv_context* device() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (open_device != nullptr) return &open_device->ibv;
  auto* made = new OpenDevice;
  strcpy(made->device.name, "dapple0");
  int ends[2];
  sim_kernel()->pipe(ends);
  made->ibv.device = &made->device;
  made->ibv.async_fd = ends[0];
  made->ibv.num_comp_vectors = 1;
  made->context = make_context({.ibv = &made->ibv,
                                .device_name = made->device.name,
                                .node_guid = uint64_t{1} << 56,
                                .device_index = kFirstDeviceIndex,
                                .async_writer = ends[1],
                                .has_wr_flush = false});
  if (made->context == nullptr) sim_host()->fail("the device cannot be opened");
  open_device = made;
  return &made->ibv;
}

const char* refused_right() {
  const SlotTransports& transports = own_pages->transports;
  for (uint32_t i = 0; i < end_of_rows(transports); i++) {
    TransportRow row;
    if (transports.rows[i].read(row) && row.right > Right::kGranted) return name_of(row.right).key;
  }
  return nullptr;
}

void rest(uint64_t nanoseconds) {
  const timespec time = {0, static_cast<long>(nanoseconds)};
  nanosleep(&time, nullptr);
}

Endpoint::Endpoint(const Options& options) : size_(options.message), type_(options.type), receives_(options.receives) {
  ibv_context* const context = device();
  int ends[2];
  sim_kernel()->pipe(ends);
  channel_.context = context;
  channel_.fd = ends[0];
  if (ends[1] != ends[0] + 1) sim_host()->fail("the ends of a channel have numbers that are not neighbours");
  pd_ = verbs::alloc_pd(context);
  cq_ = verbs::create_cq(context, static_cast<int>(4 * kDepth), &channel_, 0);
  cq_->channel = &channel_;
  pthread_mutex_init(&cq_->mutex, nullptr);
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq_;
  attr.qp_type = type_;
  attr.cap = {kDepth, kDepth, 1, 1, 0};
  qp_ = verbs::create_qp(pd_, &attr);
  const size_t bytes = 2 * kDepth * size_ + 2 * kWrites * kLongestWrite;
  memory_ = new (std::align_val_t{64}) std::byte[bytes]();
  mr_ = verbs::reg_mr(pd_, memory_, bytes, reinterpret_cast<uintptr_t>(memory_),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (qp_ == nullptr || mr_ == nullptr) sim_host()->fail("no queue pair");
}

void Endpoint::connect(uint32_t peer) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  int error = verbs::modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (uint32_t i = 0; i < receives_; i++) post_receive(i);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.rq_psn = attr.sq_psn = 100;
  attr.min_rnr_timer = 1;  // 10 microseconds
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  constexpr uint8_t kLocal[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
  memcpy(attr.ah_attr.grh.dgid.raw, kLocal, sizeof kLocal);
  const bool is_reliable = type_ == IBV_QPT_RC;
  error |= verbs::modify_qp(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                (is_reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
  attr.qp_state = IBV_QPS_RTS;
  // Without a time-out, nothing repairs a packet that waits.
  attr.timeout = 0;
  attr.retry_cnt = attr.rnr_retry = 7;
  error |= verbs::modify_qp(
      qp_, &attr,
      IBV_QP_STATE | IBV_QP_SQ_PSN |
          (is_reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
  if (error != 0) sim_host()->fail("the queue pair cannot be connected");
}

ibv_sge Endpoint::piece(const std::byte* at, size_t size) const {
  return {reinterpret_cast<uintptr_t>(at), static_cast<uint32_t>(size), mr_->lkey};
}

void Endpoint::post_receive(uint32_t slot) {
  ibv_sge sge = piece(room(slot, true), size_);
  ibv_recv_wr request = {slot | 1u << 31, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  if (verbs::post_recv<verbs::Program::kPlain>(qp_, &request, &bad) != 0) sim_host()->fail("a receive is refused");
}

void Endpoint::post_send(uint32_t slot, uint64_t number) {
  memcpy(room(slot, false), &number, sizeof number);
  ibv_sge sge = piece(room(slot, false), size_);
  ibv_send_wr request = {};
  request.wr_id = slot;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  post(request, sge);
}

void Endpoint::post_write(const Target& peer, uint32_t place, size_t size, std::byte byte) {
  std::byte* const bytes = messages_end() + (kWrites + place) * kLongestWrite;
  memset(bytes, std::to_integer<int>(byte), size);
  ibv_sge sge = piece(bytes, size);
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma = {peer.address + place * kLongestWrite, peer.key};
  post(request, sge);
}

void Endpoint::post(ibv_send_wr& request, ibv_sge& piece) {
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  if (verbs::post_send<verbs::Program::kPlain>(qp_, &request, &bad) != 0) sim_host()->fail("a request is refused");
}

Endpoint::Completion Endpoint::poll() {
  ibv_wc found = {};
  const int count = verbs::poll_cq<verbs::Program::kPlain>(cq_, 1, &found);
  if (count == 0) return {};
  if (found.status != IBV_WC_SUCCESS) sim_host()->fail("a request ends with status %d", found.status);
  sim_host()->progress();
  return {true, (found.wr_id & 1u << 31) != 0, static_cast<uint32_t>(found.wr_id & 0xFFFF)};
}

uint64_t Endpoint::received(uint32_t slot) const {
  uint64_t number;
  memcpy(&number, room(slot, true), sizeof number);
  return number;
}

void Endpoint::arm() {
  verbs::req_notify_cq(cq_, 0);
}

void Endpoint::await_event() {
  pollfd waiting = {channel_.fd, POLLIN, 0};
  ::poll(&waiting, 1, -1);
  uint64_t element;
  [[maybe_unused]] const ssize_t got = read(channel_.fd, &element, sizeof element);
}

}  // namespace dapple::sim
