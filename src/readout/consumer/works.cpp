#include "readout/consumer/works.h"
#include "rodeo/settings.h"

#include <cstring>

namespace rodeo::readout {

const std::array<VerifyWork::Kind, 5> VerifyWork::kWrong{{{"wrong_chunks", &Tally::wrong_chunks},
                                                          {"duplicate_links", &Tally::duplicate_links},
                                                          {"wrong_triggers", &Tally::wrong_triggers},
                                                          {"broken_fragments", &Tally::broken_fragments},
                                                          {"missing_but_present", &Tally::missing_but_present}}};

void VerifyWork::verify_chunk(const ChunkHeader& header, std::span<const std::byte> bytes, L1Id id, std::uint64_t first_word,
                              Tally& tally) {
  ++tally.chunks;
  if (header.felix_status != 0 || header.rodeo_status != 0) [[unlikely]] {
    ++tally.flagged_chunks;
  } else if (!provable_.matches(bytes, first_word, provable_.key(header.link_id, id)) ||
             (settings_.chunk_bytes != 0 && bytes.size() != settings_.chunk_bytes)) [[unlikely]] {
    ++tally.wrong_chunks;
    if (tally.wrong_link == 0) tally.wrong_link = header.link_id;
    return;  // the link id itself may be wrong
  } else {
    ++tally.verified_chunks;
  }
  if (!links_.add(header.link_id)) [[unlikely]] {
    ++tally.duplicate_links;
    if (tally.wrong_link == 0) tally.wrong_link = header.link_id;
  }
}

void VerifyWork::process(Fragment& fragment) {
  links_.next_fragment();
  Tally tally;
  const L1Id id = formats::payload_id(fragment.global_id);
  const formats::ProvableTrigger expected = provable_.trigger(id);
  const std::uint64_t first_word = provable_.header(id);

  // In GBT mode, chunks never cross the end of a part. If a chunk does (FULL mode), the general loop starts from the
  // beginning.
  bool whole = true;
  for (const FragmentPart& part : fragment.all_parts()) {
    whole = for_each_whole_chunk(std::span(part.data, part.size), [&](const ChunkHeader& header, auto, auto bytes) {
              verify_chunk(header, bytes, id, first_word, tally);
            }) == part.size;
    if (!whole) break;
  }
  if (!whole) {
    links_.next_fragment();
    tally = {};
    const bool sound = fragment.for_each_chunk([&](const ChunkHeader& header, std::span<const std::byte> bytes) {
      verify_chunk(header, bytes, id, first_word, tally);
    });
    if (!sound) ++tally.broken_fragments;
  }
  if (tally.chunks != fragment.chunks && tally.broken_fragments == 0) ++tally.broken_fragments;
  if (settings_.trigger && fragment.chunks > 0 && (fragment.status & fragment_status::kBcidMismatch) == 0 &&
      (fragment.bcid != expected.bcid || fragment.trigger_type != expected.trigger_type)) {
    ++tally.wrong_triggers;
  }
  if (fragment.missing != 0 || fragment.removed != 0) {
    const auto expect_absent = [&](std::uint32_t link_id) { tally.missing_but_present += links_.contains(link_id) ? 1 : 0; };
    fragment.for_each_link(fragment.missing_links, expect_absent);
    fragment.for_each_link(fragment.removed_links, expect_absent);
  }

  verified_chunks_.add(tally.verified_chunks);
  flagged_chunks_.add(tally.flagged_chunks);
  std::uint64_t mismatches = 0;
  for (std::size_t i = 0; i < kWrong.size(); ++i) {
    const std::uint64_t count = tally.*kWrong[i].count;
    if (count == 0) continue;
    mismatches += count;
    wrong_[i].add(count);
  }
  if (mismatches == 0) return;
  first_wrong_.set(fragment, tally.wrong_link);
  mismatches_.add(mismatches);
  mismatching_fragments_.add(1);
}

std::vector<NamedCounter> VerifyWork::counters() const {
  std::vector<NamedCounter> out{{"verified_chunks", verified_chunks_.get()},
                                {"mismatches", mismatches_.get()},
                                {"mismatching_fragments", mismatching_fragments_.get()},
                                {"flagged_chunks", flagged_chunks_.get()}};
  for (std::size_t i = 0; i < kWrong.size(); ++i) out.push_back({std::string(kWrong[i].name), wrong_[i].get()});
  first_wrong_.add_to(out);
  return out;
}

namespace {

const Settings<VerifyWork::Settings>& verify_settings() {
  using S = VerifyWork::Settings;
  static const Settings<S> settings{
      setting(&S::seed, "seed", "Seed of the provable payload. Left out: the seed of the generator."),
      setting(&S::crc, "crc", "Chunks end in a CRC-32. Left out: the value of the generator."),
      setting(&S::l1id_bits, "l1id_bits",
              "Bits of the L1 id that chunks carry: 32 (ECR counter and 24 bits), or that many low bits. Left out: the "
              "value of the generator.",
              {.minimum = 4, .maximum = 32}),
      setting(&S::l1id_counter, "l1id_counter",
              "32: chunks carry a counter of 32 bits without resets. Left out: the value of the generator.",
              {.maximum = 32}),
      setting(&S::trigger, "check_trigger",
              "Compare the fragment's BCID and trigger type too; false for chunk formats that do not carry them."),
      setting(&S::chunk_bytes, "chunk_bytes",
              "Size of every whole chunk; finds chunks cut short without a flag. 0: any size.", {.unit = Unit::bytes}),
  };
  return settings;
}

}  // namespace

std::vector<Key> VerifyWork::keys() { return verify_settings().keys(); }
VerifyWork::Settings VerifyWork::settings(const Parameters& parameters) { return verify_settings().read(parameters); }

std::uint64_t xor_of(std::span<const std::byte> bytes) {
  // Eight independent sums: then only the memory limits the loop.
  constexpr std::size_t kLanes = 8;
  constexpr std::size_t kAhead = 8192;
  constexpr int kIntoSecondLevel = 2;  // the first level's few line buffers stay free for the current reads
  constexpr std::size_t kStep = kLanes * sizeof(std::uint64_t);
  std::uint64_t lanes[kLanes] = {};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kStep; left -= kStep, at += kStep) {
    // Prefetches two pages ahead, so also in the next chunk of the page: memory works while fragments are passed on.
    __builtin_prefetch(at + kAhead, 0, kIntoSecondLevel);
    std::uint64_t words[kLanes];
    std::memcpy(words, at, sizeof words);
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] ^= words[i];
  }
  if (left > 0) {
    std::uint64_t words[kLanes] = {};
    std::memcpy(words, at, left);
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] ^= words[i];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum ^= lane;
  return sum;
}

void ReadWork::process(Fragment& fragment) {
  std::uint64_t sum = 0;
  std::uint64_t bytes = 0;
  for (const FragmentPart& part : fragment.all_parts()) {
    sum ^= xor_of({part.data, part.size});
    bytes += part.size;
  }
  bytes_.add(bytes);
  sum_.set(sum_.get() ^ sum);
}

std::vector<NamedCounter> ReadWork::counters() const { return {{"read_bytes", bytes_.get()}, {"read_sum", sum_.get()}}; }

}  // namespace rodeo::readout
