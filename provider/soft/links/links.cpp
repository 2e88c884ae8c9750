// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/links.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <span>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/soft/same_host/reference.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {
namespace {

constexpr int kBacklog = kMaxSlots;  // all peers at once
constexpr int kEventsAtOnce = 32;
constexpr uint32_t kPacketsAtOnce = 64;
// After this many bytes, acknowledgements leave before the next packets are read.
constexpr size_t kMuch = 16 * 1024;
// Bytes that packets refer to and that one call fetches.
constexpr size_t kFetchedAtOnce = 1024 * 1024;
constexpr itimerspec kPause = {{}, {0, 100'000'000}};

// The keys of the epoll's events: a kind in the upper half, an index in the lower.
constexpr uint64_t kListener = 0;
constexpr uint64_t kFrom = uint64_t{1} << 32;
constexpr uint64_t kTo = uint64_t{2} << 32;
constexpr uint64_t kPauseOver = uint64_t{4} << 32;

bool same_user(int socket, pid_t* process = nullptr) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) return false;
  if (process != nullptr) *process = who.pid;
  return true;
}

// The reason that the peer reports if this process lacks something.
Transport lack_for_peer(int error) {
  return lack_of(error) == Transport::kNoDescriptor ? Transport::kPeerNoDescriptor : Transport::kPeerNoMemory;
}

// `headers`: the size of the packet's headers.
bool parse(const RingPacket& found, size_t headers, roce::Packet& packet) {
  return roce::parse({found.headers, headers}, found.bytes.first(headers), packet) == roce::ParseError::kNone;
}

// The reference of the packet behind `found`, if `found` ends a message, and the packet behind it is a whole message
// between the same queue pairs. Null otherwise. `headers`: the size of the headers of `found`.
const RingReference* reference_behind(RingReader& reader, const RingPacket& found, size_t headers,
                                      RingReference& room) {
  RingPacket behind;
  roce::Packet first, second;
  if (reader.peek(behind) != RingReader::Next::kPacket || behind.kind != EntryKind::kReference) return nullptr;
  if (!take_reference(behind.bytes, room)) return nullptr;
  if (!parse(found, headers, first) || !parse(behind, room.headers, second)) return nullptr;
  const bool same_pair =
      same(*behind.addresses, *found.addresses) && first.headers.destination_qpn == second.headers.destination_qpn;
  const bool is_whole = second.info->has(roce::kStarts) && second.info->has(roce::kEnds);
  return same_pair && first.info->has(roce::kEnds) && is_whole ? &room : nullptr;
}

}  // namespace

void RingTo::published(uint32_t packets, Counter& sent_packets) {
  assert(packets > 0);
  sent_packets.add_and_fence(packets);
  if (!writer_.must_wake()) return;
  const CancelGuard whole;
  const char byte = 0;
  // EAGAIN: bytes wait there already.
  if (send(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) broken_.store(true);
}

Transport SameHostLinks::open(uint32_t own_slot, int lease, SameHostCounters& counters, TransportTable& transports,
                              uint64_t most_bytes) {
  assert(!epoll_ && from_end_ == 0 && own_slot != 0 && own_slot < kMaxSlots);
  own_slot_ = own_slot;
  counters_ = &counters;
  transports_ = &transports;
  most_bytes_ = most_bytes;
  transports.set_most_ring_bytes(most_bytes);
  closed_ = prepare(lease);
  if (closed_ != Transport::kSharedMemory) epoll_.reset();
  return closed_;
}

Transport SameHostLinks::prepare(int lease) {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  pause_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_ || !pause_) return lack_of(errno);
  if (fcntl(lease, F_SETFL, O_NONBLOCK) != 0 || listen(lease, kBacklog) != 0) return Transport::kNoMemory;
  epoll_.hide();
  pause_.hide();
  lease_ = lease;
  spare_.keep();
  if (!watch(lease, kListener) || !watch(pause_.get(), kPauseOver)) return lack_of(errno);
  return Transport::kSharedMemory;
}

SameHostLinks::~SameHostLinks() {
  while (from_end_ > 0) drop(from_end_ - 1);
  for (RingTo* ring : to_) put(ring);
  assert(from_end_ == 0 && rings_.load() == 0);
}

void SameHostLinks::assert_consistent() const {
  assert(from_end_ <= kMaxFrom && rings_.load(std::memory_order_relaxed) <= from_end_);
  assert(from_end_ == 0 || from_[from_end_ - 1] != nullptr);
  assert(from_end_ == kMaxFrom || from_[from_end_] == nullptr);
}

void SameHostLinks::assert_consistent_to(uint32_t slot) const {
  [[maybe_unused]] const RingTo* ring = to_[slot];
  assert(slot != 0 && slot != own_slot_);
  assert(ring == nullptr || (ring->users_.load(std::memory_order_relaxed) > 0 && ring->memory_.is_mapped()));
  assert(ring == nullptr || (0 < ring->number_ && ring->number_ <= rings_made_));
  assert(ring == nullptr || bytes_.load() >= RingMemory::kFileBytes);
  assert(bytes_.load() <= most_bytes_);
  assert(ring == nullptr || ring->answered_ || !ring->peer_memory_.usable());
}

bool SameHostLinks::watch(int fd, uint64_t key) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = key;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

RingTo* SameHostLinks::get(uint32_t slot, Transport& transport) {
  transport = Transport::kSharedMemory;
  if (slot == own_slot_) transport = Transport::kSameProcess;
  if (!epoll_) transport = closed_;
  if (slot == 0 || slot >= kMaxSlots) transport = Transport::kPeerTakesNone;
  if (transport != Transport::kSharedMemory) return nullptr;
  const std::lock_guard lock(to_mutex_);
  RingTo*& ring = to_[slot];
  // A slot's new owner may have come before attend() has seen the end of the last one.
  if (ring != nullptr) {
    const LinkEnd end = peek_for_end(ring->socket_);
    if (end.come || ring->broken()) forget(slot, end.why);
  }
  if (ring == nullptr) ring = connect(slot, transport);
  if (ring != nullptr) ring->users_.fetch_add(1, std::memory_order_relaxed);
  assert((ring != nullptr) == (transport == Transport::kSharedMemory));
  assert_consistent_to(slot);
  return ring;
}

void SameHostLinks::forget(uint32_t slot, Transport why) {
  assert_held(to_mutex_);
  RingTo* ring = std::exchange(to_[slot], nullptr);
  assert(ring != nullptr && why != Transport::kNone && why != Transport::kSharedMemory);
  ring->end_.store(why, std::memory_order_relaxed);
  ring->broken_.store(true);
  ring->peer_memory_.stop();
  transports_->end_ring(ring->number_, why);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ring->socket_.get(), nullptr);
  if (let_go(*ring)) end(*ring);
}

void SameHostLinks::put(RingTo* ring) {
  if (ring == nullptr || !let_go(*ring)) return;
  const std::lock_guard lock(to_mutex_);
  end(*ring);
}

// True if this was the last user.
bool SameHostLinks::let_go(RingTo& ring) {
  const uint32_t users = ring.users_.fetch_sub(1, std::memory_order_acq_rel);
  assert(users > 0);
  return users == 1;
}

void SameHostLinks::end(RingTo& ring) {
  assert_held(to_mutex_);
  assert(ring.users_.load(std::memory_order_relaxed) == 0);
  RingTo** place = &made_;
  while (*place != &ring) place = &(*place)->next_;
  *place = ring.next_;
  delete &ring;
  [[maybe_unused]] const uint64_t bytes = bytes_.fetch_sub(RingMemory::kFileBytes);
  assert(bytes >= RingMemory::kFileBytes);
  transports_->add_ring_bytes(-static_cast<int64_t>(RingMemory::kFileBytes));
}

RingTo* SameHostLinks::connect(uint32_t slot, Transport& transport) {
  assert_held(to_mutex_);
  std::unique_ptr<RingTo> ring(new (std::nothrow) RingTo(rings_made_ + 1));
  OwnedFd file;
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto none = [&transport](Transport why) {
    transport = why;
    return nullptr;
  };
  if (ring == nullptr) return none(Transport::kNoMemory);
  if (!socket) return none(lack_of(errno));
  char name[32];
  snprintf(name, sizeof name, "%s%u", kSlotName, slot);
  sockaddr_un address;
  const socklen_t size = abstract_address(name, address);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return none(errno == EAGAIN ? Transport::kPeerBusy : Transport::kPeerTakesNone);
  }
  if (!same_user(socket.get(), &ring->process_)) return none(Transport::kOtherUser);
  if (bytes_.load() + RingMemory::kFileBytes > most_bytes_) return none(Transport::kCap);
  if (const int error = ring->memory_.create(file); error != 0) return none(lack_of(error));
  ring->socket_ = std::move(socket);
  ring->socket_.hide();
  if (!watch(ring->socket_.get(), kTo | slot)) return none(lack_of(errno));
  RingHello hello;
  hello.slot = own_slot_;
  const int files[] = {file.get()};
  if (const int error = send_message(ring->socket_.get(), std::as_bytes(std::span(&hello, 1)), files, MSG_DONTWAIT);
      error != 0) {
    // The peer may have refused already.
    const LinkEnd end = look_for_end(ring->socket_);
    return none(end.come ? end.why : lack_of(error));
  }
  rings_made_++;
  bytes_.fetch_add(RingMemory::kFileBytes);
  transports_->add_ring_bytes(RingMemory::kFileBytes);
  ring->next_ = made_;
  return made_ = ring.release();
}

void SameHostLinks::release(RingFrom& from) {
  if (!from.reader.release()) return;
  const CancelGuard whole;
  wake(from.socket);
}

bool SameHostLinks::wait_for_room() {
  bool full = true;
  const std::lock_guard lock(to_mutex_);
  for (RingTo* ring : to_) {
    if (ring == nullptr || !ring->full.load(std::memory_order_relaxed)) continue;
    const BiasedLock writing(ring->mutex);
    ring->full.store(false, std::memory_order_relaxed);
    full = ring->writer_.wait_for_room() && full;
  }
  return full;
}

size_t SameHostLinks::receive(ArrivalSink& sink) {
  size_t delivered = 0;
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->has_packets()) delivered += receive_from(i, sink);
  }
  return delivered;
}

// Not inlined, because most looks at a ring find nothing.
[[gnu::noinline]] size_t SameHostLinks::receive_from(uint32_t index, ArrivalSink& sink) {
  size_t delivered = 0, delivered_bytes = 0;
  assert(from_[index]->state() == RingFrom::State::kOpen);
  RingReader& reader = from_[index]->reader;
  RingPacket found;
  RingReference reference, reference_ahead;
  Arrival arrival;
  size_t bytes = 0, fetched = 0;
  auto next = RingReader::Next::kNothing;
  for (uint32_t packet = 0; packet < kPacketsAtOnce && fetched < kFetchedAtOnce; packet++) {
    next = reader.next(found);
    if (next != RingReader::Next::kPacket) break;
    arrival.source = found.addresses->source;
    arrival.destination = found.addresses->destination;
    arrival.transport = found.bytes;
    arrival.headers = {found.headers, found.headers_size};
    arrival.acknowledgement = found.has_acknowledgement ? &found.acknowledgement : nullptr;
    arrival.reference = arrival.next_reference = nullptr;
    size_t size = found.bytes.size();
    if (found.kind == EntryKind::kReference) [[unlikely]] {
      if (!take_reference(found.bytes, reference)) {
        next = RingReader::Next::kBroken;
        break;
      }
      arrival.reference = &reference;
      arrival.transport = arrival.headers = arrival.headers.first(reference.headers);
      size = reference.headers + reference.length;
      fetched += reference.length;
      if (packet + 1 < kPacketsAtOnce && fetched < kFetchedAtOnce)
        arrival.next_reference = reference_behind(reader, found, reference.headers, reference_ahead);
    }
    assert(arrival.headers.size() <= arrival.transport.size());
    delivered++;
    delivered_bytes += size;
    sink.arrived(arrival);
    bytes += size;
    if (bytes < kMuch) continue;
    release(*from_[index]);
    sink.much_arrived();
    bytes = 0;
  }
  release(*from_[index]);
  if (next == RingReader::Next::kBroken) {
    counters_->broken.add();
    const std::lock_guard lock(from_mutex_);
    refuse(index, Transport::kOverwritten);
  }
  counters_->received_packets.add_alone(delivered);
  counters_->received_bytes.add_alone(delivered_bytes);
  return delivered;
}

bool SameHostLinks::empty() const {
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->has_packets()) return false;
  }
  return true;
}

void SameHostLinks::sleep() {
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->has_ring()) from_[i]->reader.sleep();
  }
}

void SameHostLinks::stay_awake() {
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->has_ring()) from_[i]->reader.stay_awake();
  }
}

void SameHostLinks::attend() {
  const std::lock_guard lock(from_mutex_);
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, 0);
  for (int i = 0; i < count; i++) {
    const uint64_t key = events[i].data.u64;
    const auto index = static_cast<uint32_t>(key);
    if (key == kListener) {
      accept_all();
    } else if (key == kPauseOver) {
      end_pause();
    } else if ((key & kFrom) != 0) {
      attend_from(index);
    } else {
      assert((key & kTo) != 0);
      attend_to(index);
    }
  }
  assert_consistent();
}

void SameHostLinks::accept_all() {
  for (int i = 0; i < kEventsAtOnce; i++) {
    OwnedFd socket(accept4(lease_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE)) return refuse_one();
    if (!socket) return;
    pid_t process = 0;
    if (!same_user(socket.get(), &process)) continue;
    uint32_t index = 0;
    while (index < kMaxFrom && from_[index] != nullptr) index++;
    if (index < kMaxFrom) from_[index].reset(new (std::nothrow) RingFrom);
    if (index == kMaxFrom || from_[index] == nullptr) {
      say_why(socket, Transport::kPeerNoMemory);
      continue;
    }
    from_[index]->process = process;
    from_[index]->socket = std::move(socket);
    from_[index]->socket.hide();
    if (index >= from_end_) from_end_ = index + 1;
    if (!watch(from_[index]->socket.get(), kFrom | index)) {
      refuse(index, Transport::kPeerNoMemory);
      continue;
    }
    attend_from(index);
  }
}

// Refuses a connection for lack of a descriptor. Otherwise the connection and its packets would wait; after the refusal
// the peer uses UDP.
void SameHostLinks::refuse_one() {
  const int error =
      spare_.refuse_one(lease_, [](const OwnedFd& socket) { say_why(socket, Transport::kPeerNoDescriptor); });
  if (error == EMFILE || error == ENFILE) begin_pause();
}

// Another thread of the program has taken the spare descriptor. Without a pause, the waiting connection would wake this
// process all the time.
void SameHostLinks::begin_pause() {
  epoll_event nothing = {};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, lease_, &nothing);
  timerfd_settime(pause_.get(), 0, &kPause, nullptr);
}

void SameHostLinks::end_pause() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(pause_.get(), &count, sizeof count);
  spare_.keep();
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, lease_, &event);
}

void SameHostLinks::attend_from(uint32_t index) {
  if (from_[index] == nullptr) return;
  RingFrom& from = *from_[index];
  const bool is_new = !from.has_ring();
  if (is_new) {
    RingHello hello;
    Descriptors files;
    const ssize_t size =
        receive_message(from.socket.get(), std::as_writable_bytes(std::span(&hello, 1)), files, MSG_DONTWAIT);
    if (size == -EAGAIN) return;
    const Transport answer = greet(from, size, hello, files);
    if (answer != Transport::kSharedMemory) return refuse(index, answer);
    from.enter(RingFrom::State::kOpen);
    from.slot = hello.slot;
    rings_.fetch_add(1, std::memory_order_relaxed);
    ask(from);
    const std::lock_guard lock(to_mutex_);
    if (from.slot < kMaxSlots && to_[from.slot] != nullptr) invite(from, *to_[from.slot]);
  }
  const bool ended = look_for_end(from.socket).come;
  if (from.right == Right::kAsked) look_for_answer(from);
  // The background thread may already sleep, and then it has marked only the other rings. The mark comes after the
  // look, because the look takes the bytes that answer a mark.
  if (is_new) from.reader.sleep();
  // A peer that is gone may have left packets. They are taken before the next look at it.
  if (ended && !from.has_packets()) drop(index);
}

Transport SameHostLinks::greet(RingFrom& from, ssize_t size, const RingHello& hello, const Descriptors& files) {
  if (size == -EMFILE) return Transport::kPeerNoDescriptor;
  if (size != sizeof hello || hello.magic != kMagic) return Transport::kPeerTakesNone;
  if (hello.version != kProtocolVersion || hello.ring_bytes != kRingBytes) return Transport::kOtherRelease;
  if (files.count != 1) return Transport::kPeerTakesNone;
  const int error = from.memory.map(files.fds[0].get());
  if (error == EINVAL) return Transport::kPeerTakesNone;
  return error == 0 ? Transport::kSharedMemory : lack_for_peer(error);
}

void SameHostLinks::ask(RingFrom& from) {
  assert(from.state() == RingFrom::State::kOpen && from.right == Right::kNone);
  if (publication_ == nullptr) return note_right(from, Right::kOff);
  if (!publication_->ask(from, {own_slot_, from.slot})) return note_right(from, Right::kNoRoom);
  note_right(from, Right::kAsked);
  wake(from.socket);
}

void SameHostLinks::look_for_answer(RingFrom& from) {
  assert(publication_ != nullptr && from.challenge != 0);
  const Right right = publication_->judge(from);
  if (right != from.right) note_right(from, right);
}

void SameHostLinks::note_right(RingFrom& from, Right right) {
  from.right = right;
  from.assert_consistent();
  transports_->set_right(from.slot, right);
}

void SameHostLinks::attend_to(uint32_t slot) {
  const std::lock_guard lock(to_mutex_);
  RingTo* ring = to_[slot];
  if (ring == nullptr) return;
  Descriptors files;
  const LinkEnd end = look_for_end(ring->socket_, files);
  if (end.come) return forget(slot, end.why);
  if (!ring->answered_) answer(*ring, slot);
  if (files.count == 1) take_table(*ring, slot, std::move(files.fds[0]));
  assert_consistent_to(slot);
}

void SameHostLinks::answer(RingTo& ring, uint32_t slot) {
  assert_held(to_mutex_);
  assert(!ring.answered_);
  ProofWords& words = ring.memory_.control().proof;
  if (words.asked.load(std::memory_order_acquire) == 0) return;
  ring.answered_ = true;
  const Right right = publication_ == nullptr ? Right::kPeerOff
                                              : ring.peer_memory_.prove(words, {slot, own_slot_}, ring.process_,
                                                                        publication_->hides_secrets());
  words.right.store(right, std::memory_order_release);
  wake(ring.socket_);
}

void SameHostLinks::take_table(RingTo& ring, uint32_t slot, OwnedFd table) {
  assert_held(to_mutex_);
  ring.peer_memory_.open(std::move(table), ring.memory_.control().announcements, own_slot_, ring.process_);
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->has_ring() && from_[i]->slot == slot) invite(*from_[i], ring);
  }
}

// The writer of the ring may send references if its memory is the one that this process reaches. It says itself which
// slot it has, so the kernel must know it as the same process. It compares the nonces, because a slot may have got
// another owner. The word alone says all: this process reads references, and makes this call, one thread at a time.
void SameHostLinks::invite(const RingFrom& from, const RingTo& to) {
  assert(from.has_ring());
  if (!to.peer_memory_.usable() || from.process != to.process_) return;
  from.memory.control().fetches.store(to.peer_memory_.nonce(), std::memory_order_relaxed);
}

void SameHostLinks::refuse(uint32_t index, Transport why) {
  RingFrom& from = *from_[index];
  say_why(from.socket, why);
  if (from.right != Right::kGranted) return drop(index);
  // The peer closes the connection when it copies no more. Until then this process waits for its copies.
  shutdown(from.socket.get(), SHUT_WR);
  from.enter(RingFrom::State::kRefused);
}

void SameHostLinks::drop(uint32_t index) {
  assert(index < from_end_ && from_[index] != nullptr);
  assert(!from_[index]->has_ring() || rings_.load(std::memory_order_relaxed) > 0);
  if (from_[index]->has_ring()) rings_.fetch_sub(1, std::memory_order_relaxed);
  if (publication_ != nullptr) publication_->forget(*from_[index]);
  // A copy of the descriptor in a child would keep it there.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, from_[index]->socket.get(), nullptr);
  const uint32_t slot = from_[index]->slot;
  from_[index].reset();
  Right right = Right::kNone;
  // The slot's next owner may have come before.
  for (uint32_t i = 0; i < from_end_; i++) {
    if (from_[i] != nullptr && from_[i]->slot == slot) right = from_[i]->right;
  }
  transports_->set_right(slot, right);
  while (from_end_ > 0 && from_[from_end_ - 1] == nullptr) from_end_--;
  assert_consistent();
}

void SameHostLinks::close_in_child() {
  epoll_.reset();
  spare_.reset();
  pause_.reset();
  for (auto& from : from_) {
    if (from != nullptr) from->socket.reset();
  }
  // A ring that is forgotten still has its connection.
  for (RingTo* ring = made_; ring != nullptr; ring = ring->next_) {
    ring->socket_.reset();
    ring->peer_memory_.close_in_child();
  }
}

void SameHostLinks::fork_prepare() {
  from_mutex_.lock();
  to_mutex_.lock();
}

void SameHostLinks::fork_parent() {
  to_mutex_.unlock();
  from_mutex_.unlock();
}

void SameHostLinks::fork_child() {
  close_in_child();
  fork_parent();
}

}  // namespace dapple::soft
