// The works of the default library: verify, read, release.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "formats/event_ids.h"
#include "formats/provable.h"
#include "readout/consumer/first_wrong.h"
#include "readout/consumer/link_table.h"
#include "rodeo/consumer.h"
#include "rodeo/parameters.h"

namespace rodeo::readout {

/// Verifies every byte of every chunk against the provable payload, that all chunks of a fragment belong to one trigger, and
/// that no link occurs twice.
class VerifyWork final : public FragmentWork {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    bool crc = false;                ///< chunks end in a CRC-32
    std::uint32_t l1id_bits = 32;    ///< bits of the L1 id in chunks
    std::uint32_t l1id_counter = 0;  ///< 32: the L1 ids are a counter of 32 bits without resets
    bool trigger = true;             ///< compare the fragment's BCID and trigger type
    std::uint32_t chunk_bytes =
        0;  ///< size of every whole chunk; 0: any size (then a cut by a multiple of a word is not detected)
  };

  explicit VerifyWork(Settings settings) : settings_(settings), provable_(settings.seed, settings.crc, settings.l1id_bits) {}

  bool read_only() const override { return true; }
  void process(Fragment& fragment) override;

  /// verified_chunks, mismatches (the sum of the faults, by kind below), mismatching_fragments, flagged_chunks
  /// (truncated or corrupt, so not compared), wrong_chunks, duplicate_links, wrong_triggers, broken_fragments,
  /// missing_but_present.
  std::vector<NamedCounter> counters() const override;

  static std::vector<Key> keys();
  static Settings settings(const Parameters& parameters);

 private:
  struct Tally {
    std::uint64_t verified_chunks = 0;
    std::uint64_t flagged_chunks = 0;
    std::uint64_t wrong_chunks = 0;
    std::uint64_t duplicate_links = 0;
    std::uint64_t wrong_triggers = 0;
    std::uint64_t broken_fragments = 0;
    std::uint64_t missing_but_present = 0;
    std::uint64_t chunks = 0;      ///< chunks of this fragment up to now
    std::uint32_t wrong_link = 0;  ///< link id of the first wrong chunk
  };
  struct Kind {
    std::string_view name;
    std::uint64_t Tally::* count;
  };
  static const std::array<Kind, 5> kWrong;  ///< the faults that count as mismatch

  void verify_chunk(const ChunkHeader& header, std::span<const std::byte> bytes, L1Id id, std::uint64_t first_word,
                    Tally& tally);

  const Settings settings_;
  const formats::Provable provable_;
  LinkTable links_;
  FirstWrong first_wrong_;
  base::Gauge<std::uint64_t> verified_chunks_, mismatches_, mismatching_fragments_, flagged_chunks_;
  std::array<base::Gauge<std::uint64_t>, 5> wrong_;  ///< counts in the order of kWrong
};

/// Reads every byte of every fragment without using it: the least cost of a consumer that must touch all data.
class ReadWork final : public FragmentWork {
 public:
  bool read_only() const override { return true; }
  void process(Fragment& fragment) override;

  /// The counters read_bytes, and read_sum (which prevents compilers from removing the reads).
  std::vector<NamedCounter> counters() const override;

 private:
  base::Gauge<std::uint64_t> bytes_;
  base::Gauge<std::uint64_t> sum_;
};

/// Does nothing: the end of the list releases the fragment.
class ReleaseWork final : public FragmentWork {
 public:
  bool read_only() const override { return true; }
  void process(Fragment&) override {}
};

/// The exclusive or of all 64-bit words, the last one padded with zeros. It runs at the speed of the memory.
std::uint64_t xor_of(std::span<const std::byte> bytes);

}  // namespace rodeo::readout
