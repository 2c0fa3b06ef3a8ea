// What every process of the house can be told, and what is wrong with it.
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
  // Of a base, as a rule.
  return setting(static_cast<std::chrono::nanoseconds S::*>(&S::stop_limit), "stop_limit",
                 "From the first Ctrl-C, SIGTERM or order to stop to the end of the process. In the last sixth of it what "
                 "still waits is given up, and "
                 "counted by name.",
                 {.minimum = 1e9, .maximum = 3.6e12});
}

/// How long a process may wait at its end for one thing.
struct EndTime {
  std::string key;
  std::chrono::nanoseconds time;
};

/// A warning for each of these times that stop_limit cuts short.
std::vector<std::string> cut_by_stop_limit(std::span<const EndTime> times, std::chrono::nanoseconds stop_limit);

/// The keys of a table [NAME.metrics].
std::vector<Key> metrics_keys();

/// Refuses a value that cannot stand in the names of files and sockets, in stream tags and shell commands.
void refuse_other_than_plain_name(const settings::Table& table, const char* key, settings::ConfigurationErrors& errors);

/// Refuses an address of [NAME.metrics] at which nobody could listen.
void refuse_bad_listen(const settings::Table& metrics, settings::ConfigurationErrors& errors);

}  // namespace rodeo::process
