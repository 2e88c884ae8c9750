// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Connections of uDAPL 2.0.
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/soak/end.hpp"
#include "tests/soak/link.hpp"

namespace dapple::soak {
namespace {

constexpr DAT_TIMEOUT kMoment_us = 200'000;
constexpr DAT_TIMEOUT kSleep_us = 20'000;
constexpr DAT_TIMEOUT kConnect_us = 60'000'000;
constexpr DAT_TIMEOUT kPatience_us = 90'000'000;
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

const char* text_of(DAT_RETURN result) {
  const char *type = "?", *subtype = "?";
  dat_strerror(result, &type, &subtype);
  return type;
}

void must(DAT_RETURN result, const char* call) {
  if (result == DAT_SUCCESS) return;
  switch (DAT_GET_TYPE(result)) {
    case DAT_INSUFFICIENT_RESOURCES:
      end_with(End::kNoMemory, "%s: %s", call, text_of(result));
    case DAT_INVALID_STATE:
    case DAT_CONN_QUAL_IN_USE:
      end_with(End::kRefused, "%s: %s", call, text_of(result));
    default:
      wrong("%s: %s", call, text_of(result));
  }
}

// For calls that free.
void must_free(DAT_RETURN result, const char* call) {
  if (result != DAT_SUCCESS) wrong("%s: %s", call, text_of(result));
}

// A program without the memory to start dappled finds no device, and librdmacm reports the last of the names that it
// tried to open, not the lack of memory.
void must_open(DAT_RETURN result) {
  const DAT_RETURN type = DAT_GET_TYPE(result);
  if (type == DAT_INVALID_ADDRESS || type == DAT_PROVIDER_NOT_FOUND)
    end_with(End::kRefused, "dat_ia_open: %s", text_of(result));
  must(result, "dat_ia_open");
}

struct Adapter {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

  void open() {
    char name[] = "ofa-v2-lo";
    must_open(dat_ia_open(name, 8, &async, &ia));
    must(dat_pz_create(ia, &pz), "dat_pz_create");
  }
  void close() {
    if (pz != DAT_HANDLE_NULL) must_free(dat_pz_free(pz), "dat_pz_free");
    if (ia != DAT_HANDLE_NULL) must_free(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
    *this = {};
  }
};

struct UdaplKey {
  DAT_VADDR address;
  DAT_RMR_CONTEXT context;
};

struct Lmr {
  DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  DAT_RMR_CONTEXT remote = 0;
  DAT_VADDR address = 0;
};

class UdaplLink : public Link {
 public:
  // requests: of the server's listener.
  UdaplLink(const Place& place, const Adapter& adapter, DAT_EVD_HANDLE requests)
      : place_(place), adapter_(adapter), requests_(requests) {}

  bool begin() override {
    if (place_.server && !take_request()) return false;
    if (adapter_.ia == DAT_HANDLE_NULL) {
      own_.open();
      adapter_ = own_;
    }
    const auto evd = [&](DAT_COUNT length, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE& handle) {
      must(dat_evd_create(adapter_.ia, length, DAT_HANDLE_NULL, flags, &handle), "dat_evd_create");
    };
    evd(kReceives + kRequests, DAT_EVD_DTO_FLAG, transfers_);
    evd(8, DAT_EVD_CONNECTION_FLAG, events_);
    DAT_EP_ATTR attr = {};
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_message_size = 1 << 20;
    attr.max_rdma_size = 1 << 20;
    attr.qos = DAT_QOS_BEST_EFFORT;
    attr.max_recv_dtos = kReceives;
    attr.max_request_dtos = kRequests;
    attr.max_recv_iov = attr.max_request_iov = 1;
    attr.max_rdma_read_in = attr.max_rdma_read_out = 4;
    attr.max_rdma_read_iov = attr.max_rdma_write_iov = 1;
    must(dat_ep_create(adapter_.ia, adapter_.pz, transfers_, transfers_, events_, &attr, &ep_), "dat_ep_create");
    return true;
  }

  void establish() override {
    if (place_.server) {
      DAT_CR_HANDLE request = request_;
      request_ = DAT_HANDLE_NULL;
      must(dat_cr_accept(request, ep_, 0, nullptr), "dat_cr_accept");
    } else {
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      must(dat_ep_connect(ep_, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), place_.port, kConnect_us, 0, nullptr,
                          DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
           "dat_ep_connect");
    }
    const DAT_EVENT_NUMBER event = await_event("the connection");
    if (event != DAT_CONNECTION_EVENT_ESTABLISHED) end_by(event);
  }

  void add(Area area, unsigned char* memory, size_t size) override {
    Lmr& lmr = lmrs_[static_cast<size_t>(area)];
    DAT_REGION_DESCRIPTION where = {};
    where.for_va = memory;
    DAT_VLEN registered_size = 0;
    DAT_VADDR registered_address = 0;
    must(dat_lmr_create(adapter_.ia, DAT_MEM_TYPE_VIRTUAL, where, size, adapter_.pz,
                        static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG), DAT_VA_TYPE_VA, &lmr.handle,
                        &lmr.context, &lmr.remote, &registered_size, &registered_address),
         "dat_lmr_create");
    lmr.address = reinterpret_cast<uintptr_t>(memory);
  }

  void drop(Area area) override {
    Lmr& lmr = lmrs_[static_cast<size_t>(area)];
    if (lmr.handle != DAT_HANDLE_NULL) must_free(dat_lmr_free(lmr.handle), "dat_lmr_free");
    lmr = {};
  }

  Key key() override {
    const Lmr& lmr = lmrs_[static_cast<size_t>(Area::kData)];
    const UdaplKey mine = {lmr.address, lmr.remote};
    Key key;
    memcpy(key.bytes, &mine, sizeof mine);
    return key;
  }
  void learn(const Key& key) override { memcpy(&theirs_, key.bytes, sizeof theirs_); }

  void receive(uint64_t id, size_t offset, uint32_t size) override {
    DAT_LMR_TRIPLET piece = piece_of(Area::kMessages, offset, size);
    must(dat_ep_post_recv(ep_, 1, &piece, cookie_of(id | kReceiveBit), DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_recv");
  }
  void send(uint64_t id, size_t offset, uint32_t size) override {
    DAT_LMR_TRIPLET piece = piece_of(Area::kMessages, offset, size);
    must(dat_ep_post_send(ep_, 1, &piece, cookie_of(id), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  void write(uint64_t id, size_t from, size_t to, uint32_t size) override {
    DAT_LMR_TRIPLET piece = piece_of(Area::kData, from, size);
    DAT_RMR_TRIPLET there = remote(to, size);
    must(dat_ep_post_rdma_write(ep_, 1, &piece, cookie_of(id), &there, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_write");
  }
  void read(uint64_t id, size_t to, size_t from, uint32_t size) override {
    DAT_LMR_TRIPLET piece = piece_of(Area::kData, to, size);
    DAT_RMR_TRIPLET there = remote(from, size);
    must(dat_ep_post_rdma_read(ep_, 1, &piece, cookie_of(id), &there, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_read");
  }
  void atomic(uint64_t, size_t, size_t, uint64_t) override { wrong("uDAPL has no atomic operation"); }

  bool next(Completion& completion) override {
    if (take_transfer(completion)) return true;
    // Completions from before the event come first.
    if (end_event_ != 0) end_by(end_event_);
    DAT_EVENT event;
    if (dat_evd_dequeue(events_, &event) == DAT_SUCCESS) end_event_ = event.event_number;
    return false;
  }

  void sleep() override {
    if (end_event_ != 0) return;
    DAT_EVENT event;
    DAT_COUNT more = 0;
    const DAT_RETURN result = dat_evd_wait(transfers_, kSleep_us, 1, &event, &more);
    if (result == DAT_SUCCESS) {
      early_ = event;
      has_early_ = true;
    } else if (DAT_GET_TYPE(result) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL) {
      must(result, "dat_evd_wait");
    }
  }

  void leave() override {
    if (!place_.server) must(dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    const DAT_EVENT_NUMBER event = end_event_ != 0 ? end_event_ : await_event("the end of the connection");
    if (event != DAT_CONNECTION_EVENT_DISCONNECTED) end_by(event);
  }

  void close() override {
    if (request_ != DAT_HANDLE_NULL) must_free(dat_cr_reject(request_, 0, nullptr), "dat_cr_reject");
    request_ = DAT_HANDLE_NULL;
    if (ep_ != DAT_HANDLE_NULL) {
      (void)dat_ep_disconnect(ep_, DAT_CLOSE_ABRUPT_FLAG);
      must_free(dat_ep_free(ep_), "dat_ep_free");
    }
    ep_ = DAT_HANDLE_NULL;
    drop(Area::kData);
    drop(Area::kMessages);
    if (events_ != DAT_HANDLE_NULL) must_free(dat_evd_free(events_), "dat_evd_free");
    if (transfers_ != DAT_HANDLE_NULL) must_free(dat_evd_free(transfers_), "dat_evd_free");
    events_ = transfers_ = DAT_HANDLE_NULL;
    own_.close();
  }

 private:
  bool take_request() {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    const DAT_RETURN result = dat_evd_wait(requests_, kMoment_us, 1, &event, &more);
    if (DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL) return false;
    must(result, "dat_evd_wait for requests");
    if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) wrong("event %#x of a listener", event.event_number);
    request_ = event.event_data.cr_arrival_event_data.cr_handle;
    return true;
  }

  DAT_EVENT_NUMBER await_event(const char* what) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    DAT_RETURN result;
    do {
      result = dat_evd_wait(events_, kPatience_us, 1, &event, &more);
    } while (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL);
    if (DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED) wrong("%s does not come", what);
    must(result, "dat_evd_wait for the connection");
    return event.event_number;
  }

  [[noreturn]] static void end_by(DAT_EVENT_NUMBER event) {
    switch (event) {
      case DAT_CONNECTION_EVENT_DISCONNECTED:
        end_with(End::kDisconnected, "DISCONNECTED");
      case DAT_CONNECTION_EVENT_BROKEN:
        end_with(End::kBroken, "BROKEN");
      case DAT_CONNECTION_EVENT_PEER_REJECTED:
      case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
        end_with(End::kRejected, "event %#x", event);
      case DAT_CONNECTION_EVENT_UNREACHABLE:
      case DAT_CONNECTION_EVENT_TIMED_OUT:
      case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
        end_with(End::kUnreachable, "event %#x", event);
      default:
        wrong("event %#x of a connection", event);
    }
  }

  bool take_transfer(Completion& completion) {
    DAT_EVENT event = early_;
    if (!has_early_) {
      const DAT_RETURN result = dat_evd_dequeue(transfers_, &event);
      if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return false;
      must(result, "dat_evd_dequeue");
    }
    has_early_ = false;
    if (event.event_number != DAT_DTO_COMPLETION_EVENT) wrong("event %#x among transfers", event.event_number);
    const DAT_DTO_COMPLETION_EVENT_DATA& data = event.event_data.dto_completion_event_data;
    completion.id = data.user_cookie.as_64 & ~kReceiveBit;
    completion.receive = (data.user_cookie.as_64 & kReceiveBit) != 0;
    completion.length = static_cast<uint32_t>(data.transfered_length);
    completion.code = data.status;
    completion.status = data.status == DAT_DTO_SUCCESS         ? Status::kGood
                        : data.status == DAT_DTO_ERR_FLUSHED   ? Status::kFlushed
                        : data.status == DAT_DTO_ERR_TRANSPORT ? Status::kRetries
                                                               : Status::kOther;
    return true;
  }

  static DAT_DTO_COOKIE cookie_of(uint64_t id) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = id;
    return cookie;
  }

  DAT_LMR_TRIPLET piece_of(Area area, size_t offset, uint32_t size) const {
    const Lmr& lmr = lmrs_[static_cast<size_t>(area)];
    DAT_LMR_TRIPLET piece = {};
    piece.virtual_address = lmr.address + offset;
    piece.segment_length = size;
    piece.lmr_context = lmr.context;
    return piece;
  }

  DAT_RMR_TRIPLET remote(size_t offset, uint32_t size) const {
    DAT_RMR_TRIPLET there = {};
    there.virtual_address = theirs_.address + offset;
    there.segment_length = size;
    there.rmr_context = theirs_.context;
    return there;
  }

  const Place place_;
  Adapter adapter_;
  Adapter own_;  // a client's
  DAT_EVD_HANDLE requests_;
  DAT_CR_HANDLE request_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE transfers_ = DAT_HANDLE_NULL, events_ = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  Lmr lmrs_[kAreas];
  UdaplKey theirs_ = {};
  DAT_EVENT early_ = {};  // taken by sleep()
  bool has_early_ = false;
  DAT_EVENT_NUMBER end_event_ = {};
};

class UdaplStation : public Station {
 public:
  explicit UdaplStation(const Place& place) : place_(place) {
    if (!place.server) return;
    try {
      adapter_.open();
      must(dat_evd_create(adapter_.ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests_), "dat_evd_create");
      must(dat_psp_create(adapter_.ia, place.port, requests_, DAT_PSP_CONSUMER_FLAG, &listener_), "dat_psp_create");
    } catch (...) {
      close();
      throw;
    }
  }
  std::unique_ptr<Link> link() override { return std::make_unique<UdaplLink>(place_, adapter_, requests_); }
  void close() override {
    if (listener_ != DAT_HANDLE_NULL) must_free(dat_psp_free(listener_), "dat_psp_free");
    listener_ = DAT_HANDLE_NULL;
    reject_the_others();
    if (requests_ != DAT_HANDLE_NULL) must_free(dat_evd_free(requests_), "dat_evd_free");
    requests_ = DAT_HANDLE_NULL;
    adapter_.close();
  }

 private:
  void reject_the_others() {
    DAT_EVENT event;
    while (requests_ != DAT_HANDLE_NULL && dat_evd_dequeue(requests_, &event) == DAT_SUCCESS) {
      must_free(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, nullptr), "dat_cr_reject");
    }
  }

  const Place place_;
  Adapter adapter_;
  DAT_EVD_HANDLE requests_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE listener_ = DAT_HANDLE_NULL;
};

}  // namespace

std::unique_ptr<Station> udapl_station(const Place& place) {
  return std::make_unique<UdaplStation>(place);
}

}  // namespace dapple::soak
