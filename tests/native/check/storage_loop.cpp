// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// storage-loop server|client ADDRESS: a target of block storage and an initiator, in the manner of SPDK's NVMe over
// Fabrics. Each is one thread that polls one completion queue for all connections, and never sleeps. The target's
// receives are in a shared receive queue. It Reads what the initiator writes, and Writes what the initiator reads in
// one post with the response. The posts of one turn of the loop go out together at its end. Buffers are used again as
// soon as the protocol permits.
#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>

namespace {

constexpr uint16_t kPort = 7474;
constexpr int kConnections = 4, kDepth = 16, kSlots = kConnections * kDepth, kRounds = 60, kBatch = 32;
// An initiator that has its response may send the next command before the target polls the end of that Send.
constexpr int kJobs = 2 * kSlots;
constexpr uint32_t kBlock = 4096;
constexpr int kBlocks = 2 * kSlots;
constexpr uint8_t kReadDepth = 4;

struct Command {
  uint32_t slot;
  uint32_t is_write;
  uint32_t block;
  uint32_t rkey;
  uint64_t address;
};
struct Response {
  uint32_t slot;
};

[[noreturn]] void fail(const char* call) {
  fprintf(stderr, "storage-loop: %s: %s\n", call, strerror(errno));
  exit(1);
}
void check(bool good, const char* call) {
  if (!good) fail(call);
}

sockaddr_in address_of(const char* text) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  check(inet_pton(AF_INET, text, &address.sin_addr) == 1, "inet_pton");
  return address;
}

// What a wr_id points to.
struct Tag {
  enum class Kind { kReceive, kRead, kSend } kind;
  void* owner;
};
uint64_t id_of(Tag& tag) {
  return reinterpret_cast<uintptr_t>(&tag);
}

ibv_sge piece(void* bytes, size_t length, const ibv_mr* mr) {
  return {reinterpret_cast<uintptr_t>(bytes), static_cast<uint32_t>(length), mr->lkey};
}

// The requests of one turn of the loop.
class Posts {
 public:
  void add(ibv_send_wr& request) {
    request.next = nullptr;
    *end_ = &request;
    end_ = &request.next;
  }
  void flush(ibv_qp* qp) {
    ibv_send_wr* bad = nullptr;
    check(first_ == nullptr || ibv_post_send(qp, first_, &bad) == 0, "ibv_post_send");
    first_ = nullptr;
    end_ = &first_;
  }

 private:
  ibv_send_wr* first_ = nullptr;
  ibv_send_wr** end_ = &first_;
};

// --- The target

struct Connection;

// A command from its receive to the completion of the response. All of it is registered.
struct Job {
  Command command;
  Response response;
  char data[kBlock];
  Connection* from;
  Tag received{Tag::Kind::kReceive, this}, read{Tag::Kind::kRead, this}, answered{Tag::Kind::kSend, this};
  ibv_sge pieces[2];
  ibv_send_wr data_request, answer;
};

struct Connection {
  rdma_cm_id* id = nullptr;
  Posts posts;
  std::deque<Job*> waiting;  // for a Read
  int reads = 0, jobs = 0;
  bool is_ended = false;
};

class Target {
 public:
  explicit Target(const char* text) {
    events_ = rdma_create_event_channel();
    check(events_ != nullptr && fcntl(events_->fd, F_SETFL, O_NONBLOCK) == 0, "rdma_create_event_channel");
    check(rdma_create_id(events_, &listener_, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    sockaddr_in address = address_of(text);
    check(rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&address)) == 0, "rdma_bind_addr");
    pd_ = ibv_alloc_pd(listener_->verbs);
    cq_ = ibv_create_cq(listener_->verbs, 2 * kJobs, nullptr, nullptr, 0);
    check(pd_ != nullptr && cq_ != nullptr, "ibv_create_cq");
    ibv_srq_init_attr attr = {nullptr, {kJobs, 1, 0}};
    srq_ = ibv_create_srq(pd_, &attr);
    check(srq_ != nullptr, "ibv_create_srq");
    mr_ = ibv_reg_mr(pd_, jobs_.get(), kJobs * sizeof(Job), int{IBV_ACCESS_LOCAL_WRITE});
    check(mr_ != nullptr, "ibv_reg_mr");
    for (Job& job : std::span(jobs_.get(), kJobs)) receive(job);
    check(rdma_listen(listener_, kConnections) == 0, "rdma_listen");
  }
  ~Target() {
    ibv_destroy_srq(srq_);
    ibv_destroy_cq(cq_);
    ibv_dereg_mr(mr_);
    ibv_dealloc_pd(pd_);
    rdma_destroy_id(listener_);
    rdma_destroy_event_channel(events_);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void serve() {
    while (ended_ < kConnections) {
      take_event();
      ibv_wc completions[kBatch];
      const int count = ibv_poll_cq(cq_, kBatch, completions);
      check(count >= 0, "ibv_poll_cq");
      for (const ibv_wc& each : std::span(completions, static_cast<size_t>(count))) take(each);
      for (Connection& connection : connections_) {
        if (connection.id == nullptr) continue;
        connection.posts.flush(connection.id->qp);
        if (connection.is_ended && connection.jobs == 0) end(connection);
      }
    }
  }

 private:
  void receive(Job& job) {
    ibv_sge where = piece(&job.command, sizeof job.command, mr_);
    ibv_recv_wr request = {id_of(job.received), nullptr, &where, 1}, *bad = nullptr;
    check(ibv_post_srq_recv(srq_, &request, &bad) == 0, "ibv_post_srq_recv");
  }

  void take_event() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(events_, &event) != 0) {
      check(errno == EAGAIN, "rdma_get_cm_event");
      return;
    }
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) accept(event->id);
    if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
      auto* connection = static_cast<Connection*>(event->id->context);
      connection->is_ended = true;
      rdma_disconnect(connection->id);
    }
    rdma_ack_cm_event(event);
  }

  void accept(rdma_cm_id* id) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.srq = srq_;
    attr.cap = {3 * kDepth, 0, 1, 0, 0};
    attr.qp_type = IBV_QPT_RC;
    check(rdma_create_qp(id, pd_, &attr) == 0, "rdma_create_qp");
    Connection& connection = connections_[static_cast<size_t>(accepted_++)];
    connection.id = id;
    id->context = &connection;
    rdma_conn_param parameters = {};
    parameters.initiator_depth = kReadDepth;
    parameters.rnr_retry_count = 7;
    check(rdma_accept(id, &parameters) == 0, "rdma_accept");
  }

  void end(Connection& connection) {
    rdma_destroy_qp(connection.id);
    check(rdma_destroy_id(connection.id) == 0, "rdma_destroy_id");
    connection.id = nullptr;
    ended_++;
  }

  void take(const ibv_wc& completion) {
    const Tag& tag = *reinterpret_cast<Tag*>(completion.wr_id);
    Job& job = *static_cast<Job*>(tag.owner);
    // The initiator may have ended, when it had its last response.
    const bool is_flushed = completion.status == IBV_WC_WR_FLUSH_ERR && tag.kind == Tag::Kind::kSend;
    if (completion.status != IBV_WC_SUCCESS && !is_flushed) {
      fprintf(stderr, "storage-loop: target: %s\n", ibv_wc_status_str(completion.status));
      exit(1);
    }
    switch (tag.kind) {
      case Tag::Kind::kReceive:
        begin(job, completion.qp_num);
        break;
      case Tag::Kind::kRead: {
        Connection& connection = *job.from;
        memcpy(disk_.get() + size_t{job.command.block} * kBlock, job.data, kBlock);
        answer(job);
        connection.reads--;
        if (connection.waiting.empty()) break;
        read(*connection.waiting.front());
        connection.waiting.pop_front();
        break;
      }
      case Tag::Kind::kSend:
        job.from->jobs--;
        receive(job);
        break;
    }
  }

  void begin(Job& job, uint32_t qp_num) {
    for (Connection& each : connections_) {
      if (each.id != nullptr && each.id->qp->qp_num == qp_num) job.from = &each;
    }
    job.from->jobs++;
    if (job.command.is_write == 0) {
      memcpy(job.data, disk_.get() + size_t{job.command.block} * kBlock, kBlock);
      add_data(job, IBV_WR_RDMA_WRITE, 0);
      answer(job);
    } else if (job.from->reads == kReadDepth) {
      job.from->waiting.push_back(&job);
    } else {
      read(job);
    }
  }
  void read(Job& job) {
    job.from->reads++;
    add_data(job, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED);
  }
  void add_data(Job& job, ibv_wr_opcode opcode, unsigned flags) {
    job.pieces[0] = piece(job.data, kBlock, mr_);
    job.data_request = {};
    job.data_request.wr_id = id_of(job.read);
    job.data_request.sg_list = &job.pieces[0];
    job.data_request.num_sge = 1;
    job.data_request.opcode = opcode;
    job.data_request.send_flags = flags;
    job.data_request.wr.rdma.remote_addr = job.command.address;
    job.data_request.wr.rdma.rkey = job.command.rkey;
    job.from->posts.add(job.data_request);
  }
  void answer(Job& job) {
    job.response.slot = job.command.slot;
    job.pieces[1] = piece(&job.response, sizeof job.response, mr_);
    job.answer = {};
    job.answer.wr_id = id_of(job.answered);
    job.answer.sg_list = &job.pieces[1];
    job.answer.num_sge = 1;
    job.answer.opcode = IBV_WR_SEND;
    job.answer.send_flags = IBV_SEND_SIGNALED;
    job.from->posts.add(job.answer);
  }

  std::unique_ptr<char[]> disk_ = std::make_unique<char[]>(size_t{kBlocks} * kBlock);
  std::unique_ptr<Job[]> jobs_ = std::make_unique<Job[]>(kJobs);
  std::array<Connection, kConnections> connections_;
  rdma_event_channel* events_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  int accepted_ = 0, ended_ = 0;
};

// --- The initiator

// A command at a time, which is done when its send has completed and its response has come, in any order.
struct Slot {
  Command command;
  char data[kBlock];
  int connection;
  int round = 0;
  bool is_sent, is_answered;
  Tag sent{Tag::Kind::kSend, this};
  ibv_sge where;
  ibv_send_wr request;
};

struct Landing {
  Response response;
  int connection;
  Tag received{Tag::Kind::kReceive, this};
};

class Initiator {
 public:
  explicit Initiator(const char* text) {
    sockaddr_in address = address_of(text);
    for (rdma_cm_id*& id : ids_) {
      check(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
      check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), 2000) == 0, "rdma_resolve_addr");
      check(rdma_resolve_route(id, 2000) == 0, "rdma_resolve_route");
    }
    pd_ = ibv_alloc_pd(ids_[0]->verbs);
    cq_ = ibv_create_cq(ids_[0]->verbs, 2 * kSlots, nullptr, nullptr, 0);
    check(pd_ != nullptr && cq_ != nullptr, "ibv_create_cq");
    constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    slots_mr_ = ibv_reg_mr(pd_, slots_.get(), kSlots * sizeof(Slot), kRights);
    landings_mr_ = ibv_reg_mr(pd_, landings_.get(), kSlots * sizeof(Landing), int{IBV_ACCESS_LOCAL_WRITE});
    check(slots_mr_ != nullptr && landings_mr_ != nullptr, "ibv_reg_mr");
    for (int i = 0; i < kConnections; i++) connect(i);
  }
  ~Initiator() {
    for (rdma_cm_id* id : ids_) {
      rdma_disconnect(id);
      rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
    ibv_destroy_cq(cq_);
    ibv_dereg_mr(slots_mr_);
    ibv_dereg_mr(landings_mr_);
    ibv_dealloc_pd(pd_);
  }
  Initiator(const Initiator&) = delete;
  Initiator& operator=(const Initiator&) = delete;

  void run() {
    for (int i = 0; i < kSlots; i++) {
      slots_[i].connection = i % kConnections;
      start(slots_[i]);
    }
    while (finished_ < kSlots) {
      for (int i = 0; i < kConnections; i++) posts_[i].flush(ids_[i]->qp);
      ibv_wc completions[kBatch];
      const int count = ibv_poll_cq(cq_, kBatch, completions);
      check(count >= 0, "ibv_poll_cq");
      for (const ibv_wc& each : std::span(completions, static_cast<size_t>(count))) take(each);
    }
  }

 private:
  void connect(int connection) {
    rdma_cm_id* id = ids_[connection];
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {kDepth, kDepth, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    check(rdma_create_qp(id, pd_, &attr) == 0, "rdma_create_qp");
    for (int i = 0; i < kDepth; i++) {
      Landing& landing = landings_[connection * kDepth + i];
      landing.connection = connection;
      receive(landing);
    }
    rdma_conn_param parameters = {};
    parameters.responder_resources = kReadDepth;
    parameters.retry_count = parameters.rnr_retry_count = 7;
    check(rdma_connect(id, &parameters) == 0, "rdma_connect");
  }
  void receive(Landing& landing) {
    ibv_sge where = piece(&landing.response, sizeof landing.response, landings_mr_);
    ibv_recv_wr request = {id_of(landing.received), nullptr, &where, 1}, *bad = nullptr;
    check(ibv_post_recv(ids_[landing.connection]->qp, &request, &bad) == 0, "ibv_post_recv");
  }

  // Each slot has two blocks, which it writes and then reads in turn.
  void start(Slot& slot) {
    const auto number = static_cast<uint32_t>(&slot - slots_.get());
    const bool is_write = slot.round % 2 == 0;
    slot.command = {number, is_write, 2 * number + static_cast<uint32_t>(slot.round / 2 % 2), slots_mr_->rkey,
                    reinterpret_cast<uintptr_t>(slot.data)};
    memset(slot.data, is_write ? pattern(slot) : 0, kBlock);
    slot.is_sent = slot.is_answered = false;
    slot.where = piece(&slot.command, sizeof slot.command, slots_mr_);
    slot.request = {};
    slot.request.wr_id = id_of(slot.sent);
    slot.request.sg_list = &slot.where;
    slot.request.num_sge = 1;
    slot.request.opcode = IBV_WR_SEND;
    slot.request.send_flags = IBV_SEND_SIGNALED;
    posts_[slot.connection].add(slot.request);
  }
  static int pattern(const Slot& slot) { return 1 + (static_cast<int>(slot.command.slot) + slot.round / 2) % 250; }

  void take(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "storage-loop: initiator: %s\n", ibv_wc_status_str(completion.status));
      exit(1);
    }
    const Tag& tag = *reinterpret_cast<Tag*>(completion.wr_id);
    if (tag.kind == Tag::Kind::kSend) {
      auto& slot = *static_cast<Slot*>(tag.owner);
      slot.is_sent = true;
      finish(slot);
      return;
    }
    auto& landing = *static_cast<Landing*>(tag.owner);
    Slot& slot = slots_[landing.response.slot];
    slot.is_answered = true;
    receive(landing);
    finish(slot);
  }
  void finish(Slot& slot) {
    if (!slot.is_sent || !slot.is_answered) return;
    if (slot.command.is_write == 0) {
      for (const char byte : slot.data) {
        if (static_cast<unsigned char>(byte) == pattern(slot)) continue;
        fprintf(stderr, "storage-loop: slot %u got other bytes in round %d\n", slot.command.slot, slot.round);
        exit(1);
      }
    }
    if (++slot.round == kRounds) {
      finished_++;
    } else {
      start(slot);
    }
  }

  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(kSlots);
  std::unique_ptr<Landing[]> landings_ = std::make_unique<Landing[]>(kSlots);
  rdma_cm_id* ids_[kConnections] = {};
  Posts posts_[kConnections];
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr *slots_mr_ = nullptr, *landings_mr_ = nullptr;
  int finished_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "server") == 0) {
    Target(argv[2]).serve();
  } else if (argc == 3 && strcmp(argv[1], "client") == 0) {
    Initiator(argv[2]).run();
    printf("%d commands\n", kSlots * kRounds);
  } else {
    fputs("usage: storage-loop server|client ADDRESS\n", stderr);
    return 2;
  }
}
