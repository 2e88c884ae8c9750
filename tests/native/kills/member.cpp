// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/kills/member.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/native/clock.hpp"
#include "tests/native/verbs/pair.hpp"

namespace dapple::tests {
namespace {

constexpr uint32_t kReceives = 32;
constexpr uint32_t kSends = 12;
constexpr uint32_t kSlotSize = 8192;
constexpr uint32_t kWriteSize = 32 * 1024;
constexpr uint32_t kReadSize = 4096;
constexpr uint32_t kPlacedSize = 256 * 1024;
constexpr uint32_t kPlacedSends = 2;  // more of them would go as packets
// 134 ms, seven times: a busy machine must not look like a dead peer.
constexpr uint8_t kTimeout = 15;
constexpr double kFlushPatience = 15;  // seconds
// The flag in work request ids; the other bits are the number.
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

struct Buffers {
  alignas(4096) char receives[kReceives][kSlotSize];
  char sends[kSends][kSlotSize];
  char written[kPlacedSize];  // written by the peer
  char out[kPlacedSize];
  char in[kPlacedSize];
};

struct Hello {
  uint32_t qpn;
  uint32_t rkey;
  uint64_t address;
};

class Member {
 public:
  Member(int peer, Traffic traffic, MemberNews& news, const std::atomic<bool>& stop)
      : peer_(peer), traffic_(traffic), news_(news), stop_(stop) {}

  MemberEnd run() {
    if (!open()) return kFailed;
    const MemberEnd end = talk();
    return close(end);
  }

 private:
  __attribute__((format(printf, 2, 3))) bool fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (news_.problem[0] == '\0') vsnprintf(news_.problem, sizeof news_.problem, format, arguments);
    va_end(arguments);
    return false;
  }

  bool open() {
    context_ = open_loopback();
    if (context_ == nullptr) {
      const int error = errno;
      int count = 0;
      ibv_device** list = ibv_get_device_list(&count);
      if (list != nullptr) ibv_free_device_list(list);
      return fail("no device: %s; %d are listed now", strerror(error), list != nullptr ? count : -1);
    }
    pd_ = ibv_alloc_pd(context_);
    buffers_ = new Buffers{};
    mr_ = pd_ == nullptr ? nullptr : ibv_reg_mr(pd_, buffers_, sizeof *buffers_, static_cast<int>(kPeerRights));
    cq_ = ibv_create_cq(context_, 256, nullptr, nullptr, 0);
    if (mr_ == nullptr || cq_ == nullptr) return fail("no region or queue: %s", strerror(errno));
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {kSends, kReceives, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    qp_ = ibv_create_qp(pd_, &attr);
    return qp_ != nullptr || fail("no queue pair: %s", strerror(errno));
  }

  bool exchange(const Hello& mine, Hello& theirs) {
    return send(peer_, &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine &&
           recv(peer_, &theirs, sizeof theirs, 0) == sizeof theirs;
  }

  MemberEnd talk() {
    const Hello mine = {qp_->qp_num, mr_->rkey, reinterpret_cast<uintptr_t>(buffers_)};
    Hello again;
    if (!exchange(mine, theirs_)) return kPeerGone;
    if (!connect(qp_, theirs_.qpn, kTimeout)) return fail("connect: %s", strerror(errno)), kFailed;
    for (uint32_t i = 0; i < kReceives; i++) {
      if (!post_receive(i)) return kFailed;
    }
    if (!exchange(mine, again)) return kPeerGone;
    while (!stop_.load(std::memory_order_relaxed)) {
      if (!post_sends() || !poll()) return kFailed;
      if (broken_) return kBroken;
    }
    return kStopped;
  }

  bool post_receive(uint32_t place) {
    ibv_sge piece = {reinterpret_cast<uintptr_t>(buffers_->receives[place]), kSlotSize, mr_->lkey};
    ibv_recv_wr wr = {};
    wr.wr_id = kReceiveBit | place;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    ibv_recv_wr* bad;
    if (const int error = ibv_post_recv(qp_, &wr, &bad)) return fail("ibv_post_recv: %s", strerror(error));
    receives_++;
    return true;
  }

  ibv_wr_opcode opcode_of(uint64_t number) const {
    const uint64_t kind = number % 5;
    if (traffic_ == Traffic::kPlaced)
      return number % 16 == 15 ? IBV_WR_SEND : kind == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    return kind == 0 ? IBV_WR_RDMA_WRITE : kind == 1 ? IBV_WR_RDMA_READ : IBV_WR_SEND;
  }

  bool post_sends() {
    for (; sends_ < (traffic_ == Traffic::kPlaced ? kPlacedSends : kSends); posted_++) {
      const uint32_t place = static_cast<uint32_t>(posted_ % kSends);
      const bool placed = traffic_ == Traffic::kPlaced;
      ibv_sge piece = {reinterpret_cast<uintptr_t>(buffers_->out), placed ? kPlacedSize : kWriteSize, mr_->lkey};
      ibv_send_wr wr = {};
      wr.wr_id = posted_;
      wr.sg_list = &piece;
      wr.num_sge = 1;
      wr.wr.rdma.rkey = theirs_.rkey;
      wr.opcode = opcode_of(posted_);
      switch (wr.opcode) {
        case IBV_WR_RDMA_WRITE:
          wr.wr.rdma.remote_addr = theirs_.address + offsetof(Buffers, written);
          break;
        case IBV_WR_RDMA_READ:
          wr.wr.rdma.remote_addr = theirs_.address + offsetof(Buffers, out);
          piece.addr = reinterpret_cast<uintptr_t>(buffers_->in);
          piece.length = placed ? kPlacedSize : kReadSize;
          break;
        default:
          memcpy(buffers_->sends[place], &sent_, sizeof sent_);
          piece.addr = reinterpret_cast<uintptr_t>(buffers_->sends[place]);
          piece.length = static_cast<uint32_t>(64 + posted_ * 977 % (kSlotSize - 64));
          sent_++;
      }
      ibv_send_wr* bad;
      if (const int error = ibv_post_send(qp_, &wr, &bad)) return fail("ibv_post_send: %s", strerror(error));
      sends_++;
    }
    return true;
  }

  bool poll() {
    ibv_wc completions[16];
    const int count = ibv_poll_cq(cq_, 16, completions);
    if (count < 0) return fail("ibv_poll_cq: %d", count);
    for (int i = 0; i < count; i++) {
      if (!complete(completions[i])) return false;
    }
    return true;
  }

  bool complete(const ibv_wc& wc) {
    const bool receive = (wc.wr_id & kReceiveBit) != 0;
    (receive ? receives_ : sends_)--;
    // IBTA 11.6.2: a queue pair completes in order.
    if (!receive && wc.wr_id != completed_++) return fail("request %llu completes out of order", as_number(wc.wr_id));
    if (wc.status == IBV_WC_SUCCESS) {
      if (broken_) return fail("success after an error");
      news_.completions.fetch_add(1, std::memory_order_relaxed);
      return !receive || take(static_cast<uint32_t>(wc.wr_id & ~kReceiveBit));
    }
    if (wc.status == IBV_WC_RETRY_EXC_ERR && !broken_ && !receive) {
      news_.retries_exceeded++;
    } else if (wc.status == IBV_WC_WR_FLUSH_ERR) {
      news_.flushed++;
    } else {
      return fail("%s with %s", receive ? "receive" : "send", ibv_wc_status_str(wc.status));
    }
    broken_ = true;
    return true;
  }

  bool take(uint32_t place) {
    uint64_t number;
    memcpy(&number, buffers_->receives[place], sizeof number);
    if (number != expected_) return fail("message %llu instead of %llu", as_number(number), as_number(expected_));
    expected_++;
    return post_receive(place);
  }

  // Every posted request completes.
  bool drain() {
    if (!broken_ && !to_error(qp_)) return fail("to error: %s", strerror(errno));
    const double end = now() + kFlushPatience;
    broken_ = true;
    while (sends_ + receives_ > 0) {
      if (!poll_flushed()) return false;
      if (now() > end) return fail("%u sends and %u receives are not flushed", sends_, receives_);
    }
    return true;
  }

  bool poll_flushed() {
    ibv_wc wc;
    const int count = ibv_poll_cq(cq_, 1, &wc);
    if (count <= 0) return count == 0 || fail("ibv_poll_cq: %d", count);
    // The requests that succeeded before the flush began.
    const bool was_broken = broken_;
    if (wc.status == IBV_WC_SUCCESS) broken_ = false;
    const bool receive = (wc.wr_id & kReceiveBit) != 0;
    if (wc.status == IBV_WC_SUCCESS && receive) {
      receives_--;
    } else if (!complete(wc)) {
      return false;
    }
    broken_ = was_broken;
    return true;
  }

  MemberEnd close(MemberEnd end) {
    const bool talked = end == kBroken || end == kStopped;
    if (talked && !drain()) end = kFailed;
    const bool gone = ibv_destroy_qp(qp_) == 0 && ibv_destroy_cq(cq_) == 0 && ibv_dereg_mr(mr_) == 0 &&
                      ibv_dealloc_pd(pd_) == 0 && ibv_close_device(context_) == 0;
    if (!gone) {
      fail("something cannot be destroyed: %s", strerror(errno));
      end = kFailed;
    }
    delete buffers_;
    return end;
  }

  static unsigned long long as_number(uint64_t number) { return number; }

  const int peer_;
  const Traffic traffic_;
  MemberNews& news_;
  const std::atomic<bool>& stop_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  Buffers* buffers_ = nullptr;
  Hello theirs_ = {};
  uint32_t sends_ = 0, receives_ = 0;  // not completed
  uint64_t posted_ = 0, completed_ = 0, sent_ = 0, expected_ = 0;
  bool broken_ = false;
};

}  // namespace

MemberEnd live(int peer, Traffic traffic, MemberNews& news, const std::atomic<bool>& stop) {
  return Member(peer, traffic, news, stop).run();
}

}  // namespace dapple::tests
