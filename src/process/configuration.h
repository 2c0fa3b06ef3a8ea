// Keys that every process has, and their checks.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "process/stop_limit.h"
#include "rodeo/parameters.h"
#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::process {

/// The key `stop_limit` of a process.
template <typename S>
typename Settings<S>::Lines stop_limit_setting() {
  // The member may belong to a base class of S.
  return setting(static_cast<std::chrono::nanoseconds S::*>(&S::stop_limit), "stop_limit",
                 "From the first Ctrl-C, SIGTERM or order to stop to the end of the process. In the last sixth of it what "
                 "still waits is given up, and "
                 "counted by name.",
                 {.minimum = 1e9, .maximum = 3.6e12});
}

/// How long a process may wait for one thing at its end.
struct EndTime {
  std::string key;
  std::chrono::nanoseconds time;
};

/// A warning for each time that is longer than stop_limit allows.
std::vector<std::string> cut_by_stop_limit(std::span<const EndTime> times, std::chrono::nanoseconds stop_limit);

/// The keys of a table [NAME.metrics].
std::vector<Key> metrics_keys();

/// Refuses a value that is not allowed in the names of files and sockets, in stream tags and shell commands.
void refuse_other_than_plain_name(const settings::Table& table, const char* key, settings::ConfigurationErrors& errors);

/// Refuses an address of [NAME.metrics] at which a process cannot listen.
void refuse_bad_listen(const settings::Table& metrics, settings::ConfigurationErrors& errors);

}  // namespace rodeo::process
