// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Connections of librpma.
#include <errno.h>
#include <fcntl.h>
#include <librpma.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/soak/end.hpp"
#include "tests/soak/link.hpp"

namespace dapple::soak {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kMomentMs = 200;
constexpr int kSleepMs = 20;
constexpr int kPatienceMs = 90000;
constexpr int kResolveMs = 30000;
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

void must(int result, const char* call) {
  if (result == 0) return;
  const int error = errno;
  if (result == RPMA_E_NOMEM) end_with(End::kNoMemory, "%s: %s", call, rpma_err_2str(result));
  if (result == RPMA_E_PROVIDER) call_failed(call, error, End::kRefused);
  wrong("%s: %s", call, rpma_err_2str(result));
}

// For calls that free.
void must_free(int result, const char* call) {
  if (result != 0) wrong("%s: %s, %s", call, rpma_err_2str(result), strerror(errno));
}

rpma_peer* new_peer(rpma_util_ibv_context_type type) {
  ibv_context* context = nullptr;
  rpma_peer* peer = nullptr;
  must(rpma_utils_get_ibv_context(kAddress, type, &context), "rpma_utils_get_ibv_context");
  must(rpma_peer_new(context, &peer), "rpma_peer_new");
  return peer;
}

void port_text(const Place& place, char (&text)[8]) {
  snprintf(text, sizeof text, "%u", place.port);
}

const void* context_of(uint64_t id) {
  return reinterpret_cast<const void*>(id);
}

class RpmaLink : public Link {
 public:
  // peer, listener: the server's.
  RpmaLink(const Place& place, rpma_peer* peer, rpma_ep* listener) : place_(place), peer_(peer), listener_(listener) {}

  bool begin() override {
    if (place_.server && !somebody_asks()) return false;
    rpma_conn_cfg* cfg = nullptr;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    rpma_conn_cfg_set_timeout(cfg, kResolveMs);
    rpma_conn_cfg_set_cq_size(cfg, kReceives + kRequests);
    rpma_conn_cfg_set_sq_size(cfg, kRequests);
    rpma_conn_cfg_set_rq_size(cfg, kReceives);
    const int result = place_.server ? rpma_ep_next_conn_req(listener_, cfg, &request_) : ask(cfg);
    const int error = errno;
    rpma_conn_cfg_delete(&cfg);
    errno = error;
    if (result == RPMA_E_NO_EVENT) return false;
    must(result, place_.server ? "rpma_ep_next_conn_req" : "rpma_conn_req_new");
    return true;
  }

  void establish() override {
    must(rpma_conn_req_connect(&request_, nullptr, &connection_), "rpma_conn_req_connect");
    must(rpma_conn_get_cq(connection_, &cq_), "rpma_conn_get_cq");
    make_unblocking();
    const rpma_conn_event event = await_event("the connection");
    if (event != RPMA_CONN_ESTABLISHED) end_by(event);
  }

  void add(Area area, unsigned char* memory, size_t size) override {
    constexpr int kUsage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                           RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                           RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    must(rpma_mr_reg(peer_, memory, size, kUsage, &regions_[static_cast<size_t>(area)]), "rpma_mr_reg");
  }
  void drop(Area area) override { must_free(rpma_mr_dereg(&regions_[static_cast<size_t>(area)]), "rpma_mr_dereg"); }

  Key key() override {
    Key key;
    size_t size = 0;
    must(rpma_mr_get_descriptor_size(regions_[static_cast<size_t>(Area::kData)], &size), "rpma_mr_get_descriptor_size");
    if (size + 1 > sizeof key.bytes) wrong("a descriptor of %zu bytes", size);
    key.bytes[0] = static_cast<unsigned char>(size);
    must(rpma_mr_get_descriptor(regions_[static_cast<size_t>(Area::kData)], key.bytes + 1), "rpma_mr_get_descriptor");
    return key;
  }
  void learn(const Key& key) override {
    must_free(rpma_mr_remote_delete(&theirs_), "rpma_mr_remote_delete");
    must(rpma_mr_remote_from_descriptor(key.bytes + 1, key.bytes[0], &theirs_), "rpma_mr_remote_from_descriptor");
  }

  void receive(uint64_t id, size_t offset, uint32_t size) override {
    rpma_mr_local* area = regions_[static_cast<size_t>(Area::kMessages)];
    const void* context = context_of(id | kReceiveBit);
    must(connection_ == nullptr ? rpma_conn_req_recv(request_, area, offset, size, context)
                                : rpma_recv(connection_, area, offset, size, context),
         "rpma_recv");
  }
  void send(uint64_t id, size_t offset, uint32_t size) override {
    must(rpma_send(connection_, regions_[static_cast<size_t>(Area::kMessages)], offset, size, RPMA_F_COMPLETION_ALWAYS,
                   context_of(id)),
         "rpma_send");
  }
  void write(uint64_t id, size_t from, size_t to, uint32_t size) override {
    must(rpma_write(connection_, theirs_, to, regions_[static_cast<size_t>(Area::kData)], from, size,
                    RPMA_F_COMPLETION_ALWAYS, context_of(id)),
         "rpma_write");
  }
  void read(uint64_t id, size_t to, size_t from, uint32_t size) override {
    must(rpma_read(connection_, regions_[static_cast<size_t>(Area::kData)], to, theirs_, from, size,
                   RPMA_F_COMPLETION_ALWAYS, context_of(id)),
         "rpma_read");
  }
  void atomic(uint64_t id, size_t, size_t word, uint64_t value) override {
    char bytes[RPMA_ATOMIC_WRITE_ALIGNMENT];
    memcpy(bytes, &value, sizeof bytes);
    must(rpma_atomic_write(connection_, theirs_, word, bytes, RPMA_F_COMPLETION_ALWAYS, context_of(id)),
         "rpma_atomic_write");
  }

  bool next(Completion& completion) override {
    ibv_wc wc;
    const int result = rpma_cq_get_wc(cq_, 1, &wc, nullptr);
    if (result == 0) {
      completion.id = wc.wr_id & ~kReceiveBit;
      completion.receive = (wc.wr_id & kReceiveBit) != 0;
      completion.length = wc.byte_len;
      completion.code = wc.status;
      completion.status = wc.status == IBV_WC_SUCCESS         ? Status::kGood
                          : wc.status == IBV_WC_WR_FLUSH_ERR  ? Status::kFlushed
                          : wc.status == IBV_WC_RETRY_EXC_ERR ? Status::kRetries
                                                              : Status::kOther;
      return true;
    }
    if (result != RPMA_E_NO_COMPLETION) must(result, "rpma_cq_get_wc");
    // Completions from before the event come first.
    if (has_end_event_) end_by(end_event_);
    has_end_event_ = take_event(end_event_);
    return false;
  }

  void sleep() override {
    if (has_end_event_) return;
    pollfd waiting[] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
    must(rpma_cq_get_fd(cq_, &waiting[0].fd), "rpma_cq_get_fd");
    must(rpma_conn_get_event_fd(connection_, &waiting[1].fd), "rpma_conn_get_event_fd");
    ::poll(waiting, 2, kSleepMs);
    if (waiting[0].revents == 0) return;
    const int result = rpma_cq_wait(cq_);
    if (result != RPMA_E_NO_COMPLETION) must(result, "rpma_cq_wait");
  }

  void leave() override {
    if (!place_.server) must(rpma_conn_disconnect(connection_), "rpma_conn_disconnect");
    const rpma_conn_event event = has_end_event_ ? end_event_ : await_event("the end of the connection");
    if (event != RPMA_CONN_CLOSED) end_by(event);
    if (place_.server) must(rpma_conn_disconnect(connection_), "rpma_conn_disconnect");
  }

  void close() override {
    if (request_ != nullptr) drop_request();
    if (connection_ != nullptr) {
      (void)rpma_conn_disconnect(connection_);
      must_free(rpma_conn_delete(&connection_), "rpma_conn_delete");
    }
    must_free(rpma_mr_remote_delete(&theirs_), "rpma_mr_remote_delete");
    drop(Area::kData);
    drop(Area::kMessages);
    if (!place_.server) must_free(rpma_peer_delete(&peer_), "rpma_peer_delete");
  }

 private:
  bool somebody_asks() {
    pollfd waiting = {-1, POLLIN, 0};
    must(rpma_ep_get_fd(listener_, &waiting.fd), "rpma_ep_get_fd");
    return ::poll(&waiting, 1, kMomentMs) > 0;
  }

  void drop_request() {
    const int result = rpma_conn_req_delete(&request_);
    // The client has given up or died meanwhile and taken its request back. Then it cannot be rejected, as on the
    // kernel's devices, and nobody was told: rpma-device has a test of this.
    if (place_.server && result == RPMA_E_PROVIDER && errno == EINVAL) return;
    must_free(result, "rpma_conn_req_delete");
  }

  int ask(rpma_conn_cfg* cfg) {
    char port[8];
    port_text(place_, port);
    try {
      peer_ = new_peer(RPMA_UTIL_IBV_CONTEXT_REMOTE);
    } catch (...) {
      rpma_conn_cfg_delete(&cfg);
      throw;
    }
    return rpma_conn_req_new(peer_, kAddress, port, cfg, &request_);
  }

  void make_unblocking() {
    int fd = -1;
    must(rpma_conn_get_event_fd(connection_, &fd), "rpma_conn_get_event_fd");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    must(rpma_cq_get_fd(cq_, &fd), "rpma_cq_get_fd");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }

  bool take_event(rpma_conn_event& event) {
    const int result = rpma_conn_next_event(connection_, &event);
    if (result == RPMA_E_NO_EVENT) return false;
    must(result, "rpma_conn_next_event");
    return true;
  }

  rpma_conn_event await_event(const char* what) {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    pollfd waiting = {-1, POLLIN, 0};
    must(rpma_conn_get_event_fd(connection_, &waiting.fd), "rpma_conn_get_event_fd");
    while (!take_event(event)) {
      if (::poll(&waiting, 1, kPatienceMs) == 0) wrong("%s does not come", what);
    }
    return event;
  }

  [[noreturn]] static void end_by(rpma_conn_event event) {
    const char* text = rpma_utils_conn_event_2str(event);
    switch (event) {
      case RPMA_CONN_CLOSED:
        end_with(End::kDisconnected, "%s", text);
      case RPMA_CONN_LOST:
        end_with(End::kBroken, "%s", text);
      case RPMA_CONN_REJECTED:
        end_with(End::kRejected, "%s", text);
      case RPMA_CONN_UNREACHABLE:
        end_with(End::kUnreachable, "%s", text);
      default:
        wrong("event %s of a connection", text);
    }
  }

  const Place place_;
  rpma_peer* peer_;
  rpma_ep* const listener_;
  rpma_conn_req* request_ = nullptr;
  rpma_conn* connection_ = nullptr;
  rpma_cq* cq_ = nullptr;  // the connection's
  rpma_mr_local* regions_[kAreas] = {};
  rpma_mr_remote* theirs_ = nullptr;
  rpma_conn_event end_event_ = RPMA_CONN_UNDEFINED;
  bool has_end_event_ = false;
};

class RpmaStation : public Station {
 public:
  explicit RpmaStation(const Place& place) : place_(place) {
    if (!place.server) return;
    char port[8];
    port_text(place, port);
    try {
      peer_ = new_peer(RPMA_UTIL_IBV_CONTEXT_LOCAL);
      must(rpma_ep_listen(peer_, kAddress, port, &listener_), "rpma_ep_listen");
      int fd = -1;
      must(rpma_ep_get_fd(listener_, &fd), "rpma_ep_get_fd");
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    } catch (...) {
      close();
      throw;
    }
  }
  std::unique_ptr<Link> link() override { return std::make_unique<RpmaLink>(place_, peer_, listener_); }
  void close() override {
    must_free(rpma_ep_shutdown(&listener_), "rpma_ep_shutdown");
    must_free(rpma_peer_delete(&peer_), "rpma_peer_delete");
  }

 private:
  const Place place_;
  rpma_peer* peer_ = nullptr;
  rpma_ep* listener_ = nullptr;
};

}  // namespace

std::unique_ptr<Station> rpma_station(const Place& place) {
  return std::make_unique<RpmaStation>(place);
}

}  // namespace dapple::soak
