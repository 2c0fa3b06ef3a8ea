// What this host offers a readout, and what it lacks: findings with meanings and remedies.
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
  std::string value;    ///< the finding, for people
  std::string meaning;  ///< its meaning for a readout, in one sentence
  std::string remedy;   ///< the command to type; empty if all is well
};

struct DoctorSettings {
  std::filesystem::path root = "/";  ///< where proc and sys are; tests give their own tree
  std::filesystem::path data_directory = ".";
  std::chrono::milliseconds disk_time{500};  ///< time to write to the disk; zero: do not write
};

/// Examines the host. A missing file of /proc or /sys is a finding, never a failure. Writes at most 1 GiB to a nameless file
/// in the data directory, which always disappears at the end. Blocks for about disk_time.
std::vector<Finding> examine_host(const DoctorSettings& settings);

}  // namespace rodeo::cli
