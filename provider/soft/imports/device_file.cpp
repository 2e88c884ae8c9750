// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/imports/device_file.hpp"

namespace dapple::soft {

// The program keeps the structures of objects that an import has ended, and can give them to no verb.
template <typename Object>
void DeviceFile::delete_ended() {
  for (Object* each = std::get<Object*>(first_); each != nullptr;) {
    Object* next = each->importing.next;
    if (each->importing.end == ObjectEnd::kByImport) delete each;
    each = next;
  }
}

DeviceFile::~DeviceFile() {
  delete_ended<Mr>();
  delete_ended<Dm>();
  delete_ended<Pd>();
}

}  // namespace dapple::soft
