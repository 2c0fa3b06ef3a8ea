#include "readout/consumer/event_subscriber.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "formats/full_event.h"
#include "readout/consumer/fragment_stream.h"
#include "transport/secret.h"

namespace rodeo::readout {
namespace {

/// Finds the wanted stream on the bus.
Result<transport::BusEntry> find_stream(const std::filesystem::path& bus, const std::string& name) {
  constexpr std::chrono::milliseconds kPatience{500};
  auto entries = RODEO_TRY(transport::read_bus(bus)).entries;
  std::erase_if(entries, [&](const transport::BusEntry& entry) {
    return !is_fragment_stream(entry) || (!name.empty() && entry.name != name) ||
           !transport::accepts_connections(entry.address, entry.port, kPatience);
  });
  if (entries.empty()) {
    return std::unexpected(
        Error{"readout.no_stream",
              name.empty() ? "no readout publishes fragments" : fmt::format("no readout publishes fragments as {}", name),
              bus.string(),
              "start `rodeo readout CONFIG` with a consumer `publish` and this bus; `rodeo route list` shows publishers"});
  }
  if (entries.size() == 1) return entries.front();
  std::string list;
  for (const transport::BusEntry& entry : entries) list += (list.empty() ? "" : ", ") + entry.name;
  return std::unexpected(Error{"readout.which_stream", fmt::format("{} streams are possible: {}", entries.size(), list),
                               bus.string(), "--from NAME"});
}

}  // namespace

Result<EventSubscriber> EventSubscriber::subscribe(const EventSubscriberSettings& settings) {
  constexpr std::uint64_t kSilenceNs = 10'000'000'000;
  const std::filesystem::path bus = settings.bus.empty() ? transport::default_bus() : std::filesystem::path(settings.bus);
  const std::string secret = RODEO_TRY(transport::read_secret(settings.secret_file));
  const transport::BusEntry entry = RODEO_TRY(find_stream(bus, settings.stream));
  const transport::SubscriberSettings subscriber{.name = settings.name,
                                                 .bus = bus,
                                                 .provider = settings.provider,
                                                 .secret = secret,
                                                 .monitor = settings.monitor,
                                                 .publisher = entry.name};
  return EventSubscriber(
      entry.name, std::make_unique<input::NetworkStream>(
                      subscriber, std::vector<input::NetworkStream::Publisher>{{entry.links, {LinkIndex{0}}}}, kSilenceNs));
}

EventSubscriber::EventSubscriber(std::string name, std::unique_ptr<input::NetworkStream> stream)
    : name_(std::move(name)), stream_(std::move(stream)) {}

EventSubscriber::~EventSubscriber() {
  if (!stream_) return;
  leave();
  Sample left;
  for (auto outcome = next(left, {}); outcome && *outcome != Outcome::end;)
    outcome = next(left, std::chrono::milliseconds{10});
}

std::uint64_t EventSubscriber::lost() const {
  const input::NetworkCounts& counts = stream_->counts();
  return counts.lost_chunks.get() + counts.cut_chunks.get() + (cut_at_end_ ? 1 : 0);
}

Result<EventSubscriber::Outcome> EventSubscriber::next(Sample& sample, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  base::Backoff backoff;
  for (;;) {
    while (page_ != nullptr) {
      if (run_ == page_->runs.size()) {
        std::exchange(page_, nullptr)->drop();
        break;
      }
      const bool whole = append_chunk(page_->runs[run_], sample);
      if (part_.size() > kLargestFragment)
        return std::unexpected(Error{"readout.sample_protocol", "the received data are too large for an event", name_});
      if (++chunk_ == page_->runs[run_].count) {
        ++run_;
        chunk_ = 0;
      }
      if (whole) return Outcome::sample;
    }
    run_ = 0;
    const PollStatus status = stream_->poll(page_);
    if (status == PollStatus::page) continue;
    page_ = nullptr;
    if (status == PollStatus::end) {
      cut_at_end_ = !part_.empty();
      return Outcome::end;
    }
    const transport::Subscriber& subscriber = stream_->subscriber(0);
    if (subscriber.connections() == 0 && subscriber.last_end())
      return std::unexpected(subscriber.last_end()->within("publisher " + name_));
    if (std::chrono::steady_clock::now() >= deadline) return Outcome::nothing;
    backoff.idle();
  }
}

// Takes the current chunk; true if it completes a fragment.
bool EventSubscriber::append_chunk(const ChunkRun& run, Sample& sample) {
  const std::span<const std::byte> bytes = run.chunk(chunk_);
  part_.insert(part_.end(), bytes.begin(), bytes.end());
  if (run.more_follows) return false;
  sample.event.swap(part_);
  part_.clear();
  if (run.chunk_status(chunk_) != chunk_status::kOk) return false;  // only the beginning of the chunk arrived
  const std::uint64_t lost_now = lost();
  sample.header.missed = lost_now - std::exchange(reported_lost_, lost_now);
  sample.header.sequence = sample.header.unix_ns = 0;
  if (const auto event = formats::decode_full_event(sample.event)) {
    sample.header.sequence = event->global_id;
    sample.header.unix_ns = std::uint64_t{event->bc_time_s} * 1'000'000'000 + event->bc_time_ns;
  }
  return true;
}

}  // namespace rodeo::readout
