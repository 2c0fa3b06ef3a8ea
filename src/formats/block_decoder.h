// Turns FELIX blocks of many interleaved E-links into chunk runs (docs/reference/formats/felix-blocks.md, "Reading").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/block.h"
#include "formats/block_counters.h"
#include "formats/decode_buffer.h"
#include "rodeo/chunk.h"

namespace rodeo::formats {

/// The decoder of one stream. Runs point to whole chunks inside the blocks; chunks split over blocks are
/// joined in the DecodeBuffer. The runs of a link keep its order. One thread calls; any thread reads counters(). Blocks
/// may contain any bytes. Never allocates after construction.
class BlockDecoder {
 public:
  struct Options {
    BlockFormat format;
    std::uint32_t max_chunk_bytes = 64 * 1024;  ///< longer chunks are cut, marked and counted
    /// Receives the pieces of joined chunks, as places in the blocks, in the order of their runs and up to the size of each.
    /// Empty pieces are left out. For callers that keep all blocks: this list grows, and so do the lists of open chunks.
    JoinedParts* parts = nullptr;
  };

  /// `elinks[i]` is the card's 11-bit number of the link with index i. Blocks of other E-links are skipped and counted.
  /// Throws SetupError for an impossible format, an E-link above 2047, or an E-link that is named twice.
  BlockDecoder(const Options& options, std::span<const std::uint16_t> elinks);

  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;
  ~BlockDecoder();

  /// Room that suffices for `blocks` blocks of any content. Most of it is never touched.
  DecodeBuffer::Capacity capacity_for(std::size_t blocks) const;

  /// Decodes whole blocks from the front and appends to `out`. Returns the number of bytes taken, a multiple of the block
  /// size. Blocks are left over only if the next one may not fit into `out` (at least one is taken if `out` is empty and has
  /// capacity_for(1)). Runs point into `blocks`, which must not change while they are used; the decoder itself keeps no
  /// reference to it.
  std::size_t decode(std::span<const std::byte> blocks, DecodeBuffer& out);

  /// Switches a link on or off. Blocks of an unwanted link are skipped and counted like those of unknown E-links, and its
  /// open chunk is dropped. A link that is wanted again begins with the next begin of a chunk. Call it between two decode().
  void want(LinkIndex link, bool wanted);

  /// Ends the stream: open chunks are completed, marked software-truncated. `out` needs capacity_for(0).
  void finish(DecodeBuffer& out);

  const BlockCounters& counters() const { return counters_; }
  const Options& options() const { return options_; }

 private:
  struct Link;
  struct Batch;
  struct Wholes;
  template <typename Trailer>
  struct FromEnd;

  /// A trailer found by decode_any(), with the begin of its data.
  struct Piece {
    std::uint32_t trailer;
    std::uint32_t begin;
  };

  template <typename Trailer>
  std::size_t decode_blocks(std::span<const std::byte> blocks, DecodeBuffer& out);
  template <typename Trailer>
  bool decode_equal_wholes(FromEnd<Trailer>& block, Wholes& wholes) const;
  template <typename Trailer>
  bool decode_unequal_wholes(FromEnd<Trailer>& block, ChunkEntry* entries_end, Wholes& wholes) const;
  template <typename Trailer>
  bool append_head(FromEnd<Trailer>& block, bool alone, Link& link, Batch& batch);
  template <typename Trailer>
  bool decode_regular(const std::byte* begin, Link& link, Batch& batch);
  template <typename Trailer>
  void decode_any(const std::byte* block, Link& link, Batch& batch);
  template <typename Trailer>
  std::size_t add_wholes(const std::byte* block, std::span<const Piece> pieces, std::uint8_t extra_status, const Link& link,
                         Batch& batch);

  void check_sequence(Link& link, std::uint32_t sequence, Batch& batch);
  void append(Link& link, const std::byte* data, std::uint32_t size);
  void close(Link& link, std::uint8_t status, Batch& batch);
  void park(Link& link);
  void park_all();
  void note_parts(const Link& link);
  void count_flags(std::uint8_t status, std::uint64_t chunks);
  LinkIndex index_of(const Link& link) const;

  static constexpr LinkIndex kUnmapped = 0xffff;

  Options options_;
  std::size_t link_count_;
  std::size_t parked_stride_;
  DecodeBuffer::Capacity block_room_;
  std::vector<std::uint16_t> elinks_;  // E-link number of each link
  std::array<LinkIndex, 2048> index_of_elink_;
  std::size_t unwanted_ = 0;  // number of unwanted links
  std::unique_ptr<Link[]> links_;
  std::unique_ptr<std::byte[]> parked_;
  std::vector<LinkIndex> to_park_;
  std::vector<JoinedParts> open_parts_;  // pieces of each link's open chunk, if the options ask for them
  std::vector<Piece> pieces_;            // pieces of the current block, in order, at the end of this memory
  BlockCounters counters_;
};

}  // namespace rodeo::formats
