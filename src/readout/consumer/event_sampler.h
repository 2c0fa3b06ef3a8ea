// EventSampler: shows some events to readers, and never slows the run (software ROD paper, section VI.C).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/thread.h"
#include "formats/event_frame.h"
#include "readout/consumer/event_share.h"
#include "readout/consumer/fragment_copies.h"
#include "readout/consumer/sample_server.h"
#include "readout/run_info.h"
#include "rodeo/consumer.h"
#include "rodeo/parameters.h"

namespace rodeo::readout {

struct SamplerSettings {
  std::string name = "event_sampler";
  std::string endpoint = "readout";              ///< the socket is <endpoint>.events in the runtime directory
  std::uint64_t prescale = 1;                    ///< samples one in this many of the matching fragments
  double max_rate_hz = 1000;                     ///< 0: no limit
  std::uint32_t status_mask = 0;                 ///< only fragments with one of these status bits; 0: any
  std::vector<std::uint8_t> trigger_types = {};  ///< only fragments of these types; empty: any
  std::size_t max_payload_bytes = 64 * 1024;
  std::size_t samples = 64;  ///< samples that may wait to be sent
  formats::EventFrameSettings frame = {};
  formats::IdLayout ids = {};
};

/// insert() forwards at once. A sampled fragment is copied first (about a microsecond), so readers never hold the builder's
/// memory, and later consumers may change the fragment. Without a reader, insert() costs one load. If no copy or no place in
/// the queue is free, the sample is skipped and counted.
class EventSampler final : public FragmentConsumer, public RunAware {
 public:
  /// Opens the socket. Throws SetupError.
  explicit EventSampler(SamplerSettings settings);
  ~EventSampler() override;

  void insert(FragmentPtr fragment) override;
  void set_run(const RunInfo& run) override;
  void start() override;
  void stop() override;
  void link(FragmentConsumer* next) override;
  Status status() const override;

  static std::vector<Key> keys();
  static std::unique_ptr<FragmentConsumer> create(const Parameters& parameters, const RunInfo& run);

 private:
  bool wanted(const Fragment& fragment);
  void run();
  void send(const Fragment& fragment, std::uint64_t now_ns);
  void publish();

  const SamplerSettings settings_;
  formats::EventFrame frame_;  // constant from start() on
  FragmentCopies copies_;
  base::BoundedQueue<FragmentPtr> queue_;
  SampleServer server_;
  EventShare share_;

  alignas(base::kCacheLine) std::atomic<bool> watched_{false};  // read by every insert()
  alignas(base::kCacheLine) std::atomic<std::uint64_t> matches_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> skipped_full_{0};
  std::atomic<std::uint64_t> skipped_too_large_{0};

  std::atomic<std::uint64_t> readers_{0}, readers_seen_{0}, readers_dropped_{0}, sent_{0},
      missed_{0};  // copies of the server's counters
  formats::EventEnds ends_;
  std::vector<std::byte> event_;
  std::atomic<bool> ending_{false};
  base::ThreadCpu cpu_;
  std::thread thread_;
};

}  // namespace rodeo::readout
