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
      publisher_(add_own_losses(publisher), links, settings_.trigger_list),
      wanted_(links.size(), grace_ns_),
      waiting_for_subscribers_(settings_.wait_for_subscribers),
      subscribed_(!settings_.wait_for_subscribers) {}

Reader::~Reader() { join(); }

transport::PublisherSettings Reader::add_own_losses(transport::PublisherSettings publisher) const {
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
    send_remaining();
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
  std::uint64_t progress_ns = now_ns;
  bool empty = false;
  for (;;) {
    bool progressed = false;
    if (page == nullptr) {
      update_wanted_links(now_ns, empty);
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
      progressed = true;
    }
    if (page == nullptr) clock_ns = stream_->clock_ns();
    publisher_.progress(now_ns, clock_ns);
    if (waiting_for_subscribers_.load(std::memory_order_relaxed))
      subscribed_.store(publisher_.all_links_subscribed(), std::memory_order_release);
    progressed ? backoff.reset() : backoff.idle();
    if (progressed || !give_up_requested_.load(std::memory_order_relaxed)) {
      progress_ns = now_ns;
    } else if (now_ns - progress_ns > kLastPatienceNs) {
      return;
    }
  }
}

/// Tells the stream which links have a subscriber; a stream may drop the data of other links before decoding. `empty`: the
/// last poll had no page.
void Reader::update_wanted_links(std::uint64_t now_ns, bool empty) {
  const auto wanted = [this](LinkIndex link) { return publisher_.wanted(link); };
  const auto set_wanted = [this](LinkIndex link, bool is_wanted) { stream_->want(link, is_wanted); };
  wanted_.on_poll(empty, now_ns, wanted, set_wanted);
  const std::uint64_t changes = publisher_.wanted_changes();
  if (seen_changes_ == changes) return;
  seen_changes_ = changes;
  wanted_.on_change(now_ns, wanted, set_wanted);
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
  if (refused_since_ns_ == 0 || taken != pages_taken_ || !ending_.load(std::memory_order_relaxed))
    refused_since_ns_ = now_ns;
  pages_taken_ = taken;
  given_up_ = given_up_ || now_ns - refused_since_ns_ > grace_ns_ || give_up_requested_.load(std::memory_order_relaxed);
  if (given_up_) {
    const LinkTally given_up = publisher_.give_up(page.runs);
    counters_.add(ReaderCounter::not_taken, given_up.chunks);
    counters_.add(ReaderCounter::not_taken_bytes, given_up.bytes);
  }
  return given_up_;
}

/// Runs until everything is taken, or until nothing was taken for `grace`.
void Reader::send_remaining() {
  publisher_.end();
  base::Backoff backoff;
  std::uint64_t taken = publisher_.pages_taken();
  std::uint64_t progress_ns = base::steady_now_ns();
  while (!publisher_.ended()) {
    const std::uint64_t now_ns = base::steady_now_ns();
    publisher_.progress(now_ns, stream_->clock_ns());
    if (const std::uint64_t now_taken = publisher_.pages_taken(); now_taken != taken) {
      taken = now_taken;
      progress_ns = now_ns;
    }
    if (now_ns - progress_ns > grace_ns_ || give_up_requested_.load(std::memory_order_relaxed)) return;
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
