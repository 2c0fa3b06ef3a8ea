#include "input/generator_settings.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"

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

std::uint32_t narrow(std::uint64_t value, std::string_view what) {
  if (value > GeneratorSettings::kMaximumChunkBytes) {
    refuse(fmt::format("{} is {} bytes, more than {}", what, value, GeneratorSettings::kMaximumChunkBytes));
  }
  return static_cast<std::uint32_t>(value);
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
    refuse(fmt::format("{} is {}, but there are {} links, counted from 0", key, link, links));
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
  if (links.empty()) refuse("there are no links", "give links = N, or a list of fids");
  if (links.size() > kMaximumLinks) refuse(fmt::format("{} links are more than {}", links.size(), kMaximumLinks));
  std::unordered_set<Fid> seen;
  for (const Fid fid : links) {
    if (!seen.insert(fid).second) refuse(fmt::format("link 0x{:016x} is given twice", fid.value));
  }
  if (sizes == ChunkSizes::fixed) size_min = size_max = chunk_bytes;
  check_sizes(*this);
  check_faults(faults, links.size());
  if (l1id_bits != 32 && l1id_bits != 24 && l1id_bits != 16 && l1id_bits != 8) {
    refuse(fmt::format("l1id_bits is {}", l1id_bits), "give 32 (with ECR counter), 24, 16 or 8");
  }
  if (!std::isfinite(rate_hz) || rate_hz < 0 || rate_hz > 1e9)
    refuse(fmt::format("a rate of {} Hz cannot be made", rate_hz));
  if (groups != 0 && (groups > links.size() || links.size() % groups != 0)) {
    refuse(fmt::format("{} links cannot be dealt into {} equal groups", links.size(), groups));
  }
  if (run_length == 0) run_length = std::max(1U, kBlockPayload / (std::max(chunk_bytes, 1U) + kTrailer));
  if (flush <= std::chrono::nanoseconds{0}) refuse("flush must be longer than nothing");
  page_bytes = std::max(page_bytes, 4 * size_max);
}

std::uint64_t GeneratorSettings::nominal_memory_bytes() const {
  const double rate = rate_hz == kUnlimited ? 1e6 : rate_hz;
  const double nominal = 0.1 * rate * chunk_bytes * static_cast<double>(links.size()) / stride();
  return static_cast<std::uint64_t>(std::clamp(nominal, 16.0 * kMiB, 128.0 * kMiB));
}

GeneratorSettings GeneratorSettings::from(const Parameters& p) {
  GeneratorSettings s;
  const bool full = p.text("format") == "full";
  for (const std::uint64_t value : p.fids("fids")) s.links.push_back(Fid{value});
  if (s.links.empty()) {
    const std::int64_t count = p.integer("links");
    if (count <= 0) refuse("there are no links", "give links = N, or a list of fids");
    if (static_cast<std::size_t>(count) > kMaximumLinks)
      refuse(fmt::format("{} links are more than {}", count, kMaximumLinks));
    s.links = generated_fids(static_cast<std::size_t>(count), static_cast<std::uint32_t>(p.integer("detector")),
                             static_cast<std::uint32_t>(p.integer("first_card")), full);
  }
  s.seed = static_cast<std::uint64_t>(p.integer("seed"));

  s.chunk_bytes = narrow(p.bytes("chunk_bytes"), "chunk_bytes");
  if (s.chunk_bytes == 0) s.chunk_bytes = full ? 5000 : 40;
  const std::string& sizes = p.text("sizes");
  s.sizes = sizes == "fixed" ? ChunkSizes::fixed : sizes == "uniform" ? ChunkSizes::uniform : ChunkSizes::normal;
  s.size_min = narrow(p.bytes("size_min"), "size_min");
  s.size_max = narrow(p.bytes("size_max"), "size_max");
  s.size_sigma = narrow(p.bytes("size_sigma"), "size_sigma");
  if (s.size_min == 0) s.size_min = std::max(12U, s.chunk_bytes / 2);
  if (s.size_max == 0) s.size_max = std::max(s.size_min, s.chunk_bytes + s.chunk_bytes / 2);
  if (s.size_sigma == 0) s.size_sigma = s.chunk_bytes / 6;
  s.crc = p.boolean("crc");
  s.l1id_bits = static_cast<std::uint32_t>(p.integer("l1id_bits"));

  s.rate_hz = p.rate_hz("rate");
  s.random = p.text("spacing") == "random";
  s.events = static_cast<std::uint64_t>(p.integer("events"));
  s.occupancy = p.real("occupancy");
  s.groups = static_cast<std::uint32_t>(p.integer("groups"));
  s.ecr_triggers = static_cast<std::uint64_t>(p.integer("ecr_triggers"));
  s.ecr_period = p.duration("ecr_period");

  s.memory_bytes = p.bytes("memory");
  s.page_bytes = static_cast<std::uint32_t>(p.bytes("page_bytes"));
  s.run_length = static_cast<std::uint32_t>(p.integer("run_length"));
  s.flush = p.duration("flush");
  s.cpu = static_cast<int>(p.integer("cpu"));

  FaultSettings& f = s.faults;
  f.missing = p.real("fault_missing");
  f.duplicate = p.real("fault_duplicate");
  f.late = p.real("fault_late");
  f.corrupt = p.real("fault_corrupt");
  f.l1id = p.real("fault_l1id");
  f.truncated = p.real("fault_truncated");
  f.jump = p.real("fault_jump");
  f.out_of_sequence = p.real("fault_out_of_sequence");
  f.bcid = p.real("fault_bcid");
  f.late_by = p.duration("late_by");
  f.jump_by = static_cast<std::uint32_t>(p.integer("jump_by"));
  f.jump_link = p.integer("jump_link");
  f.jump_from = static_cast<std::uint64_t>(p.integer("jump_from"));
  f.jump_for = static_cast<std::uint64_t>(p.integer("jump_for"));
  f.silent_link = p.integer("silent_link");
  f.silent_from = static_cast<std::uint64_t>(p.integer("silent_from"));
  f.silent_for = static_cast<std::uint64_t>(p.integer("silent_for"));
  f.lag_link = p.integer("lag_link");
  f.lag_by = static_cast<std::uint32_t>(p.integer("lag_by"));
  s.complete();
  return s;
}

std::vector<Key> generator_keys() {
  constexpr double kMost = 9e15;
  const auto chance = [](std::string name, std::string help) {
    return Key{.name = std::move(name),
               .type = KeyType::real,
               .fallback = "0",
               .help = std::move(help),
               .minimum = 0,
               .maximum = 1};
  };
  const auto integer = [](std::string name, std::string fallback, std::string help, double minimum, double maximum) {
    return Key{.name = std::move(name),
               .type = KeyType::integer,
               .fallback = std::move(fallback),
               .help = std::move(help),
               .minimum = minimum,
               .maximum = maximum};
  };
  return {
      integer("links", "192", "Number of links, when no fids are given.", 1, GeneratorSettings::kMaximumLinks),
      {.name = "fids",
       .type = KeyType::fid_list,
       .fallback = "",
       .help = "The links by FELIX identifier, instead of a number of them."},
      integer("detector", "0", "Detector id in generated FIDs.", 0, 255),
      integer("first_card", "0", "Connector id of the first card in generated FIDs.", 0, 65535),
      {.name = "format",
       .type = KeyType::choice,
       .fallback = "gbt",
       .help =
           "What the links look like: gbt has 8 E-links a link and 40-byte chunks, full one link a fibre and 5 kB chunks.",
       .choices = {"gbt", "full"}},
      integer("seed", "1", "Seed of payload, sizes and faults: the same seed gives the same run.", 0, kMost),
      {.name = "chunk_bytes",
       .type = KeyType::size,
       .fallback = "0",
       .help = "Size of a chunk, or the mean of drawn sizes. 0 means 40 for gbt and 5000 for full.",
       .minimum = 0,
       .maximum = GeneratorSettings::kMaximumChunkBytes},
      {.name = "sizes",
       .type = KeyType::choice,
       .fallback = "fixed",
       .help = "How chunk sizes are drawn.",
       .choices = {"fixed", "uniform", "normal"}},
      {.name = "size_min",
       .type = KeyType::size,
       .fallback = "0",
       .help = "Least drawn size. 0 means half of chunk_bytes.",
       .minimum = 0,
       .maximum = GeneratorSettings::kMaximumChunkBytes},
      {.name = "size_max",
       .type = KeyType::size,
       .fallback = "0",
       .help = "Largest drawn size. 0 means one and a half chunk_bytes.",
       .minimum = 0,
       .maximum = GeneratorSettings::kMaximumChunkBytes},
      {.name = "size_sigma",
       .type = KeyType::size,
       .fallback = "0",
       .help = "Width of normal sizes. 0 means a sixth of chunk_bytes.",
       .minimum = 0,
       .maximum = GeneratorSettings::kMaximumChunkBytes},
      {.name = "crc", .type = KeyType::boolean, .fallback = "false", .help = "End each chunk with a CRC-32."},
      integer("l1id_bits", "32", "Bits of the L1 id that chunks carry: 32 (ECR counter and 24 bits), 24, 16 or 8.", 8, 32),
      {.name = "rate",
       .type = KeyType::rate,
       .fallback = "100kHz",
       .help = "Triggers offered per second. 0 means as many as the readout takes.",
       .minimum = 0,
       .maximum = 1e9},
      {.name = "spacing",
       .type = KeyType::choice,
       .fallback = "periodic",
       .help = "Time between triggers: even, or random (exponential).",
       .choices = {"periodic", "random"}},
      integer("events", "0", "Accepted triggers after which the run ends. 0 means it is ended from outside.", 0, kMost),
      {.name = "occupancy",
       .type = KeyType::real,
       .fallback = "1",
       .help = "Chance that a link has data for a trigger: its rate is this share of the trigger rate.",
       .minimum = 0,
       .maximum = 1},
      integer("groups", "0", "FULL mode: deal the links, in order, into this many groups whose links carry events in turn.",
              0, 65535),
      integer("ecr_triggers", "0", "Event counter reset every so many triggers. 0 means none until 24 bits are used up.", 0,
              1 << 24),
      {.name = "ecr_period",
       .type = KeyType::duration,
       .fallback = "0s",
       .help = "Event counter reset every so often. 0 means none.",
       .minimum = 0},
      {.name = "memory",
       .type = KeyType::size,
       .fallback = "0",
       .help = "Memory for pages. 0 means 100 ms of data at the rate, at least 16 MiB and at most 128 MiB. When it is full, "
               "triggers "
               "are refused (dead time).",
       .minimum = 0,
       .maximum = 1e12},
      {.name = "page_bytes",
       .type = KeyType::size,
       .fallback = "64KiB",
       .help = "Size of a page; holds at least four chunks.",
       .minimum = 4096,
       .maximum = 16.0 * kMiB},
      integer("run_length", "0", "Chunks of one link in a row. 0 means as many as fill a FELIX block of 1 KiB.", 0, 65535),
      {.name = "flush",
       .type = KeyType::duration,
       .fallback = "1ms",
       .help = "Longest time that a chunk waits for its run to fill.",
       .minimum = 1000,
       .maximum = 1e10},
      integer("cpu", "-1", "CPU for the generator's thread. -1 leaves it free.", -1, 4095),
      chance("fault_missing", "Chance that a chunk is not sent."),
      chance("fault_duplicate", "Chance that a chunk is sent twice."),
      chance("fault_late", "Chance that a chunk is held back by late_by."),
      chance("fault_corrupt", "Chance that a bit of a chunk's payload is flipped."),
      chance("fault_l1id", "Chance that a bit of a chunk's L1 id is flipped."),
      chance("fault_truncated", "Chance that a chunk is cut short and marked so."),
      chance("fault_jump", "Chance that a chunk is sent as that of L1 id + jump_by."),
      chance("fault_out_of_sequence", "Chance that a chunk changes places with the next of its link."),
      chance("fault_bcid", "Chance that a chunk's BCID is one too large."),
      {.name = "late_by",
       .type = KeyType::duration,
       .fallback = "50ms",
       .help = "How long late chunks are held back.",
       .minimum = 0,
       .maximum = 1e11},
      integer("jump_by", "1000", "Size of jumps in L1 ids.", 1, (1 << 24) - 1),
      integer("jump_link", "-1", "Position of a link whose L1 ids jump by jump_by. -1 means none.", -1, 65534),
      integer("jump_from", "0", "Trigger from which jump_link is off.", 0, kMost),
      integer("jump_for", "0", "Triggers for which jump_link is off. 0 means for good.", 0, kMost),
      integer("silent_link", "-1", "Position of a link that falls silent. -1 means none.", -1, 65534),
      integer("silent_from", "0", "Trigger from which silent_link is silent.", 0, kMost),
      integer("silent_for", "0", "Triggers for which silent_link is silent. 0 means for good.", 0, kMost),
      integer("lag_link", "-1",
              "Position of a link whose chunks come lag_by triggers after those of the others. -1 means none.", -1, 65534),
      integer("lag_by", "0", "Triggers by which lag_link lags.", 0, 1 << 20),
  };
}

}  // namespace rodeo::input
