#include "readout/consumer/fragment_publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/thread.h"
#include "readout/consumer/fragment_stream.h"

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kMonitorNs = 500'000'000;

transport::Publisher publisher_for(const FragmentPublisherSettings& settings) {
  auto publisher = settings.publisher.publisher(settings.stream);
  if (!publisher) throw SetupError(publisher.error());
  const Fid fid = fragment_stream_fid(settings.frame.source_id);
  return {*std::move(publisher), {&fid, 1}};
}

QueueSettings with_one_thread(QueueSettings queue) {
  queue.threads = 1;  // a publisher belongs to one thread
  return queue;
}

}  // namespace

class FragmentPublisher::PublishingWorker final : public Worker {
 public:
  explicit PublishingWorker(FragmentPublisher& owner)
      : owner_(owner),
        publisher_(owner.publisher_),
        grace_ns_(static_cast<std::uint64_t>(owner.settings_.publisher.grace.count())),
        waits_for_subscriber_(owner.settings_.wait_for_subscriber) {}

  void work(FragmentPtr fragment) override {
    if (given_up_) {
      owner_.not_taken_.fetch_add(1, std::memory_order_relaxed);
      return owner_.pass_on(std::move(fragment));
    }
    publisher_.skip(0, newly_skipped());
    if (waits_for_subscriber_) wait([&] { return publisher_.all_links_subscribed(); }, [] { return std::uint64_t{0}; });
    waits_for_subscriber_ = false;
    // Without a subscriber, no event is made.
    make_runs(*fragment, publisher_.wanted(0));
    if (!wait([&] { return publisher_.publish(runs_); }, [&] { return publisher_.pages_taken(); }))
      owner_.not_taken_.fetch_add(1, std::memory_order_relaxed);
    unseen_bytes_ += fragment->payload_bytes();
    if (unseen_bytes_ >= owner_.settings_.publisher.page_bytes) progress();
    owner_.pass_on(std::move(fragment));
  }

  /// Ends when subscribers have taken all pages, or took no page for `grace`. The time is shorter if there are only
  /// monitors.
  bool on_idle(bool ending) override {
    const std::uint64_t now_ns = progress();
    if (!ending) return false;
    publisher_.end();
    const std::uint64_t taken = publisher_.pages_taken();
    if (taken != pages_taken_ || progress_ns_ == 0) progress_ns_ = now_ns;
    pages_taken_ = taken;
    const std::uint64_t patience_ns = publisher_.wanted_as_data(0) ? grace_ns_ : std::min(grace_ns_, kMonitorNs);
    const bool over = publisher_.ended() || now_ns - progress_ns_ > patience_ns || owner_.gives_up();
    if (over) owner_.over_.store(true, std::memory_order_release);
    return over;
  }

 private:
  /// Waits for done(). False: the run ends and `progressed` stood still for `grace`; all later calls then return false at
  /// once.
  template <typename Done, typename Progressed>
  bool wait(Done&& done, Progressed&& progressed) {
    if (given_up_) return false;
    base::Backoff backoff(owner_.settings().idle);
    std::uint64_t since_ns = 0;
    std::uint64_t reached = 0;
    while (!done()) {
      const std::uint64_t now_ns = progress();
      const std::uint64_t before = std::exchange(reached, progressed());
      if (since_ns == 0 || reached != before || !owner_.ends_.load(std::memory_order_relaxed)) since_ns = now_ns;
      given_up_ = now_ns - since_ns > grace_ns_ || owner_.gives_up();
      if (given_up_) return false;
      backoff.idle();
    }
    return true;
  }

  std::uint64_t progress() {
    unseen_bytes_ = 0;
    const std::uint64_t now_ns = base::steady_now_ns();
    const bool had_to_wait = owner_.must_wait_.load(std::memory_order_relaxed);
    publisher_.progress(now_ns, now_ns);
    const bool must_wait = waits_for_subscriber_ || publisher_.wanted_as_data(0);
    owner_.must_wait_.store(must_wait, std::memory_order_relaxed);
    // The queue was full when a subscriber of data connected: the fragments left out until then were earlier than the
    // subscriber.
    if (must_wait && !had_to_wait) (void)newly_skipped();
    return now_ns;
  }

  std::uint32_t newly_skipped() {
    const auto skipped =
        owner_.unpublished_[static_cast<std::size_t>(Unpublished::queue_full)].load(std::memory_order_relaxed);
    return static_cast<std::uint32_t>(skipped - std::exchange(skipped_, skipped));
  }

  void make_runs(const Fragment& fragment, bool wanted) {
    runs_.clear();
    if (!wanted) return runs_.push_back({.data = &kNothing, .count = 1});
    owner_.frame_.store(fragment, event_stamp(fragment), ends_);
    const auto add = [&](const std::byte* data, std::size_t bytes, bool more) {
      if (bytes > 0)
        runs_.push_back({.data = data, .size = static_cast<std::uint32_t>(bytes), .count = 1, .more_follows = more});
    };
    add(ends_.head.data(), ends_.head.size(), true);
    for (const FragmentPart& part : fragment.all_parts()) add(part.data, part.size, true);
    add(ends_.tail.data(), ends_.tail.size(), false);
  }

  static constexpr std::byte kNothing{};
  FragmentPublisher& owner_;
  transport::Publisher& publisher_;
  const std::uint64_t grace_ns_;
  bool waits_for_subscriber_;
  bool given_up_ = false;  // the publisher gave up a subscriber that takes no pages while the run ends
  std::uint64_t skipped_ = 0;
  std::uint64_t unseen_bytes_ = 0;  // bytes since progress()
  std::uint64_t pages_taken_ = 0;   // pages taken at the last rest() of the end
  std::uint64_t progress_ns_ = 0;
  formats::EventEnds ends_;
  std::vector<ChunkRun> runs_;
};

FragmentPublisher::FragmentPublisher(FragmentPublisherSettings settings)
    : QueuedConsumer(with_one_thread(settings.queue)),
      settings_(std::move(settings)),
      frame_(settings_.frame),
      share_(settings_.share),
      publisher_(publisher_for(settings_)),
      must_wait_(settings_.wait_for_subscriber) {}

FragmentPublisher::~FragmentPublisher() { FragmentPublisher::stop(); }

void FragmentPublisher::set_run(const RunInfo& run) {
  formats::EventFrameSettings frame = settings_.frame;
  apply_run(frame, run);
  frame_ = formats::EventFrame(std::move(frame));
}

void FragmentPublisher::stop() {
  run_ends();
  QueuedConsumer::stop();
}

void FragmentPublisher::insert(FragmentPtr fragment) {
  switch (share_.decide(*fragment, 0)) {
    case ShareVerdict::beyond_fraction: return leave_out(Unpublished::fraction, std::move(fragment));
    case ShareVerdict::beyond_rate: return leave_out(Unpublished::rate, std::move(fragment));
    case ShareVerdict::beyond_bytes:
    case ShareVerdict::accepted: break;
  }
  if (must_wait_.load(std::memory_order_relaxed)) return enqueue(std::move(fragment));
  if (!try_enqueue(fragment)) leave_out(Unpublished::queue_full, std::move(fragment));
}

void FragmentPublisher::leave_out(Unpublished why, FragmentPtr fragment) {
  unpublished_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  pass_on(std::move(fragment));
}

std::unique_ptr<QueuedConsumer::Worker> FragmentPublisher::make_worker(unsigned) {
  return std::make_unique<PublishingWorker>(*this);
}

FragmentConsumer::Status FragmentPublisher::status() const {
  Status out = QueuedConsumer::status();
  const auto unpublished = [this](Unpublished why) {
    return unpublished_[static_cast<std::size_t>(why)].load(std::memory_order_relaxed);
  };
  std::vector<NamedCounter> counters = publisher_.counters();
  std::uint64_t subscribers = 0;
  for (const transport::Publisher::Subscriber& one : publisher_.subscribers()) {
    subscribers += one.connected ? 1 : 0;
    // After the end, chunks in the pages of subscribers can no longer be delivered.
    if (over_.load(std::memory_order_acquire) && !one.gone && !one.monitor)
      base::counter_named(counters, "undelivered") += one.pending_chunks;
  }
  out.counters.insert(out.counters.end(), {{"subscribers", subscribers},
                                           {"not_taken", not_taken_.load(std::memory_order_relaxed)},
                                           {"unpublished_beyond_fraction", unpublished(Unpublished::fraction)},
                                           {"unpublished_beyond_rate", unpublished(Unpublished::rate)},
                                           {"unpublished_queue_full", unpublished(Unpublished::queue_full)}});
  out.counters.insert(out.counters.end(), counters.begin(), counters.end());
  return out;
}

namespace {

const Settings<FragmentPublisherSettings>& fragment_publisher_settings() {
  using F = FragmentPublisherSettings;
  static const Settings<F> settings{
      setting(&F::queue, one_thread_settings()),
      setting(&F::share, share_settings()),
      setting(&F::wait_for_subscriber, "wait_for_subscriber",
              "The run waits until there is a subscriber of data. Otherwise, earlier events reach no subscriber."),
      setting(&F::publisher, transport::publisher_keys()),
  };
  return settings;
}

}  // namespace

std::vector<Key> FragmentPublisher::keys() { return fragment_publisher_settings().keys(); }

Result<void> FragmentPublisher::check(const Parameters& parameters) {
  RODEO_TRY(fragment_publisher_settings().read(parameters).publisher.publisher({}));
  return {};
}

std::unique_ptr<FragmentConsumer> FragmentPublisher::create(const Parameters& parameters, const RunInfo& run) {
  FragmentPublisherSettings settings = fragment_publisher_settings().read(parameters);
  settings.queue.name = parameters.has("name") ? parameters.text("name") : "publish";
  settings.stream = fmt::format("{}.{}", run.readout_name, settings.queue.name);
  settings.frame = event_frame_settings(run);
  return std::make_unique<FragmentPublisher>(std::move(settings));
}

}  // namespace rodeo::readout
