// What every way to run `rodeo demo` shares: its options, its emulated card, and the proof of what it has written.
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
  std::optional<double> rate_hz;  ///< left out: what a laptop can carry
  std::uint64_t links = 192;
  double seconds = 10;
  bool keep = false;
  bool chain = false;
  bool no_farm = false;
  bool no_page = false;
  std::vector<std::string> settings;
  std::string json_file;

  /// The chain goes on behind the readouts: whole events, selected and recorded.
  bool farm() const { return chain && !no_farm; }
  double rate() const { return rate_hz.value_or(farm() ? kFarmRateHz : kUsualRateHz); }

  static constexpr double kUsualRateHz = 100e3;
  static constexpr double kFarmRateHz = 5e3;  ///< two cores carry every event through all processes
};

// What a demo leaves on the disk, at most.
constexpr double kMostDemoBytes = 0.9e9;

/// The share of the events that fits into what the demo may leave, and into a quarter of what the disk has free.
double written_fraction(const DemoOptions& options, std::uintmax_t free_bytes);

/// The emulated card of a demo: an address of its own, so that demos can run side by side, and links enough.
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

  /// KEY=VALUE of [emulator], those of the options last.
  std::vector<std::string> emulator_overrides(const DemoOptions& options) const;
};

/// What reading back the files of a demo has shown.
struct FilesReadBack {
  Json json;  ///< "files_verified" of the report
  std::uint64_t events = 0;
  std::uint64_t findings = 0;  ///< bytes that are not what was sent, and chunks that do not prove themselves

  bool proved() const { return findings == 0 && events > 0; }
};

/// Reads the files back, proves every byte, and says on stderr what is wrong. Errors: of opening and reading.
Result<FilesReadBack> read_back(const std::vector<std::string>& files, std::uint64_t bytes_written);

}  // namespace rodeo::cli
