// Counts the fate of the chunks of a FELIX card: sent, or lost for a named reason (docs/reference/emulator.md, "What is
// lost").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace rodeo::emulator {

/// The fate of a block.
enum class BlockFate : std::uint8_t {
  sent,
  dropped,    ///< the DMA channel of the block is not enabled
  lost,       ///< a fault has lost the block
  corrupted,  ///< a fault: the block is in the host's memory, but unreadable
  unmapped,   ///< the client has not mapped the address of the block
  cut_off,    ///< the block was still open at the end
};
inline constexpr std::size_t kBlockFates = static_cast<std::size_t>(BlockFate::cut_off) + 1;

/// Names of the counters in the report; `chunks` counts the chunks that were sent.
inline constexpr std::array<std::string_view, kBlockFates> kChunkCounters{
    "chunks", "chunks_dropped", "chunks_lost", "chunks_corrupted", "chunks_unmapped", "chunks_cut_off"};

/// Counters of chunks that a link should have sent and that never reached the host; not part of `chunks`. Chunks that were
/// cut off at an end are not among them.
inline constexpr std::array<std::string_view, 5> kChunkLosses{"chunks_dropped", "chunks_lost", "chunks_corrupted",
                                                              "chunks_unmapped", "chunks_link_down"};

/// Sums of a function. Every chunk that a link should have sent counts exactly once: in `chunks`, in `link_down`, or in an
/// open block.
struct ChunkBooks {
  std::array<std::uint64_t, kBlockFates> chunks{};  ///< chunks, by the fate of the block in which they begin
  std::uint64_t cut_short = 0;                      ///< sent chunks of which the host gets only a part
  std::uint64_t link_down = 0;                      ///< chunks of links that were down
  std::uint64_t begun = 0;                          ///< chunks that were put into a block

  /// Number of chunks in blocks that are still open.
  std::uint64_t open() const { return begun - std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0}); }
};

/// The chunks in the open block of one E-link. A chunk shares the fate of the block in which it begins. A reader that has
/// the start of a chunk delivers the chunk, cut short if the rest is missing. The rest without the start is useless.
class OpenBlockBooks {
 public:
  void begins(std::uint64_t chunks) { begun_ += chunks; }
  /// Ends the block. `goes_on`: its last chunk continues in the next block.
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
  bool carried_ = false;  // the block starts with the rest of a chunk of which all earlier blocks were sent
};

}  // namespace rodeo::emulator
