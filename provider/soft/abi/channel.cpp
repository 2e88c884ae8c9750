// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/abi/plugin.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {

int channel_writer(const ibv_comp_channel* channel) {
  return doors() == nullptr ? -1 : doors()->channel_writer(channel->fd);
}

}  // namespace dapple::soft
