#include "readout/builder/source_balance.h"

#include <algorithm>
#include <limits>

namespace rodeo::readout {
namespace {

constexpr Sequence kUnbounded = std::numeric_limits<Sequence>::max();
constexpr Sequence kLeastLead = 64;  // events; runs of links may differ this much in phase
constexpr std::uint64_t kPatienceNs = 100'000'000;
constexpr std::uint64_t kPatienceTimeouts = 10;

}  // namespace

SourceBalance::SourceBalance(const Settings& settings, DataStream& stream, std::span<const GbtLink> links)
    : settings_(settings), stream_(stream), links_(links), sources_(stream.sources()) {
  if (!several()) return;
  for (std::uint32_t link = 0; link < links.size(); ++link)
    sources_[stream.source_of(static_cast<LinkIndex>(link))].links.push_back(link);
}

void SourceBalance::begin(Sequence first) {
  for (Source& source : sources_) source.position = first;
}

// The place of a source is that of its second link, because the foremost link may have wrong numbers. With two links, it is
// that of the first.
void SourceBalance::update_position(Source& source, std::uint64_t event_clock) {
  Sequence first = 0;
  Sequence second = 0;
  std::uint32_t in_step = 0;
  source.has_links = false;
  for (const std::uint32_t index : source.links) {
    const GbtLink& link = links_[index];
    // The link may be far behind and right.
    const bool sparse = (link.history & 3) != 3 && link.skipped > settings_.lead / 4;
    if (link.removed.load(std::memory_order_relaxed) || sparse) continue;
    source.has_links = true;
    if (!link.here.load(std::memory_order_relaxed)) continue;
    ++in_step;
    second = std::max(second, std::min(first, link.position()));
    first = std::max(first, link.position());
  }
  const Sequence position = in_step > 2 ? second : first;
  if (position <= source.position) return;
  source.position = position;
  source.progress_at = event_clock;
  source.since_progress = 0;
  source.silent = false;
}

bool SourceBalance::is_awaited(std::uint32_t source) const {
  const Source& of = sources_[source];
  return of.has_links && !of.silent && (of.parked.page != nullptr || !stream_.source_ended(source)) &&
         of.since_progress <= settings_.lead * of.links.size();
}

Sequence SourceBalance::bound(std::uint32_t source, bool short_of_memory) {
  const Sequence lead = short_of_memory ? std::min(kLeastLead, settings_.lead) : settings_.lead;
  Sequence least = kUnbounded;
  for (std::uint32_t other = 0; other < sources_.size(); ++other) {
    update_position(sources_[other], event_clock_);
    if (other != source && is_awaited(other)) least = std::min(least, sources_[other].position + lead);
  }
  return least;
}

// An unbounded source stays unbounded until another one resumes.
void SourceBalance::begin_page(std::uint32_t source) {
  if (sources_[source].limit == kUnbounded) sources_[source].limit = bound(source, false);
}

std::uint32_t SourceBalance::compute_allowance(std::uint32_t source, const GbtLink& link, std::uint32_t left,
                                               bool short_of_memory) {
  const Sequence end = bound(source, short_of_memory);
  sources_[source].limit = end;
  if (end <= link.coming()) return 0;
  return static_cast<std::uint32_t>(std::min<Sequence>(left, end - link.coming()));
}

void SourceBalance::park(std::uint32_t source, const Place& place, std::uint64_t event_clock) {
  event_clock_ = event_clock;
  if (parked_ == 0) {
    // Sources are waited for from now on: earlier silence, while no source was ahead, proves nothing.
    for (Source& each : sources_) {
      each.progress_at = event_clock;
      each.since_progress = 0;
    }
  }
  sources_[source].parked = place;
  stream_.hold(source, true);
  ++parked_;
}

std::optional<SourceBalance::Resumed> SourceBalance::resume(std::uint64_t event_clock, bool short_of_memory) {
  event_clock_ = event_clock;
  std::optional<std::uint32_t> chosen;
  bool forced = true;
  bool others = false;  // some other source may still bring the awaited events
  for (std::uint32_t source = 0; source < sources_.size(); ++source) {
    const Place& place = sources_[source].parked;
    if (place.page == nullptr) {
      others = others || is_awaited(source);
    } else if (!sources_[source].waits_for_others &&
               bound(source, short_of_memory) > links_[place.page->runs[place.run].link].coming()) {
      chosen = source;
      forced = false;
      break;
    } else if (!chosen || sources_[source].position < sources_[*chosen].position) {
      chosen = source;
    }
  }
  if (!chosen || (forced && others)) return std::nullopt;
  return unpark(*chosen, forced);
}

std::optional<SourceBalance::Resumed> SourceBalance::resume_any() {
  for (std::uint32_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source].parked.page != nullptr) return unpark(source, true);
  }
  return std::nullopt;
}

SourceBalance::Resumed SourceBalance::unpark(std::uint32_t source, bool forced) {
  const Resumed resumed{source, std::exchange(sources_[source].parked, {}), forced};
  stream_.hold(source, false);
  --parked_;
  return resumed;
}

Sequence SourceBalance::reached_by_all() const {
  Sequence least = kUnbounded;
  for (std::uint32_t source = 0; source < sources_.size(); ++source) {
    if (is_awaited(source)) least = std::min(least, sources_[source].position);
  }
  return least;
}

void SourceBalance::check_sources(std::uint64_t event_clock) {
  event_clock_ = event_clock;
  Sequence front = 0;
  for (Source& source : sources_) {
    update_position(source, event_clock);
    front = std::max(front, source.position);
  }
  // A source that blocks others has a shorter time-out than one that only keeps events waiting in the window.
  const std::uint64_t patience =
      parked() ? settings_.timeout_ns : std::max(kPatienceNs, kPatienceTimeouts * settings_.timeout_ns);
  for (Source& source : sources_) {
    if (source.position >= front) {
      source.progress_at = event_clock;  // no other source waits for this one
      source.since_progress = 0;
    } else if (source.parked.page == nullptr && event_clock - source.progress_at >= patience) {
      source.silent = true;
    }
  }
}

}  // namespace rodeo::readout
