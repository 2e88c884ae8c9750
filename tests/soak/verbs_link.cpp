// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections of plain verbs. The two programs exchange the numbers of their queue pairs over TCP.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "provider/system/owned_fd.hpp"
#include "tests/native/clock.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/soak/end.hpp"
#include "tests/soak/link.hpp"

namespace dapple::soak {
namespace {

using soft::OwnedFd;

constexpr int kMomentMs = 200;
constexpr int kSleepMs = 20;
constexpr timeval kAnswerTime = {60, 0};
constexpr double kFlushPatience = 60;  // seconds
// 134 ms, seven times: a busy machine must not look like a dead peer.
constexpr uint8_t kTimeout = 15;
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

sockaddr_in address_of(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void must(bool good, const char* call) {
  if (!good) call_failed(call, errno);
}

struct VerbsKey {
  uint64_t address;
  uint32_t rkey;
};

class VerbsLink : public Link {
 public:
  VerbsLink(const Place& place, int listener) : place_(place), listener_(listener) {}

  bool begin() override {
    if (place_.server ? !accept_one() : !connect_to_server()) return false;
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
    open_device();
    must((pd_ = ibv_alloc_pd(context_)) != nullptr, "ibv_alloc_pd");
    must((channel_ = ibv_create_comp_channel(context_)) != nullptr, "ibv_create_comp_channel");
    must((cq_ = ibv_create_cq(context_, kReceives + kRequests, nullptr, channel_, 0)) != nullptr, "ibv_create_cq");
    make_and_destroy_handle();
    make_queue_pair();
    return true;
  }

  void establish() override {
    const uint32_t mine = qp_->qp_num;
    uint32_t theirs = 0;
    exchange(mine, theirs);
    must(tests::connect(qp_, theirs, kTimeout), "ibv_modify_qp");
    exchange(mine, theirs);
  }

  void add(Area area, unsigned char* memory, size_t size) override {
    ibv_mr*& mr = mrs_[static_cast<size_t>(area)];
    must((mr = ibv_reg_mr(pd_, memory, size, static_cast<int>(tests::kPeerRights))) != nullptr, "ibv_reg_mr");
  }

  void drop(Area area) override {
    ibv_mr*& mr = mrs_[static_cast<size_t>(area)];
    if (mr == nullptr) return;
    if (const int error = ibv_dereg_mr(mr); error != 0) wrong("ibv_dereg_mr: %s", strerror(error));
    mr = nullptr;
  }

  Key key() override {
    const ibv_mr* mr = mrs_[static_cast<size_t>(Area::kData)];
    const VerbsKey mine = {reinterpret_cast<uintptr_t>(mr->addr), mr->rkey};
    Key key;
    memcpy(key.bytes, &mine, sizeof mine);
    return key;
  }
  void learn(const Key& key) override { memcpy(&theirs_, key.bytes, sizeof theirs_); }

  void receive(uint64_t id, size_t offset, uint32_t size) override {
    ibv_sge piece = piece_of(Area::kMessages, offset, size);
    ibv_recv_wr request = {id | kReceiveBit, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(qp_, &request, &bad); error != 0) call_failed("ibv_post_recv", error);
    receives_++;
  }

  void send(uint64_t id, size_t offset, uint32_t size) override {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_SEND;
    post(request, id, piece_of(Area::kMessages, offset, size));
  }
  void write(uint64_t id, size_t from, size_t to, uint32_t size) override {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma = {theirs_.address + to, theirs_.rkey};
    post(request, id, piece_of(Area::kData, from, size));
  }
  void read(uint64_t id, size_t to, size_t from, uint32_t size) override {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_READ;
    request.wr.rdma = {theirs_.address + from, theirs_.rkey};
    post(request, id, piece_of(Area::kData, to, size));
  }
  void atomic(uint64_t id, size_t result, size_t word, uint64_t value) override {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic.remote_addr = theirs_.address + word;
    request.wr.atomic.rkey = theirs_.rkey;
    request.wr.atomic.compare_add = value;
    post(request, id, piece_of(Area::kData, result, sizeof value));
  }

  bool next(Completion& completion) override {
    if (poll_one(completion)) return true;
    // The completions of requests that the peer still answered come first.
    if (gone_ && sends_ == 0) end_with(End::kPeerGone, "the socket of the peer is closed");
    return false;
  }

  void sleep() override {
    must(ibv_req_notify_cq(cq_, 0) == 0, "ibv_req_notify_cq");
    if (!armed_) {
      // A completion may have come before the queue was armed, so the caller looks once more.
      armed_ = true;
      return;
    }
    pollfd waiting[] = {{channel_->fd, POLLIN, 0}, {gone_ ? -1 : socket_.get(), POLLIN, 0}};
    ::poll(waiting, 2, kSleepMs);
    if (waiting[0].revents != 0) take_event();
    if (waiting[1].revents != 0) gone_ = true;
  }

  void leave() override {
    if (!place_.server) return;
    char byte;
    const ssize_t got = hear(&byte, sizeof byte);
    if (got != 0 && errno != ECONNRESET) wrong("the client does not leave: %s", got > 0 ? "data" : strerror(errno));
  }

  void close() override {
    if (qp_ != nullptr) drain();
    if (qp_ != nullptr && ibv_destroy_qp(qp_) != 0) wrong("ibv_destroy_qp: %s", strerror(errno));
    qp_ = nullptr;
    drop(Area::kData);
    drop(Area::kMessages);
    bool good = cq_ == nullptr || ibv_destroy_cq(cq_) == 0;
    good = good && (channel_ == nullptr || ibv_destroy_comp_channel(channel_) == 0);
    good = good && (pd_ == nullptr || ibv_dealloc_pd(pd_) == 0);
    good = good && (context_ == nullptr || ibv_close_device(context_) == 0);
    if (!good) wrong("a queue, a domain or the device cannot be freed: %s", strerror(errno));
    socket_.reset();
  }

 private:
  bool accept_one() {
    pollfd waiting = {listener_, POLLIN, 0};
    if (::poll(&waiting, 1, kMomentMs) <= 0) return false;
    socket_ = OwnedFd(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket_ && (errno == ECONNABORTED || errno == EINTR)) return false;
    must(static_cast<bool>(socket_), "accept");
    return true;
  }

  bool connect_to_server() {
    const sockaddr_in address = address_of(place_.port);
    socket_ = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(static_cast<bool>(socket_), "socket");
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    if (errno == ECONNREFUSED || errno == ECONNRESET) end_with(End::kRejected, "no server listens");
    call_failed("connect", errno);
  }

  // The namespace has one device, that of lo. libibverbs cannot report why the list is empty, for example because
  // there is too little memory to start dappled.
  void open_device() {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    must(list != nullptr, "ibv_get_device_list");
    if (count > 0) context_ = ibv_open_device(list[0]);
    const int error = errno;
    ibv_free_device_list(list);
    if (count == 0) end_with(End::kRefused, "no device is listed");
    if (context_ == nullptr) call_failed("ibv_open_device", error);
  }

  void make_queue_pair() {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {kRequests, kReceives, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    must((qp_ = ibv_create_qp(pd_, &attr)) != nullptr, "ibv_create_qp");
    ibv_qp_attr initial = {};
    initial.qp_state = IBV_QPS_INIT;
    initial.port_num = 1;
    initial.qp_access_flags = tests::kPeerRights;
    const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    const int error = ibv_modify_qp(qp_, &initial, mask);
    if (error != 0) call_failed("ibv_modify_qp", error);
  }

  // Nobody uses the handle. Making it must succeed, or fail for lack of memory.
  void make_and_destroy_handle() {
    ibv_ah_attr attr = {};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.hop_limit = 64;
    attr.grh.sgid_index = 1;  // the first address
    must(ibv_query_gid(context_, 1, 1, &attr.grh.dgid) == 0, "ibv_query_gid");
    ibv_ah* handle = ibv_create_ah(pd_, &attr);
    must(handle != nullptr, "ibv_create_ah");
    if (ibv_destroy_ah(handle) != 0) wrong("ibv_destroy_ah: %s", strerror(errno));
  }

  ssize_t hear(void* data, size_t size) {
    ssize_t got;
    do {
      got = recv(socket_.get(), data, size, MSG_WAITALL);
    } while (got < 0 && errno == EINTR);
    return got;
  }

  void exchange(const uint32_t& mine, uint32_t& theirs) {
    const bool sent = ::send(socket_.get(), &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine;
    const ssize_t got = sent ? hear(&theirs, sizeof theirs) : 0;
    if (got == sizeof theirs) return;
    if (got < 0 && errno == EAGAIN) wrong("the peer does not answer over TCP");
    end_with(End::kPeerGone, "the socket of the peer is closed before the connection is made");
  }

  ibv_sge piece_of(Area area, size_t offset, uint32_t size) const {
    const ibv_mr* mr = mrs_[static_cast<size_t>(area)];
    return {reinterpret_cast<uintptr_t>(mr->addr) + offset, size, mr->lkey};
  }

  void post(ibv_send_wr& request, uint64_t id, ibv_sge piece) {
    ibv_send_wr* bad = nullptr;
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    if (const int error = ibv_post_send(qp_, &request, &bad); error != 0) call_failed("ibv_post_send", error);
    sends_++;
  }

  bool poll_one(Completion& completion) {
    ibv_wc wc;
    const int count = ibv_poll_cq(cq_, 1, &wc);
    if (count < 0) wrong("ibv_poll_cq: %d", count);
    if (count == 0) return false;
    armed_ = false;
    completion.id = wc.wr_id & ~kReceiveBit;
    completion.receive = (wc.wr_id & kReceiveBit) != 0;
    completion.length = wc.byte_len;
    completion.code = wc.status;
    completion.status = wc.status == IBV_WC_SUCCESS         ? Status::kGood
                        : wc.status == IBV_WC_WR_FLUSH_ERR  ? Status::kFlushed
                        : wc.status == IBV_WC_RETRY_EXC_ERR ? Status::kRetries
                                                            : Status::kOther;
    (completion.receive ? receives_ : sends_)--;
    return true;
  }

  void take_event() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    must(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    armed_ = false;
  }

  // Every posted request completes.
  void drain() {
    if (sends_ + receives_ == 0) return;
    must(tests::to_error(qp_), "ibv_modify_qp to error");
    Completion completion;
    for (const double end = tests::now() + kFlushPatience; sends_ + receives_ > 0;) {
      if (poll_one(completion)) {
        if (completion.status == Status::kOther) wrong("completion status %d after the end", completion.code);
      } else if (tests::now() > end) {
        wrong("%u sends and %u receives are not flushed", sends_, receives_);
      }
    }
  }

  const Place place_;
  const int listener_;
  OwnedFd socket_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mrs_[kAreas] = {};
  VerbsKey theirs_ = {};
  uint32_t sends_ = 0, receives_ = 0;  // not completed
  bool armed_ = false;
  bool gone_ = false;
};

class VerbsStation : public Station {
 public:
  explicit VerbsStation(const Place& place) : place_(place) {
    if (!place.server) return;
    const sockaddr_in address = address_of(place.port);
    const int on = 1;
    listener_ = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
    must(listen(listener_.get(), 8) == 0, "listen");
  }
  std::unique_ptr<Link> link() override { return std::make_unique<VerbsLink>(place_, listener_.get()); }
  void close() override { listener_.reset(); }

 private:
  const Place place_;
  OwnedFd listener_;
};

}  // namespace

std::unique_ptr<Station> verbs_station(const Place& place) {
  return std::make_unique<VerbsStation>(place);
}

}  // namespace dapple::soak
