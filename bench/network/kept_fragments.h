// Readouts for benchmarks: provable fragments in slots that are filled once. The product's own handler keeps and serves the
// fragments.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "formats/rob_frame.h"
#include "readout/builder/recycle_pool.h"
#include "readout/consumer/hlt_request_handler.h"
#include "rodeo/fragment.h"

namespace rodeo::bench {

struct KeptSettings {
  std::string provider = "tcp";
  std::uint32_t fragment_bytes = 7700;  ///< ROD data, a multiple of 4, at least kKeptStampBytes
  std::uint32_t kept = 16'384;          ///< fragments of a readout
  std::uint32_t queue = 256;            ///< fragments that wait for the handler
  std::uint32_t sending = 1024;         ///< fragments that may be under way
  std::uint32_t page_bytes = 64U << 10;
};

inline constexpr std::size_t kKeptStampBytes = 16;  ///< start of a fragment: global id, slot

/// Name of a readout's service on the bus, and source id of its single ROB.
std::string kept_service(std::uint32_t readout);
SourceId kept_source(std::uint32_t readout);

/// True if every byte belongs to the ROD data of this event and this readout.
bool proves_kept(std::span<const std::byte> data, std::uint64_t id, std::uint32_t readout);

/// Checks a whole ROB from the handler, in the pieces received. The receiver has checked headers and trailer before.
bool proves_kept_rob(std::span<const std::span<const std::byte>> rob, std::uint32_t fragment_bytes, std::uint64_t id,
                     std::uint32_t readout);

/// Fragments of one readout: slots in one piece of memory, filled once. Each use of a slot writes a new id.
class KeptSource final : public FragmentOwner {
 public:
  KeptSource(const KeptSettings& settings, std::uint32_t readout);

  /// Inserts fragments in order, from id 0, until `stop`. For one thread.
  void run(FragmentConsumer& consumer, const std::atomic<bool>& stop);
  void reclaim(Fragment& fragment) noexcept override { pool_.give_back(static_cast<Slot*>(&fragment)); }

 private:
  struct Slot : Fragment {
    FragmentPart part;
    Slot* next_free = nullptr;
  };

  std::size_t bytes_;
  base::Arena memory_;
  std::vector<Slot> slots_;
  readout::RecyclePool<Slot> pool_;
};

/// One readout: a stand-in for its builder, and the product's own handler.
class KeptReadout {
 public:
  /// Registers the service on the bus. Throws SetupError.
  KeptReadout(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t number);
  void run(const std::atomic<bool>& stop) { source_.run(handler_, stop); }
  /// Ends the wait of an inserter for a full book: no more clears come.
  void run_ends() { handler_.run_ends(); }
  void stop() { handler_.stop(); }

 private:
  KeptSource source_;
  readout::HltRequestHandler handler_;
};

/// Runs this number of readouts, each with its own inserting thread, until `over`: no more requests come.
void run_kept_readouts(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t readouts,
                       const std::atomic<bool>& over);

}  // namespace rodeo::bench
