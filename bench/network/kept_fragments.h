// Readouts for benchmarks: provable fragments in slots that are filled once, and the product's own handler that keeps and serves them.
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
  std::uint32_t queue = 256;            ///< fragments before they are kept
  std::uint32_t sending = 1024;         ///< fragments that may be on their way
  std::uint32_t page_bytes = 64U << 10;
};

inline constexpr std::size_t kKeptStampBytes = 16;  ///< what a fragment begins with: global id, slot

/// Of a readout: its service on the bus, and its one ROB.
std::string kept_service(std::uint32_t readout);
SourceId kept_source(std::uint32_t readout);

/// Whether these are the ROD data of this event and this readout, every byte.
bool proves_kept(std::span<const std::byte> data, std::uint64_t id, std::uint32_t readout);

/// The same of a whole ROB as the handler sends it, in pieces as they came. Headers and trailer have been checked by who received it.
bool proves_kept_rob(std::span<const std::span<const std::byte>> rob, std::uint32_t fragment_bytes, std::uint64_t id,
                     std::uint32_t readout);

/// Fragments of one readout: slots in one piece of memory, filled once; a fragment that goes out again has another id in it.
class KeptSource final : public FragmentOwner {
 public:
  KeptSource(const KeptSettings& settings, std::uint32_t readout);

  /// Inserts one after the other, from id 0, until `stop`. One thread.
  void run(FragmentConsumer& consumer, const std::atomic<bool>& stop);
  void reclaim(Fragment& fragment) noexcept override { pool_.give(static_cast<Slot*>(&fragment)); }

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

/// One readout: what stands for its builder, and the product's own handler.
class KeptReadout {
 public:
  /// Is on the bus. Throws SetupError.
  KeptReadout(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t number);
  void run(const std::atomic<bool>& stop) { source_.run(handler_, stop); }
  /// A full book holds back who inserts, and nobody clears any more.
  void run_ends() { handler_.run_ends(); }
  void stop() { handler_.stop(); }

 private:
  KeptSource source_;
  readout::HltRequestHandler handler_;
};

/// So many of them, each inserting in a thread of its own. `over`: nobody asks any more.
void run_kept_readouts(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t readouts,
                       const std::atomic<bool>& over);

}  // namespace rodeo::bench
