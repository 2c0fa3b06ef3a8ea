#include "input/generator_settings.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sentence.h"
#include "formats/fid.h"
#include "rodeo/settings.h"

namespace rodeo::input {
namespace {

constexpr std::uint32_t kLinksPerCard = 24;
constexpr std::uint32_t kElinksPerLink = 8;
constexpr std::uint32_t kBlockPayload = 1020;  // a 1 KiB FELIX block without its header
constexpr std::uint32_t kTrailer = 2;
constexpr std::uint64_t kMiB = 1U << 20;

[[noreturn]] void refuse(std::string what, std::string next = {}) {
  throw SetupError(Error{"readout.bad_generator", std::move(what), "generator", std::move(next)});
}

void check_sizes(const GeneratorSettings& s) {
  const std::uint32_t least = s.crc ? 12 : 8;
  if (s.size_min < least) {
    refuse(fmt::format("chunks of {} bytes are too short: their header{} takes {}", s.size_min, s.crc ? " and CRC" : "",
                       least));
  }
  if (s.size_min > s.size_max) refuse(fmt::format("size_min ({}) is above size_max ({})", s.size_min, s.size_max));
}

void check_link(std::int64_t link, std::size_t links, std::string_view key) {
  if (link >= 0 && static_cast<std::size_t>(link) >= links) {
    refuse(fmt::format("{} is {}, but there {}, counted from 0", key, link,
                       links == 1 ? "is 1 link" : fmt::format("are {} links", links)));
  }
}

void check_faults(const FaultSettings& f, std::size_t links) {
  const double sum =
      f.missing + f.duplicate + f.late + f.corrupt + f.l1id + f.truncated + f.jump + f.out_of_sequence + f.bcid;
  if (sum > 1) refuse(fmt::format("the chances of all faults add up to {:.3g}, more than 1", sum));
  check_link(f.jump_link, links, "jump_link");
  check_link(f.silent_link, links, "silent_link");
  check_link(f.lag_link, links, "lag_link");
}

}  // namespace

std::vector<Fid> generated_fids(std::size_t count, std::uint32_t detector, std::uint32_t first_card, bool full_mode) {
  const std::uint32_t elinks = full_mode ? 1 : kElinksPerLink;
  const std::uint32_t per_card = kLinksPerCard * elinks;
  std::vector<Fid> fids;
  fids.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t on_card = i % per_card;
    fids.push_back(Fid::of(detector, first_card + i / per_card, on_card / elinks, on_card % elinks));
  }
  return fids;
}

void GeneratorSettings::complete() {
  if (links.empty()) refuse("the generator has no links", "give links = N, or a list of fids");
  if (links.size() > kMaximumLinks) refuse(fmt::format("{} links are too many: at most {}", links.size(), kMaximumLinks));
  std::unordered_set<Fid> seen;
  for (const Fid fid : links) {
    if (!seen.insert(fid).second) refuse(fmt::format("link {} is given twice", formats::to_text(fid)));
  }
  if (sizes == ChunkSizes::fixed) size_min = size_max = chunk_bytes;
  check_sizes(*this);
  check_faults(faults, links.size());
  if (l1id_bits != 32 && l1id_bits != 24 && l1id_bits != 16 && l1id_bits != 8) {
    refuse(fmt::format("l1id_bits is {}", l1id_bits), "give 32 (with ECR counter), 24, 16 or 8");
  }
  if (l1id_counter != 0 && (l1id_counter != 32 || l1id_bits != 32)) {
    refuse(fmt::format("l1id_counter is {} with l1id_bits = {}", l1id_counter, l1id_bits),
           "give l1id_counter = 32 without l1id_bits, or leave it out");
  }
  if (l1id_counter != 0 && (ecr_triggers != 0 || ecr_period.count() != 0)) {
    refuse("a counter of 32 bits has no event counter resets", "leave ecr_triggers and ecr_period out, or l1id_counter");
  }
  if (!std::isfinite(rate_hz) || rate_hz < 0 || rate_hz > 1e9)
    refuse(fmt::format("a rate of {} Hz is not possible", rate_hz));
  if (groups != 0 && (groups > links.size() || links.size() % groups != 0)) {
    refuse(fmt::format("{} cannot be divided into {} equal groups", base::counted(links.size(), "link"), groups));
  }
  if (run_length == 0) run_length = std::max(1U, kBlockPayload / (std::max(chunk_bytes, 1U) + kTrailer));
  if (flush <= std::chrono::nanoseconds{0}) refuse("flush must be longer than 0");
  page_bytes = std::max(page_bytes, 4 * size_max);
}

std::uint64_t GeneratorSettings::nominal_memory_bytes() const {
  const double rate = rate_hz == kUnlimited ? 1e6 : rate_hz;
  const double nominal = 0.1 * rate * chunk_bytes * static_cast<double>(links.size()) / stride();
  return static_cast<std::uint64_t>(std::clamp(nominal, 16.0 * kMiB, 128.0 * kMiB));
}

namespace {

/// Keys of the configuration: `links` may be a number, and a size of 0 is computed from the other keys.
struct GeneratorKeys : GeneratorSettings {
  std::uint32_t link_count = 192;
  std::uint32_t detector = 0;
  std::uint32_t first_card = 0;
  bool full = false;

  GeneratorKeys() { chunk_bytes = size_min = size_max = 0; }
};

const Settings<GeneratorKeys>& generator_table() {
  using K = GeneratorKeys;
  using S = GeneratorSettings;
  using F = FaultSettings;
  constexpr double kMost = 9e15;
  constexpr SettingRules kCount{.maximum = kMost};
  constexpr SettingRules kSize{.maximum = S::kMaximumChunkBytes, .unit = Unit::bytes};
  constexpr SettingRules kChance{.minimum = 0, .maximum = 1};
  constexpr SettingRules kLink{.minimum = -1, .maximum = 65534};
  static const Settings<K> table{
      setting(&K::link_count, "links", "Number of links; not used with `fids`.",
              {.minimum = 1, .maximum = S::kMaximumLinks}),
      setting(&S::links, "fids", "FIDs of the links, instead of a number of links."),
      setting(&K::detector, "detector", "Detector id in generated FIDs.", {.maximum = 255}),
      setting(&K::first_card, "first_card", "Connector id of the first card in generated FIDs.", {.maximum = 65535}),
      setting(&K::full, "format", {{"gbt", false}, {"full", true}},
              "Kind of links. gbt: 8 E-links a fibre and 40-byte chunks; full: one link a fibre and 5 kB chunks."),
      setting(&S::seed, "seed", "Seed of payload, sizes and faults: the same seed gives the same run.", kCount),
      setting(&S::chunk_bytes, "chunk_bytes",
              "Size of a chunk, or the mean of drawn sizes. 0 means 40 for gbt and 5000 for full.", kSize),
      setting(&S::sizes, "sizes",
              {{"fixed", ChunkSizes::fixed}, {"uniform", ChunkSizes::uniform}, {"normal", ChunkSizes::normal}},
              "How chunk sizes are drawn."),
      setting(&S::size_min, "size_min", "Smallest drawn size. 0 means half of chunk_bytes.", kSize),
      setting(&S::size_max, "size_max", "Largest drawn size. 0 means one and a half chunk_bytes.", kSize),
      setting(&S::size_sigma, "size_sigma", "Width of normal sizes. 0 means a sixth of chunk_bytes.", kSize),
      setting(&S::crc, "crc", "End each chunk with a CRC-32."),
      setting(&S::l1id_bits, "l1id_bits", "Bits of the L1 id that chunks carry: 32 (ECR counter and 24 bits), 24, 16 or 8.",
              {.minimum = 8, .maximum = 32}),
      setting(&S::l1id_counter, "l1id_counter",
              "32: chunks carry a counter of 32 bits that event counter resets do not change. 0: l1id_bits applies.",
              {.maximum = 32}),
      setting(&S::rate_hz, "rate", "Triggers offered per second. 0: as many as the readout takes.",
              {.minimum = 0, .maximum = 1e9, .unit = Unit::hertz}),
      setting(&S::random, "spacing", {{"periodic", false}, {"random", true}},
              "Time between triggers: even, or random (exponential)."),
      setting(&S::events, "events", "Accepted triggers after which the run ends. 0: the run ends on request only.", kCount),
      setting(&S::occupancy, "occupancy", "Chance that a link has data for a trigger.", kChance),
      setting(&S::groups, "groups",
              "FULL mode: divide the links, in order, into this many groups. Links of a group carry events in turn.",
              {.maximum = 65535}),
      setting(&S::ecr_triggers, "ecr_triggers",
              "Triggers between event counter resets. 0: a reset only when 24 bits are used up.", {.maximum = 1 << 24}),
      setting(&S::ecr_period, "ecr_period", "Time between event counter resets. 0: none.", {.minimum = 0}),
      setting(&S::memory_bytes, "memory",
              "Memory for pages. 0: 100 ms of data at the rate, at least 16 MiB and at most 128 MiB. When it "
              "is full, "
              "triggers are refused "
              "(dead time).",
              {.maximum = 1e12, .unit = Unit::bytes}),
      setting(&S::page_bytes, "page_bytes", "Size of a page; holds at least four chunks.",
              {.minimum = 4096, .maximum = 16.0 * kMiB, .unit = Unit::bytes}),
      setting(&S::run_length, "run_length", "Chunks of one link in a row. 0: as many as fill a FELIX block of 1 KiB.",
              {.maximum = 65535}),
      setting(&S::flush, "flush", "Longest time that a chunk waits until its run is full.",
              {.minimum = 1000, .maximum = 1e10}),
      setting(&S::cpu, "cpu", "CPU of the generator's thread. -1: any.", {.minimum = -1, .maximum = 4095}),
      setting(
          &S::faults,
          {
              setting(&F::missing, "fault_missing", "Chance that a chunk is not sent.", kChance),
              setting(&F::duplicate, "fault_duplicate", "Chance that a chunk is sent twice.", kChance),
              setting(&F::late, "fault_late", "Chance that a chunk is sent late_by later.", kChance),
              setting(&F::corrupt, "fault_corrupt", "Chance that a bit of a chunk's payload is flipped.", kChance),
              setting(&F::l1id, "fault_l1id", "Chance that a bit of a chunk's L1 id is flipped.", kChance),
              setting(&F::truncated, "fault_truncated", "Chance that a chunk is cut short and marked so.", kChance),
              setting(&F::jump, "fault_jump", "Chance that a chunk is sent with L1 id + jump_by.", kChance),
              setting(&F::out_of_sequence, "fault_out_of_sequence",
                      "Chance that a chunk is sent after the next one of its link.", kChance),
              setting(&F::bcid, "fault_bcid", "Chance that a chunk's BCID is one too large.", kChance),
              setting(&F::late_by, "late_by", "Delay of late chunks.", {.minimum = 0, .maximum = 1e11}),
              setting(&F::jump_by, "jump_by", "Size of jumps in L1 ids.", {.minimum = 1, .maximum = (1 << 24) - 1}),
              setting(&F::jump_link, "jump_link", "Position of a link whose L1 ids jump by jump_by. -1: none.", kLink),
              setting(&F::jump_from, "jump_from", "First trigger at which jump_link is wrong.", kCount),
              setting(&F::jump_for, "jump_for", "Triggers for which jump_link is wrong. 0: to the end.", kCount),
              setting(&F::silent_link, "silent_link", "Position of a link that falls silent. -1: none.", kLink),
              setting(&F::silent_from, "silent_from", "First trigger at which silent_link is silent.", kCount),
              setting(&F::silent_for, "silent_for", "Triggers for which silent_link is silent. 0: to the end.", kCount),
              setting(&F::lag_link, "lag_link",
                      "Position of a link whose chunks come lag_by triggers after those of the others. -1: none.", kLink),
              setting(&F::lag_by, "lag_by", "Triggers by which lag_link lags.", {.maximum = 1 << 20}),
          }),
  };
  return table;
}

}  // namespace

GeneratorSettings GeneratorSettings::from(const Parameters& parameters) {
  GeneratorKeys s = generator_table().read(parameters);
  if (s.links.empty()) s.links = generated_fids(s.link_count, s.detector, s.first_card, s.full);
  if (s.chunk_bytes == 0) s.chunk_bytes = s.full ? 5000 : 40;
  if (s.size_min == 0) s.size_min = std::max(12U, s.chunk_bytes / 2);
  if (s.size_max == 0) s.size_max = std::max(s.size_min, s.chunk_bytes + s.chunk_bytes / 2);
  if (s.size_sigma == 0) s.size_sigma = s.chunk_bytes / 6;
  s.complete();
  return s;
}

std::vector<Key> generator_keys() { return generator_table().keys(); }

}  // namespace rodeo::input
