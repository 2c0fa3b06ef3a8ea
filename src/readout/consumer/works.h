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

/// Proves every byte of every chunk against the provable payload, and that each fragment is of one trigger and holds no link
/// twice.
class VerifyWork final : public FragmentWork {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    bool crc = false;                ///< chunks end in a CRC-32
    std::uint32_t l1id_bits = 32;    ///< of the L1 id in chunks
    std::uint32_t l1id_counter = 0;  ///< 32: these are a counter of 32 bits without resets
    bool trigger = true;             ///< compare the fragment's BCID and trigger type
    std::uint32_t chunk_bytes =
        0;  ///< every whole chunk has this size; 0: any (a chunk cut short by a multiple of a word then goes unseen)
  };

  explicit VerifyWork(Settings settings) : settings_(settings), provable_(settings.seed, settings.crc, settings.l1id_bits) {}

  bool read_only() const override { return true; }
  void process(Fragment& fragment) override;

  /// verified_chunks, mismatches (the sum of what is wrong, by kind below), mismatching_fragments, flagged_chunks (known to
  /// be truncated or corrupt: not compared), wrong_chunks, duplicate_links, wrong_triggers, broken_fragments,
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
    std::uint64_t chunks = 0;      ///< seen in this fragment
    std::uint32_t wrong_link = 0;  ///< link id of the first chunk that is not right
  };
  struct Kind {
    std::string_view name;
    std::uint64_t Tally::* count;
  };
  static const std::array<Kind, 5> kWrong;  ///< what counts as a mismatch

  void verify_chunk(const ChunkHeader& header, std::span<const std::byte> bytes, L1Id id, std::uint64_t first_word,
                    Tally& tally);

  const Settings settings_;
  const formats::Provable provable_;
  LinkTable links_;
  FirstWrong first_wrong_;
  base::Gauge<std::uint64_t> verified_chunks_, mismatches_, mismatching_fragments_, flagged_chunks_;
  std::array<base::Gauge<std::uint64_t>, 5> wrong_;  ///< as kWrong
};

/// Reads every byte of every fragment and does nothing with it: what a consumer that has to touch all data costs at least.
class ReadWork final : public FragmentWork {
 public:
  bool read_only() const override { return true; }
  void process(Fragment& fragment) override;

  /// read_bytes, and read_sum (so that no compiler can leave the reading out).
  std::vector<NamedCounter> counters() const override;

 private:
  base::Gauge<std::uint64_t> bytes_;
  base::Gauge<std::uint64_t> sum_;
};

/// Does nothing: the fragment is let go at the end of the list.
class ReleaseWork final : public FragmentWork {
 public:
  bool read_only() const override { return true; }
  void process(Fragment&) override {}
};

/// The exclusive or of all 64-bit words, the last one filled up with zeros; as fast as memory delivers them.
std::uint64_t xor_of(std::span<const std::byte> bytes);

}  // namespace rodeo::readout
