// The list of publishers, with their links and addresses: a directory with one file for each publisher
// (docs/reference/protocols/bus.md).
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
  std::string name = {};  ///< letters, digits, `.`, `_`, `-`, at most 64
  std::uint64_t instance = 0;
  std::string host = {};
  std::int64_t pid = 0;
  std::string address = {};  ///< numerical; for control connections
  std::uint16_t port = 0;
  std::vector<std::string> providers = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t max_chunk_bytes = 0;  ///< longest chunk of its links; 0: unknown
  std::string program = {};
  double unix_time = 0;  ///< start of the publisher
  bool trigger_list = false;
  std::string service = {};  ///< the kind of service ("fragments"); empty: a publisher of links
  std::vector<Fid> links = {};

  bool operator==(const BusEntry&) const = default;
};

/// The text of an entry's file.
std::string bus_entry_text(const BusEntry& entry);

/// `text` may be any bytes. `file` is not opened, but names the entry. Error transport.bus_entry.
Result<BusEntry> parse_bus_entry(std::string_view text, const std::filesystem::path& file);

/// "bus" in the runtime directory; creates and checks nothing.
std::filesystem::path default_bus();

/// An entry on the bus for the lifetime of this object. The destructor removes the file if it still belongs to this
/// instance.
class Advertisement {
 public:
  /// The publisher must listen already. Makes the directory with mode 0700 if it is missing. Replaces an entry of the same
  /// name that a crash left: blocks for up to a second to see whether its owner lives. Errors: transport.name_taken
  /// (another, living instance has the name), transport.bus (the directory cannot be used), transport.bus_entry (no reader
  /// could parse this entry).
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

  std::filesystem::path file_;  // empty after a move
  std::uint64_t instance_ = 0;
};

inline constexpr std::size_t kMostBusFiles = 4096;
inline constexpr std::size_t kMostBusFileBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMostBusLinks = 65'535;  ///< limit of links of one publisher

struct BusReading {
  std::vector<BusEntry> entries;  ///< sorted by name
  std::vector<Error> unreadable;  ///< one error for each file that was left out
};

/// A missing directory has no entries. Error transport.bus: it cannot be read. An entry may be stale: a connection shows
/// that its publisher lives.
Result<BusReading> read_bus(const std::filesystem::path& bus);

/// The entry of this name; nothing if it is missing. Errors transport.bus, transport.bus_entry.
Result<std::optional<BusEntry>> find_entry(const std::filesystem::path& bus, const std::string& name);

/// True if a process accepts connections at this numerical address. Blocks for up to `patience`.
bool accepts_connections(const std::string& address, std::uint16_t port, std::chrono::milliseconds patience);

/// True if the process of an entry lives: a process accepts connections there and does not name another instance. A silent
/// process counts as alive: it may be busy. Blocks for up to `patience`.
bool is_alive(const BusEntry& entry, std::chrono::milliseconds patience);

/// Compares the entry's instance with `instance`, which the process at the entry's address named in its HELLO. Error
/// transport.closed: they differ.
Result<void> check_instance(const BusEntry& entry, std::uint64_t instance);

}  // namespace rodeo::transport
