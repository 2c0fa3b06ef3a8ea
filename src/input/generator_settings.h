// Settings of an internal data generator: one plain struct, its configuration keys, and their check.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "rodeo/ids.h"
#include "rodeo/parameters.h"

namespace rodeo::input {

enum class ChunkSizes : std::uint8_t { fixed, uniform, normal };

/// Faults on purpose. Values are chances per chunk, 0 to 1; a chunk has at most one fault. Positions are numbers of accepted
/// triggers, so a run has the same faults at any speed.
struct FaultSettings {
  double missing = 0;          ///< chunk is not sent
  double duplicate = 0;        ///< chunk is sent twice
  double late = 0;             ///< chunk is held back by late_by
  double corrupt = 0;          ///< one bit of the payload is flipped
  double l1id = 0;             ///< one bit of the L1 id is flipped
  double truncated = 0;        ///< chunk is cut short, with chunk_status::kFirmwareTruncated
  double jump = 0;             ///< one chunk is sent with L1 id + jump_by
  double out_of_sequence = 0;  ///< chunk is sent after the next chunk of its link
  double bcid = 0;             ///< BCID is one too large
  std::chrono::nanoseconds late_by = std::chrono::milliseconds{50};

  std::uint32_t jump_by = 1000;
  std::int64_t jump_link = -1;  ///< position of a link whose numbering jumps by jump_by
  std::uint64_t jump_from = 0;
  std::uint64_t jump_for = 0;  ///< number of triggers; 0: to the end

  std::int64_t silent_link = -1;  ///< position of a link that sends nothing for a while
  std::uint64_t silent_from = 0;
  std::uint64_t silent_for = 0;  ///< number of triggers; 0: to the end

  std::int64_t lag_link = -1;  ///< position of a link whose chunks come lag_by triggers after those of the others
  std::uint32_t lag_by = 0;

  /// True if some chunk may have a fault, so that the plain loop is not enough.
  bool any() const {
    return missing + duplicate + late + corrupt + l1id + truncated + jump + out_of_sequence + bcid > 0 || jump_link >= 0 ||
           silent_link >= 0;
  }
};

struct GeneratorSettings {
  static constexpr std::size_t kMaximumLinks = 65535;  ///< limit of a LinkIndex with 16 bits
  static constexpr std::uint32_t kMaximumChunkBytes = 1U << 20;
  static constexpr double kUnlimited = 0;  ///< rate_hz: as fast as the readout takes triggers

  std::vector<Fid> links;
  std::uint64_t seed = 1;

  ChunkSizes sizes = ChunkSizes::fixed;
  std::uint32_t chunk_bytes = 40;  ///< the fixed size, or the mean of drawn ones
  std::uint32_t size_min = 40;     ///< drawn sizes stay within [size_min, size_max]
  std::uint32_t size_max = 40;
  std::uint32_t size_sigma = 0;  ///< width of normal sizes
  bool crc = false;
  std::uint32_t l1id_bits = 32;    ///< 32 (ECR counter and 24 bits), 24, 16 or 8
  std::uint32_t l1id_counter = 0;  ///< 32: chunks carry a counter of 32 bits without resets

  double rate_hz = 100e3;
  bool random = false;       ///< exponential instead of even spacing
  std::uint64_t events = 0;  ///< accepted triggers after which the run ends; 0: none
  double occupancy = 1;      ///< chance that a link has data for a trigger
  /// FULL mode: the links are divided, in order, into this many groups; links of a group carry events in turn.
  std::uint32_t groups = 0;
  std::uint64_t ecr_triggers = 0;          ///< triggers between event counter resets; 0: never
  std::chrono::nanoseconds ecr_period{0};  ///< time between event counter resets; 0: never

  std::uint64_t memory_bytes = 0;  ///< memory of all pages; 0: nominal_memory_bytes(), more if the links need it
  std::uint32_t page_bytes = 64 * 1024;
  std::uint32_t run_length = 0;  ///< chunks per run; 0: as many as fill a FELIX block of 1 KiB
  std::chrono::nanoseconds flush = std::chrono::milliseconds{1};  ///< longest time that a run waits for more chunks
  int cpu = -1;                                                   ///< CPU of the generator's thread; -1: any

  FaultSettings faults;

  /// Links of one group; in group mode also the distance of a link's triggers.
  std::uint32_t stride() const { return groups == 0 ? 1 : static_cast<std::uint32_t>(links.size() / groups); }

  /// Reads a configuration table that has all keys of generator_keys(). Throws SetupError.
  static GeneratorSettings from(const Parameters& parameters);

  /// Memory for 100 ms of the nominal rate, 16 to 128 MiB.
  std::uint64_t nominal_memory_bytes() const;

  /// Sets what the user left open (run length, page size) and checks all. Throws SetupError (readout.bad_generator).
  void complete();
};

/// The configuration keys of `type = "generator"`.
std::vector<Key> generator_keys();

/// The FIDs of generated links: as many cards as needed, each with 24 links of 8 E-links, or of one (FULL mode).
std::vector<Fid> generated_fids(std::size_t count, std::uint32_t detector, std::uint32_t first_card, bool full_mode);

}  // namespace rodeo::input
