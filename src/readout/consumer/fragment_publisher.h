// FragmentPublisher: sends all fragments, or a share of them, over the network to subscribers (software ROD paper, section
// IV).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/event_frame.h"
#include "readout/consumer/event_share.h"
#include "readout/consumer/queued_consumer.h"
#include "readout/run_info.h"
#include "rodeo/parameters.h"
#include "transport/publisher_keys.h"

namespace rodeo::readout {

struct FragmentPublisherSettings {
  QueueSettings queue = {};  ///< always one thread
  EventShare::Settings share = {};
  transport::PublisherKeys publisher = {};
  bool wait_for_subscriber = false;
  formats::EventFrameSettings frame = {};
  std::string stream = "readout.publish";  ///< name on the bus
};

/// One full event per fragment, as in a file. Each event is a chunk of the single link that is published. A fragment outside
/// the share passes on at once, a sent one when it is in the pages of all subscribers that want it. A subscriber of data
/// without room delays the run; at the run's end it does so for at most `grace`. If there are only monitors, fragments pass
/// a full queue unsent.
class FragmentPublisher final : public QueuedConsumer, public RunAware {
 public:
  /// Listens, and registers on the bus. Throws SetupError like transport::Publisher.
  explicit FragmentPublisher(FragmentPublisherSettings settings);
  ~FragmentPublisher() override;

  void insert(FragmentPtr fragment) override;
  void set_run(const RunInfo& run) override;
  void run_ends() override { ends_.store(true, std::memory_order_relaxed); }
  void stop() override;
  Status status() const override;

  static std::vector<Key> keys();
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const RunInfo& run);
  /// The errors of the secret that create() would find before it listens, including a missing secret.
  static Result<void> check(const Parameters& parameters);

 private:
  class PublishingWorker;
  std::unique_ptr<Worker> make_worker(unsigned index) override;

  // Reasons why a fragment was not sent; one counter for each.
  enum class Unpublished : std::uint8_t { fraction, rate, queue_full, count };
  void leave_out(Unpublished why, FragmentPtr fragment);

  const FragmentPublisherSettings settings_;
  formats::EventFrame frame_;  // constant from start() on
  EventShare share_;
  transport::Publisher publisher_;
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Unpublished::count)> unpublished_{};
  std::atomic<std::uint64_t> not_taken_{0};
  std::atomic<bool> must_wait_;  ///< insert() waits for room in the queue: a subscriber wants all data
  std::atomic<bool> ends_{false};
  std::atomic<bool> over_{false};
};

}  // namespace rodeo::readout
