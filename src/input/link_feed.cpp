#include "input/link_feed.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sentence.h"
#include "base/units.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kLateChunks = 1U << 15;  // most chunks that are held back at a time

enum Purpose : std::uint64_t { kSize = 3, kOccupancy = 4, kPhase = 5 };

struct Need {
  std::uint64_t bytes;
  std::uint64_t runs;
  std::uint64_t chunks;
};

// The most data that a stream can have pending, plus those of one batch.
Need worst_case(const GeneratorSettings& s, std::size_t links, bool plain) {
  const std::uint64_t batch = trigger_batch(s) / s.stride() + 1;
  std::uint64_t chunks = links * (s.run_length + batch) + s.faults.lag_by / s.stride() + 1;
  const std::uint64_t runs = links * (2 + batch / s.run_length);
  if (s.faults.duplicate > 0) chunks *= 2;
  return {chunks * s.size_max, plain ? runs : runs + chunks, chunks};
}

bool equal_chunks(const GeneratorSettings& s) { return s.sizes == ChunkSizes::fixed && !s.crc && s.occupancy >= 1; }

bool plain_chunks(const GeneratorSettings& s) { return equal_chunks(s) && !s.faults.any(); }

PageShape shape_of(const GeneratorSettings& s) {
  const std::uint64_t run_bytes = std::uint64_t{s.run_length} * s.chunk_bytes;
  const auto runs = static_cast<std::uint32_t>(std::max<std::uint64_t>(256, 2 * s.page_bytes / run_bytes));
  const std::uint32_t entries = s.sizes == ChunkSizes::fixed ? 0 : std::max(256U, 2 * s.page_bytes / s.chunk_bytes);
  return {.bytes = s.page_bytes, .runs = runs, .entries = entries};
}

// A page is closed when one of its resources is used up, so the sum of the pages that each resource needs is enough.
std::size_t pages_for(const Need& need, const PageShape& shape, std::uint32_t size_max) {
  const auto quotient = [](std::uint64_t n, std::uint64_t d) { return (n + d - 1) / d; };
  std::uint64_t pages = quotient(need.bytes, shape.bytes - 2 * size_max) + quotient(need.runs, shape.runs - 2) + 6;
  if (shape.entries != 0) pages += quotient(need.chunks, shape.entries - 2);
  return pages;
}

std::size_t least_pages(const GeneratorSettings& s, std::size_t links) {
  const std::size_t reserve = pages_for(worst_case(s, links, plain_chunks(s)), shape_of(s), s.size_max);
  return reserve + reserve / 2 + 4;
}

// A stream's share of the memory. A stream of few links gets a little more, as much as it needs to run.
std::size_t pool_pages(const GeneratorSettings& s, std::size_t links) {
  const std::uint64_t needed = std::uint64_t{least_pages(s, s.links.size())} * s.page_bytes;
  if (s.memory_bytes != 0 && s.memory_bytes < needed) {
    throw SetupError(
        Error{"readout.bad_generator",
              fmt::format("{} of memory is too little for {} with runs of {}", base::format_size(s.memory_bytes),
                          base::counted(s.links.size(), "link"), base::counted(s.run_length, "chunk")),
              "generator", fmt::format("give at least memory = {}, or a shorter run_length", needed)});
  }
  const std::uint64_t all = s.memory_bytes != 0 ? s.memory_bytes : s.nominal_memory_bytes();
  return std::max(all * links / s.links.size() / s.page_bytes, least_pages(s, links));
}

}  // namespace

std::uint32_t trigger_batch(const GeneratorSettings& settings) {
  const std::uint64_t per_trigger = settings.links.size() * std::uint64_t{settings.size_max} / settings.stride();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((1U << 20) / std::max<std::uint64_t>(per_trigger, 1), 1, 32));
}

LinkFeed::LinkFeed(const GeneratorSettings& settings, const TriggerHistory& history, Counters& counters,
                   std::span<const LinkIndex> positions)
    : settings_(settings),
      history_(history),
      counters_(counters),
      provable_(settings.seed, settings.crc, settings.l1id_bits),
      plan_(settings.faults, settings.seed),
      step_(settings.stride()),
      period_(run_period(settings)),
      equal_(equal_chunks(settings)),
      plain_(plain_chunks(settings)),
      occupied_below_(static_cast<std::uint64_t>(settings.occupancy * 0x1p53)),
      late_(settings.faults.late > 0 ? kLateChunks : 0),
      reserve_(pages_for(worst_case(settings, positions.size(), plain_), shape_of(settings), settings.size_max)),
      stream_(pool_pages(settings, positions.size()), shape_of(settings), "memory of generated pages", reserve_) {
  std::vector<std::vector<LinkIndex>> buckets(period_);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Link link;
    link.position = positions[i];
    link.link_id = settings.links[positions[i]].default_link_id();
    link.lag = link.position == settings.faults.lag_link ? settings.faults.lag_by : 0;
    link.next = positions[i] % step_;  // the links of a group are step_ consecutive links
    const std::uint64_t phase =
        formats::draw::below(formats::draw::chunk(settings.seed, kPhase, link.link_id, 0), settings.run_length);
    buckets[(link.next + phase * step_ + link.lag) % period_].push_back(static_cast<LinkIndex>(i));
    links_.push_back(link);
  }
  for (const auto& bucket : buckets) {
    bucket_begin_.push_back(static_cast<std::uint32_t>(bucket_links_.size()));
    bucket_links_.insert(bucket_links_.end(), bucket.begin(), bucket.end());
  }
  bucket_begin_.push_back(static_cast<std::uint32_t>(bucket_links_.size()));
}

void LinkFeed::send(std::uint64_t first, std::uint64_t end) {
  std::uint64_t bucket = first % period_;
  for (std::uint64_t trigger = first; trigger < end; ++trigger) {
    // Every link has sent all triggers before the end of its last run, which is at most a period ago.
    stream_.set_page_clock(trigger >= period_ ? history_[trigger - period_].time_ns : 0);
    for (std::uint32_t i = bucket_begin_[bucket]; i < bucket_begin_[bucket + 1]; ++i) {
      const LinkIndex index = bucket_links_[i];
      const std::uint64_t lag = links_[index].lag;
      if (trigger < lag) continue;
      const bool sent = send_link(index, trigger + 1 - lag);
      assert(sent && "the reserve holds what is pending");
      (void)sent;
    }
    if (++bucket == period_) bucket = 0;
  }
}

bool LinkFeed::flush(std::uint64_t end, bool last) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto index = static_cast<LinkIndex>(i);
    Link& link = links_[i];
    const std::uint64_t lag = last ? 0 : link.lag;
    if (end >= lag && link.next < end - lag && !send_link(index, end - lag)) return false;
    if (last && link.withheld != kNoTrigger) {
      if (!stream_.ensure(settings_.size_max, 1)) return false;
      write(index, link, link.withheld, link.withheld_l1id, FaultPlan::kNone);
      link.withheld = kNoTrigger;
    }
  }
  stream_.end_run();
  return true;
}

bool LinkFeed::send_plain(LinkIndex index, Link& link, std::uint64_t end) {
  const std::uint32_t size = settings_.chunk_bytes;
  const std::uint64_t step = step_;
  std::uint64_t trigger = link.next;
  while (trigger < end) {
    std::uint32_t fit = 0;
    std::byte* out = stream_.add_run(index, size, static_cast<std::uint32_t>((end - trigger + step - 1) / step), fit);
    if (out == nullptr) return false;
    const auto fill = [&](auto bytes) {
      for (std::uint32_t i = 0; i < fit; ++i, out += bytes, trigger += step) {
        const AcceptedTrigger& of = history_[trigger];
        formats::Provable::fill(out, bytes, of.header, provable_.key(link.link_id, of.l1id));
      }
    };
    // A compile-time size halves the work.
    size == 40 ? fill(std::integral_constant<std::uint32_t, 40>{}) : fill(size);
    link.next = trigger;
  }
  return true;
}

bool LinkFeed::send_each(LinkIndex index, Link& link, std::uint64_t end) {
  for (; link.next < end; link.next += step_) {
    if (!stream_.ensure(2 * settings_.size_max, 2)) return false;
    if (!send_one(index, link, link.next)) return false;
  }
  stream_.end_run();
  return true;
}

// The caller has made room for two chunks: this one, and its duplicate or the withheld one.
bool LinkFeed::send_one(LinkIndex index, Link& link, std::uint64_t trigger) {
  if (plan_.silent(link.position, trigger)) {
    counters_.add(GeneratorCounter::silent);
    return true;
  }
  if (settings_.occupancy < 1 &&
      formats::draw::chunk(settings_.seed, kOccupancy, link.link_id, trigger) >> 11 >= occupied_below_) {
    counters_.add(GeneratorCounter::not_occupied);
    return true;
  }
  GeneratorCounter fault = plan_.of(link.link_id, trigger);
  L1Id l1id = history_[trigger].l1id;
  if (plan_.jumped(link.position, trigger) || fault == GeneratorCounter::jump) {
    l1id = plan_.jump(l1id);
    counters_.add(GeneratorCounter::jump);
    fault = FaultPlan::kNone;
  }
  if (fault == GeneratorCounter::missing) {
    counters_.add(fault);
    return true;
  }
  if (fault == GeneratorCounter::late && hold_back(index, trigger, l1id)) return true;
  if (fault == GeneratorCounter::out_of_sequence && link.withheld == kNoTrigger) {
    link.withheld = trigger;
    link.withheld_l1id = l1id;
    return true;
  }
  write(index, link, trigger, l1id, fault);
  if (fault == GeneratorCounter::duplicate) {
    write(index, link, trigger, l1id, FaultPlan::kNone);
  } else if (link.withheld != kNoTrigger) {
    counters_.add(GeneratorCounter::out_of_sequence);
    write(index, link, link.withheld, link.withheld_l1id, FaultPlan::kNone);
    link.withheld = kNoTrigger;
  }
  return true;
}

void LinkFeed::write(LinkIndex index, const Link& link, std::uint64_t trigger, L1Id l1id, GeneratorCounter fault) {
  constexpr std::uint32_t kHeader = formats::Provable::kHeaderBytes;
  const std::uint32_t whole = size_of(link.link_id, trigger);
  if (fault == GeneratorCounter::truncated) {
    const std::uint32_t most = whole - (settings_.crc ? 4 : 0);
    if (most > kHeader) {
      const auto size =
          kHeader + static_cast<std::uint32_t>(formats::draw::below(plan_.detail(link.link_id, trigger), most - kHeader));
      std::byte* out = stream_.add_chunk(index, size, chunk_status::kFirmwareTruncated);
      formats::Provable::fill(out, size, provable_.header(l1id), provable_.key(link.link_id, l1id), whole);
      counters_.add(fault);
      return;
    }
    fault = FaultPlan::kNone;
  }
  std::byte* out = stream_.add_chunk(index, whole, chunk_status::kOk);
  provable_.write({out, whole}, link.link_id, l1id);
  if (fault != FaultPlan::kNone) damage({out, whole}, link, trigger, l1id, fault);
}

void LinkFeed::damage(std::span<std::byte> chunk, const Link& link, std::uint64_t trigger, L1Id l1id,
                      GeneratorCounter fault) {
  constexpr std::uint32_t kHeader = formats::Provable::kHeaderBytes;
  const auto flip = [&](std::uint64_t bit) { chunk[bit / 8] ^= std::byte{1} << (bit % 8); };
  const std::uint64_t detail = plan_.detail(link.link_id, trigger);
  switch (fault) {
    case GeneratorCounter::corrupt:
      if (chunk.size() == kHeader) return;
      flip(kHeader * 8 + formats::draw::below(detail, (chunk.size() - kHeader) * 8));
      break;
    case GeneratorCounter::l1id: flip(formats::draw::below(detail, settings_.l1id_bits)); break;
    case GeneratorCounter::bcid: {
      const auto wrong = static_cast<std::uint16_t>((provable_.trigger(l1id).bcid + 1) % 3564);
      std::memcpy(chunk.data() + 4, &wrong, sizeof wrong);
      // A front end with a wrong BCID computes a correct CRC over it.
      if (settings_.crc) provable_.seal(chunk);
      break;
    }
    case GeneratorCounter::duplicate: break;
    default: return;
  }
  counters_.add(fault);
}

bool LinkFeed::hold_back(LinkIndex index, std::uint64_t trigger, L1Id l1id) {
  if (late_count_ == late_.size()) return false;
  late_[(late_head_ + late_count_++) % late_.size()] = {
      history_[trigger].time_ns + static_cast<std::uint64_t>(settings_.faults.late_by.count()), trigger, l1id, index};
  counters_.add(GeneratorCounter::late);
  return true;
}

bool LinkFeed::send_late(std::uint64_t now_ns, bool last) {
  while (late_count_ > 0 && (last || late_[late_head_].due_ns <= now_ns)) {
    if (!last && !stream_.free_at_least(reserve_ + 1)) return false;
    if (!stream_.ensure(settings_.size_max, 1)) return false;
    const LateChunk& chunk = late_[late_head_];
    write(chunk.index, links_[chunk.index], chunk.trigger, chunk.l1id, FaultPlan::kNone);
    stream_.end_run();
    late_head_ = (late_head_ + 1) % late_.size();
    --late_count_;
  }
  return true;
}

std::uint32_t LinkFeed::size_of(std::uint32_t link_id, std::uint64_t trigger) const {
  if (settings_.sizes == ChunkSizes::fixed) return settings_.chunk_bytes;
  const std::uint64_t bits = formats::draw::chunk(settings_.seed, kSize, link_id, trigger);
  if (settings_.sizes == ChunkSizes::uniform) {
    return settings_.size_min +
           static_cast<std::uint32_t>(formats::draw::below(bits, settings_.size_max - settings_.size_min + 1));
  }
  // Sum of four 16-bit draws: mean 2 * 65535, deviation 65535 / sqrt(3).
  const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  const double normal = (static_cast<double>(sum) - 2 * 65535.0) / (65535.0 / std::sqrt(3.0));
  const double size = settings_.chunk_bytes + normal * settings_.size_sigma;
  return static_cast<std::uint32_t>(
      std::clamp(size, static_cast<double>(settings_.size_min), static_cast<double>(settings_.size_max)));
}

}  // namespace rodeo::input
