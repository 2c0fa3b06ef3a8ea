// Common parts of all ways to run `rodeo demo`: options, emulated card, verification of the written files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo_directory.h"
#include "cli/output.h"
#include "cli/program.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::Json;

struct DemoOptions {
  std::optional<double> rate_hz;  ///< if left out: a rate for a laptop
  std::uint64_t links = 192;
  double seconds = 10;
  bool keep = false;
  bool chain = false;
  bool no_farm = false;
  bool no_page = false;
  std::vector<std::string> settings;
  std::string json_file;

  /// True if the chain continues behind the readouts: whole events, selected and recorded.
  bool farm() const { return chain && !no_farm; }
  double rate() const { return rate_hz.value_or(farm() ? kFarmRateHz : kUsualRateHz); }

  static constexpr double kUsualRateHz = 100e3;
  static constexpr double kFarmRateHz = 5e3;  ///< two cores carry every event through all processes
};

// The most that a demo writes to the disk.
constexpr double kMostDemoBytes = 0.9e9;

/// The share of the events that fits into this limit and into a quarter of the free disk space.
double written_fraction(const DemoOptions& options, std::uintmax_t free_bytes);

/// The emulated card of a demo. Each has its own address, so that demos can run side by side.
struct DemoCard {
  std::string name;     // of the emulator
  std::string address;  // of the card
  std::uint64_t fibres = 0;
  std::uint64_t elinks_per_fibre = 0;
  std::uint64_t links = 0;

  static constexpr std::uint64_t kMostFibres = 24;
  static constexpr std::uint64_t kUsualElinks = 8;
  static constexpr std::uint64_t kMostElinks = 64;
  static constexpr std::uint64_t kMostLinks = kMostFibres * kMostElinks;

  explicit DemoCard(std::uint64_t wanted);

  /// KEY=VALUE of [emulator]; the overrides of the options come last.
  std::vector<std::string> emulator_overrides(const DemoOptions& options) const;
};

/// The result of reading back the files of a demo.
struct FilesReadBack {
  Json json;  ///< "files_verified" of the report
  std::uint64_t events = 0;
  std::uint64_t findings = 0;  ///< bytes that differ from those sent, and chunks that are not provable

  bool proved() const { return findings == 0 && events > 0; }
};

/// Reads the files back, verifies every byte, and prints the findings on stderr. Errors: of opening and reading.
Result<FilesReadBack> read_back(const std::vector<std::string>& files, std::uint64_t bytes_written);

}  // namespace rodeo::cli
