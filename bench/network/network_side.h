// Both ends of the product's network in a benchmark: a publisher that gets its data like a router's, and a subscriber that
// reads like a readout.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/thread.h"
#include "bench/network/two_processes.h"
#include "input/network_stream.h"
#include "transport/publisher.h"

namespace rodeo::bench {

struct NetworkEnds {
  std::filesystem::path bus;
  std::string provider = "tcp";
  std::uint32_t page_bytes = 64U << 10;
  bool unbuffered = false;
};

/// Runs a publisher of these links until the meeting stops: `next(publisher)` returns runs, or none if there are none now.
/// Begins with the first subscriber of links[0].
template <typename Next>
void run_publisher(Meeting& meeting, const NetworkEnds& ends, std::span<const Fid> links, Next&& next) {
  base::set_thread_name(ends.unbuffered ? "publisher-1" : "publisher");
  transport::Publisher publisher(
      {.name = "bench", .bus = ends.bus, .providers = {ends.provider}, .page_bytes = ends.page_bytes}, links);
  base::Backoff backoff(ends.unbuffered ? base::IdlePolicy::yield : base::IdlePolicy::sleep);
  const auto progress = [&] {
    const std::uint64_t now = base::steady_now_ns();
    publisher.progress(now, now);
  };
  while (!publisher.wanted(0)) {
    progress();
    backoff.idle();
  }
  std::span<const ChunkRun> runs;
  while (!meeting.stop.load(std::memory_order_relaxed)) {
    if (runs.empty()) runs = next(publisher);
    const bool published = !runs.empty() && publisher.publish(runs);
    if (published) runs = {};
    progress();
    published ? backoff.reset() : backoff.idle();
  }
  while (!runs.empty() && !publisher.publish(runs)) progress();
  publisher.end();
  while (!publisher.ended()) progress();
  const auto counters = publisher.counters();
  meeting.sent_chunks.store(base::counter_value(counters, "chunks_wanted"), std::memory_order_relaxed);
  meeting.sent_bytes.store(base::counter_value(counters, "bytes_sent"), std::memory_order_relaxed);
}

/// The proof of a subscriber that discards data: counts chunks, and checks the numbers of each link for gaps; ignores the
/// bytes.
struct Discarded {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mismatches = 0;

  void take(const ChunkRun& run) {
    chunks += run.more_follows ? 0 : run.count;
    if (run.entries == nullptr) {
      bytes += std::uint64_t{run.count} * run.size;
    } else {
      for (const ChunkEntry& entry : std::span(run.entries, run.count)) bytes += entry.size;
    }
  }
};

/// Reads these links, which are the first ones of the publisher, to their end: `proof.take(run)` adds to proof.chunks,
/// proof.bytes and proof.mismatches.
template <typename Proof>
void run_subscriber(Meeting& meeting, const NetworkEnds& ends, std::span<const Fid> links, Proof&& proof) {
  base::set_thread_name(ends.unbuffered ? "subscriber-1" : "subscriber");
  std::vector<LinkIndex> indices;
  for (std::size_t i = 0; i < links.size(); ++i) indices.push_back(static_cast<LinkIndex>(i));
  constexpr std::uint64_t kSilenceNs = 10'000'000'000;
  input::NetworkStream stream({.name = "bench", .bus = ends.bus, .provider = ends.provider, .unbuffered = ends.unbuffered},
                              {{{links.begin(), links.end()}, indices}}, kSilenceNs);
  base::Backoff backoff(ends.unbuffered ? base::IdlePolicy::yield : base::IdlePolicy::sleep);
  for (;;) {
    Page* page = nullptr;
    const PollStatus status = stream.poll(page);
    if (status == PollStatus::end) break;
    if (status != PollStatus::page) {
      backoff.idle();
      continue;
    }
    backoff.reset();
    for (const ChunkRun& run : page->runs) proof.take(run);
    page->drop();
    meeting.chunks.store(proof.chunks, std::memory_order_relaxed);
    meeting.bytes.store(proof.bytes, std::memory_order_relaxed);
  }
  meeting.mismatches.store(proof.mismatches + stream.counts().bad_pages.get() + stream.counts().cut_chunks.get());
  meeting.lost.store(stream.counts().lost_chunks.get());
}

/// Chunks that were sent and did not arrive; call it after both sides have ended.
inline std::uint64_t lost_of(const Meeting& meeting) {
  const std::uint64_t sent = meeting.sent_chunks.load();
  const std::uint64_t came = meeting.chunks.load();
  return std::max(meeting.lost.load(), sent > came ? sent - came : came - sent);
}

}  // namespace rodeo::bench
