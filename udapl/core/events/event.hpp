// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "udapl/core/queue/dto_operation.hpp"

namespace dapple::udapl {

class Evd;
class Ep;
class ServicePoint;
class Cr;
class Object;
class Rmr;
class UdConnection;

enum class EventKind : uint8_t {
#define EVENT(NAME, DATA, DAT) NAME,
#include "udapl/api/names.def"
};

// The member of Event's union that events of a kind have.
enum class EventData : uint8_t { kDto, kBind, kCr, kConnection, kDatagrams, kAsync, kSoftware };

constexpr EventData data_of(EventKind kind) {
  switch (kind) {
#define EVENT(NAME, DATA, DAT) \
  case EventKind::NAME:        \
    return EventData::DATA;
#include "udapl/api/names.def"
  }
  __builtin_unreachable();
}

enum class DtoStatus : uint8_t {
#define DTO_STATUS(NAME, DAT) NAME,
#include "udapl/api/names.def"
};

struct DtoCompletion {
  Ep* ep;
  uint64_t user_cookie;
  uint64_t length;     // bytes; 0 unless the DTO succeeded
  uint32_t immediate;  // of kReceiveImmed, in the byte order of the wire
  DtoStatus status;
  DtoOperation operation;
  uint32_t rmr_context;  // of kReceiveWithInvalidate: the context that is stale now
};

struct BindCompletion {
  Rmr* rmr;  // the object may have been freed since
  uint64_t user_cookie;
  DtoStatus status;
};

struct CrArrival {
  ServicePoint* service_point;
  Cr* cr;
  uint64_t conn_qual;
};

struct ConnectionEvent {
  Ep* ep;
  const void* private_data;  // valid until the Ep is freed or reset
  uint32_t private_data_size;
};

struct DatagramsEvent {
  Ep* ep;
  const UdConnection* connection;  // valid until the consumer or the Ep frees it
};

struct AsyncError {
  Object* object;
  int reason;
};

struct Event {
  EventKind kind;
  Evd* evd;
  uint64_t after;  // for SoftwareQueue
  union {
    DtoCompletion dto;
    BindCompletion bind;
    CrArrival cr;
    ConnectionEvent connection;
    DatagramsEvent datagrams;
    AsyncError async;
    void* software;
  };
};

}  // namespace dapple::udapl
