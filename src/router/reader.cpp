#include "router/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>

#include "base/clock.h"
#include "base/pin.h"

namespace rodeo::router {
namespace {

// Limit of the wait after give_up(), for a stream that does not end.
constexpr std::uint64_t kLastPatienceNs = 1'000'000'000;

}  // namespace

Reader::Reader(Settings settings, std::unique_ptr<DataStream> stream, const transport::PublisherSettings& publisher,
               std::span<const Fid> links)
    : settings_(std::move(settings)),
      name_(publisher.name),
      links_(links.begin(), links.end()),
      grace_ns_(static_cast<std::uint64_t>(publisher.grace.count())),
      stream_(std::move(stream)),
      publisher_(with_own_losses(publisher), links, settings_.trigger_list),
      wanted_(links.size(), grace_ns_),
      waits_(settings_.waits),
      subscribed_(!settings_.waits) {}

Reader::~Reader() { join(); }

transport::PublisherSettings Reader::with_own_losses(transport::PublisherSettings publisher) const {
  publisher.losses = [this, before = std::move(publisher.losses)] {
    std::vector<NamedCounter> losses{{name_ + "_not_taken", counters_.read(ReaderCounter::not_taken)}};
    if (before) std::ranges::copy(before(), std::back_inserter(losses));
    return losses;
  };
  return publisher;
}

void Reader::join() {
  if (thread_.joinable()) thread_.join();
}

void Reader::start() {
  thread_ = std::thread([this] { run(); });
}

void Reader::run() {
  base::set_thread_name(settings_.thread_name);
  base::pin_thread_or_warn(settings_.cpu, settings_.thread_name);
  cpu_.attach();
  try {
    read();
    stream_ended_.store(true, std::memory_order_release);
    send_what_is_left();
  } catch (const std::exception& error) {
    const std::lock_guard lock(failure_mutex_);
    failure_ = fmt::format("{}: {}", name_, error.what());
  }
  stream_ended_.store(true, std::memory_order_release);
  cpu_.detach();
  ended_.store(true, std::memory_order_release);
}

void Reader::read() {
  base::Backoff backoff(settings_.idle);
  Page* page = nullptr;
  std::uint64_t clock_ns = stream_->clock_ns();
  std::uint64_t now_ns = base::steady_now_ns();
  std::uint64_t moved_ns = now_ns;
  bool empty = false;
  for (;;) {
    bool moved = false;
    if (page == nullptr) {
      tell_what_is_wanted(now_ns, empty);
      const PollStatus status = stream_->poll(page);
      empty = status == PollStatus::empty;
      counters_.add(ReaderCounter::polls);
      if (status == PollStatus::end) return;
      if (status == PollStatus::page) {
        counters_.add(ReaderCounter::pages_read);
      } else {
        counters_.add(status == PollStatus::full ? ReaderCounter::polls_full : ReaderCounter::polls_empty);
        page = nullptr;
      }
    }
    now_ns = base::steady_now_ns();
    if (page != nullptr && publish(*page, now_ns)) {
      page->drop();
      page = nullptr;
      moved = true;
    }
    if (page == nullptr) clock_ns = stream_->clock_ns();
    publisher_.progress(now_ns, clock_ns);
    if (waits_.load(std::memory_order_relaxed))
      subscribed_.store(publisher_.all_links_subscribed(), std::memory_order_release);
    moved ? backoff.reset() : backoff.idle();
    if (moved || !told_to_give_up_.load(std::memory_order_relaxed)) {
      moved_ns = now_ns;
    } else if (now_ns - moved_ns > kLastPatienceNs) {
      return;
    }
  }
}

/// Tells the stream which links have a subscriber; a stream may drop the data of other links before decoding. `empty`: the
/// last poll had no page.
void Reader::tell_what_is_wanted(std::uint64_t now_ns, bool empty) {
  const auto wanted = [this](LinkIndex link) { return publisher_.wanted(link); };
  const auto tell = [this](LinkIndex link, bool is_wanted) { stream_->want(link, is_wanted); };
  wanted_.polled(empty, now_ns, wanted, tell);
  const std::uint64_t changes = publisher_.wanted_changes();
  if (told_changes_ == changes) return;
  told_changes_ = changes;
  wanted_.change(now_ns, wanted, tell);
}

/// True when the page is finished.
bool Reader::publish(Page& page, std::uint64_t now_ns) {
  if (!given_up_ && publisher_.publish(page.runs)) {
    refused_since_ns_ = 0;
    return true;
  }
  // The time starts when the run begins to end, or at the last progress: one page of the input may fill many pages of the
  // publisher.
  const std::uint64_t taken = publisher_.pages_taken();
  if (refused_since_ns_ == 0 || taken != taken_ || !ending_.load(std::memory_order_relaxed)) refused_since_ns_ = now_ns;
  taken_ = taken;
  given_up_ = given_up_ || now_ns - refused_since_ns_ > grace_ns_ || told_to_give_up_.load(std::memory_order_relaxed);
  if (given_up_) {
    const LinkTally given_up = publisher_.give_up(page.runs);
    counters_.add(ReaderCounter::not_taken, given_up.chunks);
    counters_.add(ReaderCounter::not_taken_bytes, given_up.bytes);
  }
  return given_up_;
}

/// Runs until everything is taken, or until nothing was taken for `grace`.
void Reader::send_what_is_left() {
  publisher_.end();
  base::Backoff backoff;
  std::uint64_t taken = publisher_.pages_taken();
  std::uint64_t moved_ns = base::steady_now_ns();
  while (!publisher_.ended()) {
    const std::uint64_t now_ns = base::steady_now_ns();
    publisher_.progress(now_ns, stream_->clock_ns());
    if (const std::uint64_t now_taken = publisher_.pages_taken(); now_taken != taken) {
      taken = now_taken;
      moved_ns = now_ns;
    }
    if (now_ns - moved_ns > grace_ns_ || told_to_give_up_.load(std::memory_order_relaxed)) return;
    backoff.idle();
  }
}

std::string Reader::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

ReaderStatus Reader::status() const {
  // Reads the counters at the end of the path first, so that everything sent is already counted as read.
  ReaderStatus out{.name = name_, .trigger_list = settings_.trigger_list};
  out.subscribers = publisher_.subscribers();
  out.counters = publisher_.counters();
  for (std::size_t i = 0; i < kReaderCounters.size(); ++i)
    out.counters.push_back({std::string(kReaderCounters[i].name), counters_.read(static_cast<ReaderCounter>(i))});
  LinkTally sum;
  for (std::size_t link = 0; link < links_.size(); ++link) {
    out.links.push_back({links_[link], publisher_.tally(link)});
    sum += out.links.back().tally;
  }
  for (std::size_t i = 0; i < kReaderSums.size(); ++i) out.counters.push_back({std::string(kReaderSums[i].name), sum[i]});
  out.input_memory_fill = stream_->memory_fill();
  out.cpu_seconds = cpu_.seconds();
  return out;
}

}  // namespace rodeo::router
