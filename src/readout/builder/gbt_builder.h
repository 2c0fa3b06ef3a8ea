// GBT-mode builder: many small chunks of many links, copied into slices by workers that share nothing (software ROD paper,
// VIII).
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "readout/builder/assembler.h"
#include "readout/builder/gbt_worker.h"
#include "readout/builder/rob_sequence.h"
#include "rodeo/plugin.h"

namespace rodeo::readout {

struct GbtSettings {
  std::uint32_t workers = 1;
  std::chrono::nanoseconds timeout{10'000'000};
  std::uint64_t window = 16384;    ///< open events; rounded up to a power of two
  std::uint32_t chunk_bytes = 64;  ///< size of a typical chunk; sets the size of a slice's first buffer
  std::uint64_t buffers = 0;       ///< slice buffers of each worker; 0: a quarter more than the window
  std::uint32_t max_extensions = 4;
  std::uint32_t step_limit = 8;
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  std::vector<int> cpus = {};  ///< one CPU for each worker, or empty
  bool trigger_list = false;
  bool sort_links = false;

  /// Reads the settings. Throws SetupError.
  static GbtSettings from(const Parameters& parameters);

  /// The highest number of links of one worker.
  std::size_t links_per_worker(std::size_t links) const { return (links + workers - 1) / workers; }

  /// The number of chunks of this size that a worker's slice of an event can hold, with extensions. A chunk is never split
  /// over buffers.
  std::size_t chunks_per_slice(std::size_t links, std::size_t bytes) const;
};

class GbtBuilder final : public FragmentBuilder, public CountsBytes, public KnowsPlaces, public SharesReaderTracks {
 public:
  /// Opens the streams and allocates all memory. Throws SetupError.
  GbtBuilder(const GbtSettings& settings, const BuilderContext& context);

  void start() override;
  void join() override;
  void give_up() override;
  bool set_link(Fid fid, LinkState state) override;
  Status status() const override;
  ChunkBytes chunk_bytes() const override;
  std::vector<KnownPlace> link_places() const override;
  void share(ReaderTracks& tracks) override;

 private:
  std::unique_ptr<WorkerProgress[]> progress_;
  std::unique_ptr<RobSequence> rob_;
  std::unique_ptr<Assembler> assembler_;
  std::vector<std::unique_ptr<GbtWorker>> workers_;
  std::vector<std::jthread> threads_;
  std::uint64_t window_ = 0;
};

/// Registers the builder "gbt".
void register_gbt_builder(Registry& registry);

}  // namespace rodeo::readout
