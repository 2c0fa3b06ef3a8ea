#include "input/network_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/sentence.h"

namespace rodeo::input {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000;       // time between two looks at the publishers' messages
constexpr std::uint64_t kClockLeadNs = 2'000'000;  // lead that a publisher may gain on the others

}  // namespace

NetworkStream::NetworkPage::NetworkPage(NetworkStream& of, Source& from, std::size_t links, std::size_t page_bytes)
    : reader(links, page_bytes), source(&from) {
  stream = &of;
  delivered.reserve(2 * page_bytes / formats::kNetworkRunHeaderBytes + links);
}

NetworkStream::NetworkStream(const transport::SubscriberSettings& settings, const std::vector<Publisher>& publishers,
                             std::uint64_t silence_ns, std::uint32_t max_chunk_bytes)
    : silence_ns_(silence_ns), max_chunk_bytes_(max_chunk_bytes) {
  for (const Publisher& publisher : publishers) {
    for (const LinkIndex link : publisher.indices) {
      if (link >= source_of_.size()) source_of_.resize(link + std::size_t{1});
      source_of_[link] = static_cast<std::uint32_t>(sources_.size());
    }
    sources_.push_back(std::make_unique<Source>(settings, publisher, ports_));
  }
}

NetworkStream::~NetworkStream() = default;

void NetworkStream::release(Page& page) noexcept { returned_.give_back(static_cast<NetworkPage&>(page)); }

void NetworkStream::collect_returned() {
  NetworkPage* page = returned_.acquire();
  if (page == nullptr) return;
  for (; page != nullptr; page = returned_.acquire()) {
    if (!page->of_network) continue;
    page->source->subscriber.give_back(page->slot);
    page->source->out.set(page->source->out.get() - 1);
  }
  for (const auto& source : sources_) source->subscriber.replenish();
}

PollStatus NetworkStream::poll(Page*& out) {
  collect_returned();
  ports_.poll([&](const transport::FabricPort& port, const transport::FabricPort::Event& event) {
    for (const auto& source : sources_) {
      if (source->subscriber.on_event(port, event)) return;
    }
  });
  const std::uint64_t now = base::steady_now_ns();
  if (now - looked_ns_ >= kLookNs) check_publishers(now);
  // One page a turn: a publisher that always has data must not block the others.
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = *sources_[turn_];
    turn_ = turn_ + 1 == sources_.size() ? 0 : turn_ + 1;
    if (deliver(source, out)) return PollStatus::page;
  }
  advance_clock(now);
  const bool over = std::ranges::all_of(sources_, [](const auto& source) { return source->ended && !source->held; });
  if (over) return PollStatus::end;
  const bool full = std::ranges::all_of(sources_, [](const auto& source) {
    return source->ended || (!source->pages.empty() && source->out.get() == source->pages.size());
  });
  return full ? PollStatus::full : PollStatus::empty;
}

void NetworkStream::check_publishers(std::uint64_t now_ns) {
  looked_ns_ = now_ns;
  std::uint64_t connections = 0;
  std::uint64_t cut_off = 0;
  for (const auto& source : sources_) {
    if (stopping_.load(std::memory_order_relaxed)) source->subscriber.leave();
    source->subscriber.progress(now_ns);
    connections += source->subscriber.connections();
    cut_off += source->subscriber.cut_off();
  }
  counts_.connections.set(connections);
  counts_.cut_off.set(cut_off);
  const bool all = std::ranges::all_of(sources_, [](const auto& source) { return source->subscriber.connections() > 0; });
  connected_.store(all, std::memory_order_relaxed);
  // While stopping, missing publishers are not an error.
  if (give_up_ns_ != 0 && !all && !stopping_.load(std::memory_order_relaxed)) note_refusals(now_ns);
}

void NetworkStream::note_refusals(std::uint64_t now_ns) {
  for (const auto& source : sources_) {
    const auto& refusal = source->subscriber.refusal();
    if (!refusal || source->subscriber.connections() > 0) {
      source->refused_since_ns = 0;
      continue;
    }
    if (source->refused_since_ns == 0) source->refused_since_ns = now_ns;
    if (now_ns - source->refused_since_ns < give_up_ns_) continue;
    const std::lock_guard lock(told_mutex_);
    if (failure_.empty())
      failure_ = fmt::format("publisher {} refuses: {}", refusal->publisher, base::in_a_line(refusal->why));
  }
}

bool NetworkStream::deliver(Source& source, Page*& out) {
  transport::Subscriber& subscriber = source.subscriber;
  while (const auto received = subscriber.next()) {
    if (source.page_bytes != subscriber.page_bytes()) {
      source.pages.clear();
      source.page_bytes = subscriber.page_bytes();
    }
    while (source.pages.size() < subscriber.pages())
      source.pages.emplace_back(*this, source, source.links.size(), subscriber.page_bytes());
    source.slots.set(static_cast<std::uint32_t>(source.pages.size()));
    NetworkPage& page = source.pages[received->slot];
    page.slot = received->slot;
    if (!read(source, page, *received)) {
      subscriber.give_back(received->slot);
      subscriber.refuse("it sent an invalid page");
      continue;
    }
    if (page.delivered.empty()) {
      subscriber.give_back(received->slot);
      continue;
    }
    page.runs = page.delivered;
    delivered_.add(page.runs);
    source.out.set(source.out.get() + 1);
    page.references.store(1, std::memory_order_relaxed);
    out = &page;
    return true;
  }
  if (subscriber.ended() && !std::exchange(source.ended, true)) {
    const std::lock_guard lock(told_mutex_);
    for (const auto& loss : subscriber.losses()) losses_.push_back({loss.name, loss.value});
    return cut_last(source, out);
  }
  return false;
}

// The publisher has ended: open chunks will not get their rest.
bool NetworkStream::cut_last(Source& source, Page*& out) {
  if (std::ranges::none_of(source.links, &LinkState::in_chunk)) return false;
  NetworkPage& page = source.last.emplace(*this, source, source.links.size(), formats::NetworkPageWriter::kLeastBytes);
  page.of_network = false;
  for (std::size_t i = 0; i < source.links.size(); ++i) {
    if (source.links[i].in_chunk) cut(source, page, i);
  }
  page.runs = page.delivered;
  delivered_.add(page.runs);
  page.references.store(1, std::memory_order_relaxed);
  out = &page;
  return true;
}

// False: the bytes are not a valid page.
bool NetworkStream::read(Source& source, NetworkPage& page, const transport::Subscriber::Received& received) {
  page.delivered.clear();
  const auto header = page.reader.read(received.bytes);
  if (!header) {
    counts_.bad_pages.add(1);
    static base::LogThrottle throttle;
    if (const auto turn = throttle.turn()) {
      base::log_warning("publisher {} sent an invalid page: {}{}", source.subscriber.publisher(), header.error().message(),
                        turn.suffix());
    }
    return false;
  }
  if (received.session != source.session) {
    source.session = received.session;
    source.next_page = 0;
    // The clock may have advanced while this publisher was away.
    source.clock_base_ns = std::max(source.clock_ns, clock_ns_ + source.clock_lead_ns);
    for (std::size_t i = 0; i < source.links.size(); ++i) {
      if (source.links[i].in_chunk) cut(source, page, i);
      source.links[i] = {};
    }
  }
  if (header->number < source.next_page) {
    // Rodeo's publishers never repeat a page.
    counts_.repeated_pages.add(1);
    return true;
  }
  const bool pages_lost = header->number > source.next_page;
  if (pages_lost) {
    counts_.lost_pages.add(header->number - source.next_page);
    for (LinkState& link : source.links) link.in_doubt = true;
  }
  source.next_page = header->number + 1;
  source.clock_ns = std::max(source.clock_ns, source.clock_base_ns + header->clock_ns);
  for (std::size_t i = 0; i < page.reader.runs().size(); ++i)
    add_run(source, page, page.reader.runs()[i], page.reader.counts()[i], pages_lost);
  return true;
}

void NetworkStream::add_run(Source& source, NetworkPage& page, ChunkRun run, std::uint32_t count, bool pages_lost) {
  LinkState& link = source.links[run.link];
  std::uint32_t lost = count - link.count;
  if (lost >= 1U << 31U) lost = 0;  // the count goes back; Rodeo's publishers never do this
  if (link.in_chunk && (lost > 0 || pages_lost)) {
    // Parts of the open chunk may be lost. Its rest may still come, with the same count.
    cut(source, page, run.link);
    link.skips_rest = lost == 0;
    lost -= lost > 0 ? 1 : 0;
  }
  counts_.lost_chunks.add(lost);
  link.count = run.more_follows ? count : count + run.count;
  if (link.skips_rest) {
    counts_.cut_bytes.add(run.chunk(0).size());
    link.skips_rest = run.more_follows;
    link.in_doubt = false;  // this run was the rest
    return;
  }
  // Parts of chunks come in runs of one.
  if (std::exchange(link.in_doubt, false) && run.count == 1 && run.entries == nullptr) {
    run.status |= chunk_status::kSoftwareTruncated;
    counts_.cut_chunks.add(1);
  }
  link.in_chunk = run.more_follows;
  run.link = source.indices[run.link];
  page.delivered.push_back(run);
}

// Delivers the end of a chunk whose rest will not arrive.
void NetworkStream::cut(Source& source, NetworkPage& page, std::size_t position) {
  static constexpr std::byte kNothing{};
  counts_.cut_chunks.add(1);
  source.links[position].in_chunk = false;
  page.delivered.push_back(
      {.data = &kNothing, .count = 1, .link = source.indices[position], .status = chunk_status::kSoftwareTruncated});
}

const transport::Subscriber& NetworkStream::subscriber(std::uint32_t source) const { return sources_[source]->subscriber; }

void NetworkStream::hold(std::uint32_t source, bool held) {
  sources_[source]->held = held;
  sources_[source]->subscriber.hold(held);
}

// A lead that a publisher gained on the others must not count in its own next silence, as for cards.
void NetworkStream::advance_clock(std::uint64_t now_ns) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t least = kNone;
  const auto counts = [&](const Source& source) {
    return !source.held && !source.ended && now_ns - source.subscriber.last_heard_ns() < silence_ns_;
  };
  for (const auto& source : sources_) {
    if (counts(*source)) least = std::min(least, source->clock_ns - source->clock_lead_ns);
  }
  if (least != kNone) clock_ns_ = std::max(clock_ns_, least);
  for (const auto& source : sources_) {
    const std::uint64_t latest = clock_ns_ + (source->held ? 0 : kClockLeadNs);
    if (source->clock_ns - source->clock_lead_ns > latest && source->clock_ns > latest)
      source->clock_lead_ns = source->clock_ns - latest;
  }
}

double NetworkStream::memory_fill() const {
  double fill = 0;
  for (const auto& source : sources_) {
    if (const std::uint32_t slots = source->slots.get(); slots > 0)
      fill = std::max(fill, static_cast<double>(source->out.get()) / static_cast<double>(slots));
  }
  return fill;
}

}  // namespace rodeo::input
