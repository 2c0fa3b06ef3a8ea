// The settings of one recorder as plain values. A configuration gives them (farm/recorder/configuration.h), or a test sets
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "farm/network_settings.h"
#include "formats/file_marks.h"
#include "process/stop_limit.h"

namespace rodeo::farm {

/// When events are flushed to the disk. After the flush they are acknowledged.
enum class SyncPolicy : std::uint8_t {
  each,      ///< Flushes at once; events that come while the disk is busy go together.
  by_time,   ///< Flushes when the oldest event has waited for `sync_interval`.
  by_bytes,  ///< Flushes when `sync_bytes` wait, or the oldest event has waited for `sync_interval`.
};

/// Directory and names of a recorder's event files, and how they are written.
struct FileSettings {
  std::filesystem::path directory = ".";
  std::string project = "rodeo";
  std::uint64_t max_file_bytes = std::uint64_t{2} << 30;  ///< 0: no limit.
  std::uint32_t max_file_events = 0;                      ///< 0: no limit.
  std::uint64_t min_free_bytes = 64 << 20;
  SyncPolicy sync = SyncPolicy::each;
  std::chrono::nanoseconds sync_interval = std::chrono::milliseconds{100};
  std::uint64_t sync_bytes = 16 << 20;
  std::chrono::nanoseconds lumi_block_linger = std::chrono::seconds{5};
  std::chrono::nanoseconds retry_interval = std::chrono::seconds{1};  ///< Pause after a disk was full or failed.
  std::uint32_t most_open = 32;                                       ///< Limit of open files.
  std::size_t buffer_bytes = 4 << 20;
  unsigned buffers = 4;  ///< Buffers of each open file.
  bool direct = true;
  std::string payload = {};  ///< The text behind "Rodeo-Payload=" in files of the readouts; empty: none.
};

/// Where closed files go.
struct TargetSettings {
  std::string directory = {};                      ///< Directory to which files are copied.
  std::vector<std::string> copy_command = {};      ///< Command that copies files instead, with {file} and {name}.
  std::vector<std::string> checksum_command = {};  ///< Command that prints the SHA-256 of the copy.
  bool remove = true;                              ///< Removes the local file once the copy is confirmed.
  std::chrono::nanoseconds retry_interval = std::chrono::seconds{10};
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};  ///< Time limit of one command.
  std::chrono::nanoseconds linger = std::chrono::seconds{25};  ///< Time limit at the end of a run.

  bool any() const { return !directory.empty() || !copy_command.empty(); }
};

struct RecorderSettings {
  std::string name = "recorder";  ///< Name of the recorder's service on the bus.
  std::uint32_t run_number = 1;   ///< Used if run control gives none.
  FileSettings files = {};
  TargetSettings target = {};
  NetworkSettings network = {};
  std::uint32_t most_clients = 4096;                          ///< Limit of connected clients.
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< From the order to stop to the end.
};

}  // namespace rodeo::farm
