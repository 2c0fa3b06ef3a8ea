// Trigger-information extraction and data integrity checking: what a detector's chunk format means to a builder
// (software ROD paper, section VI.B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rodeo/chunk.h"

namespace rodeo {

/// What of a trigger a chunk format carries. L1 ids have 1 to 32 bits without a reset counter, or 24 bits with one: anything else is refused.
struct TriggerFields {
  std::uint8_t l1id_bits = 24;  ///< valid low bits of the L1 id, which go on from 0 where they wrap
  bool has_ecr = false;         ///< bits 24..31 are the ECR counter; the 24 below begin again at 0 where it goes on
  bool has_bcid = false;        ///< 12-bit bunch-crossing id
  bool has_trigger_type = false;
};

/// Trigger information of one chunk. Bits that the format does not carry are zero.
struct TriggerInfo {
  std::uint32_t l1id = 0;  ///< L1 id in the low `l1id_bits` bits; ECR counter in bits 24..31 where the format has it
  std::uint16_t bcid = 0;
  std::uint8_t trigger_type = 0;
  bool valid = true;  ///< false: the chunk is too short or malformed to name its trigger
};

/// Reads trigger information from the chunks of a run. One object serves one worker thread; calls do not overlap.
/// Must not block, allocate or keep pointers.
class TriggerExtractor {
 public:
  virtual ~TriggerExtractor() = default;

  /// Constant for the life of the object.
  virtual TriggerFields fields() const = 0;

  /// Fills l1ids[i] and bcids[i] for i in [first, first + n) of the run (index 0 of the arrays is chunk `first`) and returns how
  /// many leading chunks could be read; the chunk after them, if any, is taken as malformed and the rest is asked for again.
  /// It should not throw. What it throws does not say how far it came, so it is asked again for half as many, down to one: that chunk is lost
  /// (`plugin_threw`), the others are not. Hence the answer for a chunk must not depend on what was asked before.
  virtual std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                                std::uint16_t* bcids) = 0;

  /// Trigger type of one chunk; asked once per event, only if fields().has_trigger_type. An event at which it throws has type 0 and is flagged
  /// (data corruption).
  virtual std::uint8_t trigger_type(std::span<const std::byte> chunk) {
    (void)chunk;
    return 0;
  }
};

/// A plain function per chunk, adapted to the per-run interface by register_trigger_extractor (plugin.h).
using ExtractFunction = TriggerInfo (*)(std::span<const std::byte> chunk);

/// Checks the chunks of a run. Same threading as TriggerExtractor.
class IntegrityChecker {
 public:
  virtual ~IntegrityChecker() = default;

  /// Returns how many leading chunks of [first, first + n) are good; the chunk after them is corrupt, the rest is asked again.
  /// A chunk at which it throws is corrupt.
  virtual std::uint32_t check(const ChunkRun& run, std::uint32_t first, std::uint32_t n) = 0;
};

/// A plain function per chunk: true if the chunk is as it was sent.
using CheckFunction = bool (*)(std::span<const std::byte> chunk);

/// Gives a chunk a new trigger, for replay with new ids: rewrites L1 id and BCID in place, and the checksum if there is one.
using RestampFunction = void (*)(std::span<std::byte> chunk, const TriggerInfo& trigger);

}  // namespace rodeo
