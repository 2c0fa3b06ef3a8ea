// Where the chunks of a FELIX card end: sent, or lost under a name (docs/emulator.md, "What is lost").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace rodeo::emulator {

/// What became of a block.
enum class BlockFate : std::uint8_t {
  sent,
  dropped,    ///< its DMA channel is not enabled
  lost,       ///< a fault
  corrupted,  ///< a fault: it is in the host's memory, and nobody can read it
  unmapped,   ///< its place is not in any map of the client
  cut_off,    ///< still open at the end
};
inline constexpr std::size_t kBlockFates = static_cast<std::size_t>(BlockFate::cut_off) + 1;

/// Names of the counters in the report; chunks that were sent are `chunks`.
inline constexpr std::array<std::string_view, kBlockFates> kChunkCounters{
    "chunks", "chunks_dropped", "chunks_lost", "chunks_corrupted", "chunks_unmapped", "chunks_cut_off"};

/// Counters of chunks that a link should have sent and that never came to the host; not in `chunks`. What an end cuts off is not among them.
inline constexpr std::array<std::string_view, 5> kChunkLosses{"chunks_dropped", "chunks_lost", "chunks_corrupted",
                                                              "chunks_unmapped", "chunks_link_down"};

/// Sums of a function. Every chunk that a link should have sent is in `chunks`, in `link_down` or in an open block, exactly once.
struct ChunkBooks {
  std::array<std::uint64_t, kBlockFates> chunks{};  ///< by the fate of the block that they begin in
  std::uint64_t cut_short = 0;                      ///< of those that were sent: the host gets a part of them
  std::uint64_t link_down = 0;                      ///< of links that were down
  std::uint64_t begun = 0;                          ///< chunks that came into a block

  /// Chunks in blocks that are still open.
  std::uint64_t open() const { return begun - std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0}); }
};

/// The chunks in the open block of one E-link. A chunk has the fate of the block that it begins in: a reader that has its begin
/// hands it over, cut short if what follows is missing; of one whose begin is missing it can do nothing with the rest.
class OpenBlockBooks {
 public:
  void begins(std::uint64_t chunks) { begun_ += chunks; }
  /// The block is gone; the last chunk in it goes on in the next one, or does not.
  void ends(BlockFate fate, bool goes_on, ChunkBooks& sums) {
    sums.chunks[static_cast<std::size_t>(fate)] += begun_;
    if (carried_ && fate != BlockFate::sent) {
      ++sums.cut_short;
      carried_ = false;
    }
    if (begun_ > 0) carried_ = fate == BlockFate::sent;
    if (!goes_on) carried_ = false;
    begun_ = 0;
  }

 private:
  std::uint64_t begun_ = 0;
  bool carried_ = false;  // the block begins with the rest of a chunk of which all was sent so far
};

}  // namespace rodeo::emulator
