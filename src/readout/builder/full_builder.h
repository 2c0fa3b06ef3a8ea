// FULL-mode builder: few links with large chunks, each a fragment in the input's memory (software ROD paper, section IX.D).
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "readout/builder/full_worker.h"
#include "rodeo/plugin.h"

namespace rodeo::readout {

struct FullSettings {
  std::uint32_t workers = 1;
  std::chrono::nanoseconds timeout{10'000'000};
  std::uint64_t window = 16384;  ///< window of each group; rounded up to a power of two
  std::uint32_t step_limit = 8;
  std::size_t fragments = 4096;  ///< fragments of each worker: the most that consumers can hold at once
  std::size_t copies = 256;      ///< number of fragments that have memory for a copy
  std::size_t copy_bytes = 16384;
  double copy_above = 0.75;
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  std::vector<int> cpus = {};
  bool trigger_list = false;
};

/// Each group of links has its own fragments: group g has the ROB's source id plus g.
class FullBuilder final : public FragmentBuilder, public CountsBytes, public KnowsPlaces, public SharesReaderTracks {
 public:
  /// Opens the streams and allocates all memory. Throws SetupError.
  FullBuilder(const FullSettings& settings, const BuilderContext& context);

  void start() override;
  void join() override;
  void give_up() override;
  bool set_link(Fid fid, LinkState state) override;
  Status status() const override;
  ChunkBytes chunk_bytes() const override;
  std::vector<KnownPlace> link_places() const override;
  void share(ReaderTracks& tracks) override;

 private:
  std::uint64_t window_ = 0;
  std::atomic<bool> joined_{false};
  std::unique_ptr<TriggerList> list_;  // null if there is no list
  std::vector<std::unique_ptr<FullWorker>> workers_;
  std::vector<std::jthread> threads_;
};

/// Registers the builder "full".
void register_full_builder(Registry& registry);

}  // namespace rodeo::readout
