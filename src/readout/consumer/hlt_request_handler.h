// HltRequestHandler: keeps fragments for the farm, which fetches and clears them over the network (software ROD paper,
// section VI.C).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/error.h"
#include "base/thread.h"
#include "readout/consumer/fragment_service.h"
#include "readout/run_info.h"
#include "rodeo/consumer.h"
#include "rodeo/parameters.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

/// The number of fragments that are kept, and the memory that the builder needs for them.
struct RetentionSettings {
  double rate_hz = 100'000;  ///< fragments per second of one ROB
  std::chrono::nanoseconds retention = std::chrono::seconds{1};
  std::uint64_t max_fragments = 0;  ///< limit for one ROB; 0: rate x retention
  std::size_t queue = 1024;         ///< fragments of one ROB that may wait for the book
  std::size_t sending = 1024;

  std::uint64_t most_fragments() const;
  /// The highest number of fragments of one ROB that this handler may hold at a time.
  std::uint64_t most_held() const { return most_fragments() + queue + sending + 1; }
};

struct HltRequestHandlerSettings {
  std::string name = "hlt_request_handler";
  RetentionSettings retention = {};
  FragmentServiceSettings service = {};  ///< `retention` gives its limits
  std::chrono::nanoseconds linger = std::chrono::seconds{5};
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  int cpu = -1;  ///< -1: not pinned
};

/// Counters of the books, set by the handler's thread.
enum class RetentionCounter : std::uint8_t {
  kept,
  kept_bytes,
  kept_limit,
  fill,
  cleared,
  cleared_early,
  repeated,
  garbage,
  uncleared,
  late,
  cleared_again,
  early_forgotten,
  waiting,
  sending,
  other_robs,
  count
};

inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(RetentionCounter::count)> kRetentionInfo{{
    {"kept", "fragments",
     "Fragments that are kept now: consumed = kept + cleared + cleared_early + repeated_fragments + garbage + uncleared."},
    {"kept_bytes", "bytes", "ROD data of the fragments that are kept now."},
    {"kept_limit", "fragments", "Fragments that may be kept, of all ROBs."},
    {"retention_fill_percent", "%",
     "Fill of the fullest book: the fragments that are kept, relative to those that may be kept."},
    {"cleared", "fragments", "Fragments that were kept and cleared."},
    {"cleared_early", "fragments", "Fragments that had been cleared before they came."},
    {"repeated_fragments", "fragments", "Fragments of an event and a ROB that already had one."},
    {"garbage", "fragments", "Fragments released because no clear named them for `garbage_age`."},
    {"uncleared", "fragments",
     "Fragments that were not cleared when the run was over and no client fetched or cleared any more."},
    {"late_fragments", "fragments", "Fragments that came after they counted as lost; they are kept."},
    {"cleared_again", "ids", "Cleared ids whose fragments had been released before, or never came."},
    {"early_forgotten", "ids", "Early clears that were forgotten: too many, or too old."},
    {"requests_waiting", "requests", "Requests that wait now for fragments which have not come."},
    {"fragments_sending", "fragments", "Fragments in unsent replies now, absent ones included."},
    {"other_robs", "fragments", "Fragments of ROBs that are not in `robs`; they pass on."},
}};

/// insert() keeps a shared reference and passes the fragment on at once. Later consumers must not write to the fragment;
/// Fragment::writable is false for them. A full book leaves fragments in the queue of their ROB, and a full queue delays
/// insert(). All other work is in one thread.
class HltRequestHandler final : public FragmentConsumer, public RunAware {
 public:
  /// Listens, and registers on the bus. Throws SetupError.
  explicit HltRequestHandler(HltRequestHandlerSettings settings);
  ~HltRequestHandler() override;

  void insert(FragmentPtr fragment) override;
  void set_run(const RunInfo& run) override;
  void start() override;
  /// Says that the run ends: kept fragments are served until they are cleared, or until no client has fetched or cleared
  /// anything for `linger`.
  void run_ends() override { ends_.store(true, std::memory_order_relaxed); }
  void give_up() override { give_up_requested_.store(true, std::memory_order_relaxed); }
  void stop() override;
  void link(FragmentConsumer* next) override;
  Status status() const override;

  static std::vector<Key> keys();
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const RunInfo& run);
  /// The errors that create() would find before it listens.
  static Result<void> check(const Parameters& parameters);
  static RetentionSettings retention_of(const Parameters& parameters);

 private:
  using Queue = base::BoundedQueue<FragmentPtr>;

  void run();
  bool keep_fragments(std::uint64_t now_ns);
  bool may_stop(std::uint64_t now_ns);
  Error unplaced() const;
  void publish_counters();

  const HltRequestHandlerSettings settings_;
  FragmentService service_;
  std::vector<std::unique_ptr<Queue>> queues_;  // one queue for each ROB
  std::vector<FragmentPtr> pending_;  // for each ROB: a fragment that was taken from the queue while the book was full

  std::atomic<bool> ends_{false};  // the run ends
  std::atomic<bool> give_up_requested_{false};
  std::atomic<bool> ending_{false};  // all fragments have been inserted
  bool given_up_ = false;            // the handler gave up its clients, while the run ends
  std::atomic<bool> unplaced_{false};
  std::uint64_t waits_since_ns_ = 0;
  std::uint64_t not_kept_ = 0;
  std::array<base::Gauge<std::uint64_t>, kRetentionInfo.size()> published_{};
  base::Gauge<std::uint64_t> taken_;
  alignas(base::kCacheLine) std::atomic<std::uint64_t> stalls_{0};
  std::atomic<std::uint64_t> other_robs_{0};
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::readout
