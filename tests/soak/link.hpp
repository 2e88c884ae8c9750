// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A connection of one of the three interfaces, as the exchange sees it. All functions throw Ended. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dapple::soak {

inline constexpr uint32_t kReceives = 64;
inline constexpr uint32_t kRequests = 64;

enum class Area { kMessages, kData };
inline constexpr size_t kAreas = 2;

// Names the peer's data area, in the form of the interface.
struct Key {
  alignas(8) unsigned char bytes[32] = {};
};

enum class Status { kGood, kFlushed, kRetries, kOther };
struct Completion {
  uint64_t id = 0;
  bool receive = false;
  Status status = Status::kGood;
  uint32_t length = 0;  // of a receive
  int code = 0;         // the interface's status
};

class Link {
 public:
  virtual ~Link() = default;

  // Makes everything that a connection needs. A server returns false if no client asks within a moment. Then areas can
  // be added and receives posted.
  virtual bool begin() = 0;
  virtual void establish() = 0;

  virtual void add(Area area, unsigned char* memory, size_t size) = 0;
  virtual void drop(Area area) = 0;
  virtual Key key() = 0;                   // of kData
  virtual void learn(const Key& key) = 0;  // the peer's kData

  // Offsets of messages are in kMessages, others in kData.
  virtual void receive(uint64_t id, size_t offset, uint32_t size) = 0;
  virtual void send(uint64_t id, size_t offset, uint32_t size) = 0;
  virtual void write(uint64_t id, size_t from, size_t to, uint32_t size) = 0;
  virtual void read(uint64_t id, size_t to, size_t from, uint32_t size) = 0;
  // The interface's atomic operation on the peer's word: verbs adds the value and stores the former one at `result`,
  // librpma writes the value, uDAPL has none.
  virtual void atomic(uint64_t id, size_t result, size_t word, uint64_t value) = 0;

  // False if nothing has happened. Throws if the connection has ended and nothing else can come.
  virtual bool next(Completion& completion) = 0;
  // Sleeps until something may have happened, for some milliseconds at most.
  virtual void sleep() = 0;
  // The end of a whole exchange. The client disconnects, and the server waits for that.
  virtual void leave() = 0;
  // Frees everything, in whatever state, and throws if something cannot be freed.
  virtual void close() = 0;
};

// The objects that a worker keeps between its connections: a listener, an open adapter.
class Station {
 public:
  virtual ~Station() = default;
  virtual std::unique_ptr<Link> link() = 0;
  // Frees everything. Throws as above.
  virtual void close() = 0;
};

// One worker of a pair. The peer has the same port and the other role.
struct Place {
  bool server = false;
  uint16_t port = 0;
};

std::unique_ptr<Station> verbs_station(const Place& place);
std::unique_ptr<Station> udapl_station(const Place& place);
std::unique_ptr<Station> rpma_station(const Place& place);

}  // namespace dapple::soak
