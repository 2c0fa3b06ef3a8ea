// A router's status for tests of reports and views: two readers of links, one of the trigger's list, a data subscriber and a
// monitor.
#pragma once

#include "router/router_report.h"

namespace rodeo::router {

inline std::vector<LinkStatus> some_links(std::uint32_t connector, std::size_t links) {
  std::vector<LinkStatus> out;
  for (std::size_t link = 0; link < links; ++link)
    out.push_back({Fid::of(1, connector, static_cast<std::uint32_t>(link), 0),
                   {.chunks = 10, .bytes = 400, .errors = link == 2 ? 1U : 0U}});
  return out;
}

inline RouterStatus some_status() {
  RouterStatus status;
  status.phase = Phase::stopped;
  status.seconds = 10;
  status.input = {{"sent", 1000}, {"triggers", 10}};
  status.input_cpu_seconds = 0.5;
  ReaderStatus first{.name = "felix.0", .links = some_links(0, 60)};
  first.counters = {{"wanted_bytes", 23600},
                    {"no_subscriber_bytes", 400},
                    {"not_taken_bytes", 0},
                    {"chunks_read", 600},
                    {"bytes_read", 24000},
                    {"not_taken", 0},
                    {"chunks_wanted", 590},
                    {"no_subscriber", 10},
                    {"pages_sent", 7},
                    {"bytes_sent", 25000},
                    {"waits", 4}};
  first.subscribers = {{.name = "readout",
                        .peer = "127.0.0.1:4711",
                        .provider = "tcp",
                        .connected = true,
                        .links = 59,
                        .chunks = 590,
                        .waits = 4},
                       {.name = "look",
                        .peer = "127.0.0.1:4712",
                        .provider = "shm",
                        .monitor = true,
                        .connected = true,
                        .links = 1,
                        .chunks = 10,
                        .dropped_chunks = 3}};
  first.cpu_seconds = 1;
  ReaderStatus second{.name = "felix.1", .links = some_links(1, 40)};
  second.counters = {
      {"chunks_read", 400}, {"bytes_read", 16000}, {"wanted_bytes", 16000}, {"chunks_wanted", 400}, {"bytes_sent", 17000}};
  second.cpu_seconds = 2;
  ReaderStatus list{.name = "felix.2", .trigger_list = true, .links = some_links(2, 1)};
  list.counters = {{"chunks_read", 10}, {"no_subscriber", 10}};
  list.cpu_seconds = 0.25;
  status.readers = {first, second, list};
  return status;
}

}  // namespace rodeo::router
