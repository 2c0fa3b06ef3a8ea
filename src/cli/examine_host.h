// What this host offers a readout, and what it lacks: each finding with its meaning and its remedy.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace rodeo::cli {

enum class Health : std::uint8_t { good, warning, missing };

std::string_view health_name(Health health);  ///< "ok", "warn", "missing"

struct Finding {
  std::string name;  ///< snake_case, for programs
  Health health = Health::good;
  std::string value;    ///< what was found, for people
  std::string meaning;  ///< what it means for a readout, one sentence
  std::string remedy;   ///< the command to type; empty if all is well
};

struct DoctorSettings {
  std::filesystem::path root = "/";  ///< where proc and sys are; tests give a tree of their own
  std::filesystem::path data_directory = ".";
  std::chrono::milliseconds disk_time{500};  ///< how long the disk is written to; zero: not at all
};

/// Looks at the host. A file of /proc or /sys that is not there becomes a finding, never a failure. Writes at most 1 GiB to a
/// nameless file in the data directory, which is gone at the end whatever happens. Blocks for about disk_time.
std::vector<Finding> examine_host(const DoctorSettings& settings);

}  // namespace rodeo::cli
