// What one recorder is to do, as plain values: farm/recorder/plan.h fills it from a configuration, tests fill it by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "farm/network_keys.h"
#include "formats/file_marks.h"
#include "process/stop_limit.h"

namespace rodeo::farm {

/// When what was taken is flushed to the disk, after which it is acknowledged.
enum class SyncPolicy : std::uint8_t {
  each,      ///< at once; what comes while the disk is busy goes together
  by_time,   ///< when the oldest has waited for `sync_interval`
  by_bytes,  ///< when `sync_bytes` wait, or the oldest has waited for `sync_interval`
};

/// Where event files of a recorder go.
struct FileKeys {
  std::filesystem::path directory = ".";
  std::string project = "rodeo";
  std::uint64_t max_file_bytes = std::uint64_t{2} << 30;  ///< 0: no limit
  std::uint32_t max_file_events = 0;                      ///< 0: no limit
  std::uint64_t min_free_bytes = 64 << 20;
  SyncPolicy sync = SyncPolicy::each;
  std::chrono::nanoseconds sync_interval = std::chrono::milliseconds{100};
  std::uint64_t sync_bytes = 16 << 20;
  std::chrono::nanoseconds lumi_block_linger = std::chrono::seconds{5};
  std::chrono::nanoseconds retry_interval = std::chrono::seconds{1};  ///< after a disk was full or failed
  std::uint32_t most_open = 32;                                       ///< files of streams and luminosity blocks at a time
  std::size_t buffer_bytes = 4 << 20;
  unsigned buffers = 4;  ///< of each file that is open
  bool direct = true;
  std::string payload = {};  ///< what stands behind "Rodeo-Payload=" in files of the readouts; empty: nothing
};

/// Where closed files go.
struct TargetKeys {
  std::string directory = {};                      ///< copied there
  std::vector<std::string> copy_command = {};      ///< or by this, with {file} and {name}
  std::vector<std::string> checksum_command = {};  ///< prints the SHA-256 of what was copied
  bool remove = true;                              ///< the local file, once the copy is confirmed
  std::chrono::nanoseconds retry_interval = std::chrono::seconds{10};
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};  ///< of one command
  std::chrono::nanoseconds linger = std::chrono::seconds{25};  ///< at the end of a run

  bool any() const { return !directory.empty() || !copy_command.empty(); }
};

struct RecorderSettings {
  std::string name = "recorder";  ///< of its service on the bus
  std::uint32_t run_number = 1;   ///< where it is not told
  FileKeys files = {};
  TargetKeys target = {};
  NetworkKeys network = {};
  std::uint32_t most_clients = 4096;                          ///< at a time
  std::chrono::nanoseconds stop_limit = process::kStopLimit;  ///< from the order to stop to the end
};

}  // namespace rodeo::farm
