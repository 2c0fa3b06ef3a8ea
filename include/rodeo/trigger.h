// Trigger-information extraction and data integrity checking: the detector's chunk format for a builder
// (software ROD paper, section VI.B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rodeo/chunk.h"

namespace rodeo {

/// The trigger information in a chunk format. L1 ids have 1 to 32 bits without a reset counter, or 24 bits with one; other
/// formats are refused.
struct TriggerFields {
  std::uint8_t l1id_bits = 24;  ///< valid low bits of the L1 id, which continue from 0 when they wrap
  bool has_ecr = false;         ///< bits 24..31 are the ECR counter; each of its steps restarts the 24 low bits at 0
  bool has_bcid = false;        ///< 12-bit bunch-crossing id
  bool has_trigger_type = false;
};

/// Trigger information of one chunk. Bits outside the format are zero.
struct TriggerInfo {
  std::uint32_t l1id = 0;  ///< L1 id in the low `l1id_bits` bits; ECR counter in bits 24..31 if the format has it
  std::uint16_t bcid = 0;
  std::uint8_t trigger_type = 0;
  bool valid = true;  ///< false: the chunk is too short or malformed, so its trigger is unknown
};

/// Reads trigger information from the chunks of a run. One object serves one worker thread; calls do not overlap.
/// Must not block, allocate or keep pointers.
class TriggerExtractor {
 public:
  virtual ~TriggerExtractor() = default;

  /// Constant for the lifetime of the object.
  virtual TriggerFields fields() const = 0;

  /// Fills l1ids[i] and bcids[i] for i in [first, first + n) of the run (index 0 of the arrays is chunk `first`) and returns
  /// how many leading chunks were readable; the next chunk, if any, counts as malformed, and the function is called again
  /// for the rest. It should not throw. After an exception it is called again for half as many chunks, down to one, because
  /// the failing chunk is unknown: that chunk is lost (`plugin_threw`), the others are not. So the result for a chunk must
  /// not depend on earlier calls.
  virtual std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                                std::uint16_t* bcids) = 0;

  /// Trigger type of one chunk; called once per event, only if fields().has_trigger_type. After an exception the event has
  /// type 0 and is flagged (data corruption).
  virtual std::uint8_t trigger_type(std::span<const std::byte> chunk) {
    (void)chunk;
    return 0;
  }
};

/// A plain function per chunk, adapted to the per-run interface by Registry::add_extractor().
using ExtractFunction = TriggerInfo (*)(std::span<const std::byte> chunk);

/// Checks the chunks of a run. Same threading as TriggerExtractor.
class IntegrityChecker {
 public:
  virtual ~IntegrityChecker() = default;

  /// Returns how many leading chunks of [first, first + n) are good; the next chunk is corrupt, and the function is called
  /// again for the rest. A chunk for which it throws is corrupt.
  virtual std::uint32_t check(const ChunkRun& run, std::uint32_t first, std::uint32_t n) = 0;
};

/// A plain function per chunk: true if the chunk has the bytes that the link sent.
using CheckFunction = bool (*)(std::span<const std::byte> chunk);

/// Gives a chunk a new trigger, for a replay with new ids. Replaces L1 id and BCID in place, and the checksum if there is
/// one.
using RestampFunction = void (*)(std::span<std::byte> chunk, const TriggerInfo& trigger);

}  // namespace rodeo
