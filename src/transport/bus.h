// Who publishes which links, and where: a directory with one file for each publisher (docs/protocols/bus.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::transport {

struct BusEntry {
  std::string name;  ///< letters, digits, `.`, `_`, `-`, at most 64
  std::uint64_t instance = 0;
  std::string host = {};
  std::int64_t pid = 0;
  std::string address = {};  ///< numerical, of its control connections
  std::uint16_t port = 0;
  std::vector<std::string> providers = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t max_chunk_bytes = 0;  ///< the longest chunk of its links; 0: it does not say
  std::string program = {};
  double unix_time = 0;  ///< when it began
  bool trigger_list = false;
  std::string service = {};  ///< what it does for who asks ("fragments"); empty: it publishes links
  std::vector<Fid> links = {};

  bool operator==(const BusEntry&) const = default;
};

/// What is in the file of an entry.
std::string bus_entry_text(const BusEntry& entry);

/// Any bytes; the file is not opened, but has the name of the entry in it. Error transport.bus_entry.
Result<BusEntry> parse_bus_entry(std::string_view text, const std::filesystem::path& file);

/// "bus" in the runtime directory; nothing is made or checked.
std::filesystem::path default_bus();

/// An entry that is on the bus as long as this lives: the end removes the file if it is still this instance's.
class Advertisement {
 public:
  /// The publisher listens already. The directory is made with mode 0700 if it is not there. What a crash left under the name is replaced; blocks for
  /// up to a second to see whether it lives. Errors: transport.name_taken (by another instance, which lives), transport.bus (the directory cannot be used),
  /// transport.bus_entry (an entry that nobody could read).
  static Result<Advertisement> put(const std::filesystem::path& bus, BusEntry entry);

  Advertisement(Advertisement&& other) noexcept : file_(std::exchange(other.file_, {})), instance_(other.instance_) {}
  Advertisement& operator=(Advertisement&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(instance_, other.instance_);
    return *this;
  }
  ~Advertisement();

 private:
  Advertisement(std::filesystem::path file, std::uint64_t instance) : file_(std::move(file)), instance_(instance) {}

  std::filesystem::path file_;  // empty: moved from
  std::uint64_t instance_ = 0;
};

inline constexpr std::size_t kMostBusFiles = 4096;
inline constexpr std::size_t kMostBusFileBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMostBusLinks = 65'535;  ///< of one publisher

struct BusReading {
  std::vector<BusEntry> entries;  ///< sorted by name
  std::vector<Error> unreadable;  ///< files that were left out, and why
};

/// No directory: no entries. Error transport.bus: it cannot be read. An entry is no proof that its publisher lives: connecting decides.
Result<BusReading> read_bus(const std::filesystem::path& bus);

/// The entry of this name; nothing: there is none. Errors transport.bus, transport.bus_entry.
Result<std::optional<BusEntry>> look_up(const std::filesystem::path& bus, const std::string& name);

/// Whether somebody accepts connections at this numerical address. Blocks for up to `patience`.
bool somebody_answers(const std::string& address, std::uint16_t port, std::chrono::milliseconds patience);

/// Whether the process of an entry lives: somebody accepts connections there, and does not say that he is another. Who says nothing has other things to do,
/// and lives. Blocks for up to `patience`.
bool lives(const BusEntry& entry, std::chrono::milliseconds patience);

/// Of who was called at the address of an entry, and said of itself in its HELLO which instance it is. Error transport.closed: it is another.
Result<void> check_instance(const BusEntry& entry, std::uint64_t instance);

}  // namespace rodeo::transport
