// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/picture/page.hpp"

#include "tools/picture/page_parts.hpp"
#include "tools/picture/stage.hpp"

namespace dapple::picture {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        result += "&lt;";
        break;
      case '&':
        result += "&amp;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

// JSON inside a script element must not end the element.
std::string script_text(const Json& json) {
  std::string result;
  for (const char letter : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (letter == '<') {
      result += "\\u003c";
    } else {
      result += letter;
    }
  }
  return result;
}

Json as_json(const Item& item, int64_t begin_ns) {
  Json json = {{"kind", name_of(item.kind)},    {"lane", item.lane}, {"begin", item.begin_ns - begin_ns},
               {"end", item.end_ns - begin_ns}, {"name", item.name}, {"details", item.details}};
  if (item.qpn != 0) json["qp"] = item.qpn;
  if (item.to_qpn != 0) json["to"] = item.to_qpn;
  // JavaScript's numbers do not hold all addresses.
  if (item.cq != 0) json["cq"] = hex_text(item.cq);
  if (item.bad) json["bad"] = true;
  if (item.both) json["both"] = true;
  return json;
}

Json as_json(const Story& story) {
  Json json = {{"processes", Json::array()},
               {"lanes", Json::array()},
               {"items", Json::array()},
               {"arrows", story.arrows},
               {"connections", Json::array()}};
  for (const Process& each : story.processes)
    json["processes"].push_back({{"number", each.number}, {"program", each.program}});
  for (const Lane& each : story.lanes)
    json["lanes"].push_back({{"process", each.process}, {"thread", each.thread}, {"name", each.name}});
  for (const Item& each : story.items) json["items"].push_back(as_json(each, story.begin_ns));
  for (const Connection& each : story.connections)
    json["connections"].push_back({{"qps", each.qpns}, {"processes", each.processes}});
  return json;
}

}  // namespace

std::string as_page(const Story& story, const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + escaped(title) +
         "</title>\n<style>\n" + kPageStyle + "</style>\n</head>\n" + kPageBody +
         "<script type=\"application/json\" id=\"story\">\n" + script_text(as_json(story)) + "\n</script>\n<script>\n" +
         kPageScript + "</script>\n</html>\n";
}

}  // namespace dapple::picture
