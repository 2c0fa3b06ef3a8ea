// Puts the chunks of one E-link into FELIX blocks, as a card's firmware does (docs/reference/formats/felix-blocks.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/block.h"

namespace rodeo::formats {

/// The encoder of one E-link. It writes into memory that the caller provides block by block; never allocates.
///
///     encoder.begin(memory);                       // block_bytes of it
///     while (!encoder.push(rest)) encoder.begin(next_memory());
///
/// When full() is true, the block is complete and the caller owns its memory again.
class BlockEncoder {
 public:
  /// Requires format.valid() and elink < 2048.
  BlockEncoder(BlockFormat format, std::uint16_t elink, std::uint32_t first_sequence = 0)
      : format_(format), elink_(elink), sequence_(first_sequence & 0x1fU) {}

  std::uint16_t elink() const { return elink_; }

  /// True if nothing more fits: the block is complete, or none was begun.
  bool full() const { return at_ == end_; }

  /// True after push() returned false: the rest of a chunk must follow.
  bool in_chunk() const { return in_chunk_; }

  /// Free bytes in the block, trailers included.
  std::size_t room() const { return static_cast<std::size_t>(end_ - at_); }

  /// Begins a block in `block`, which MUST have the format's size and exist until full(). Requires full().
  void begin(std::span<std::byte> block);

  /// Appends as much of `rest` as fits and removes it from `rest`. True: the chunk is complete. False: the block is full;
  /// begin() the next one and push the rest. `status` (chunk_status bits that firmware can set) goes into the chunk's
  /// last trailer.
  bool push(std::span<const std::byte>& rest, std::uint8_t status = chunk_status::kOk);

  /// push() for a chunk that is written in place, part by part: write at most room_for_part() bytes of it at position(),
  /// then call wrote_part(). A part that is not the chunk's last MUST fill that room. Requires !full().
  std::size_t room_for_part() const { return room() - format_.trailer_bytes(); }
  void wrote_part(std::size_t bytes, bool complete, std::uint8_t status = chunk_status::kOk);

  /// Number of whole chunks of `bytes` that fit; the caller appends padding and trailer_of_whole() to each. After writing
  /// them in place, call wrote_wholes(). Requires !in_chunk().
  std::size_t wholes_that_fit(std::size_t bytes) const { return full() ? 0 : room() / whole_stride(bytes); }
  std::byte* position() const { return at_; }
  /// Distance in bytes from one whole chunk to the next.
  std::size_t whole_stride(std::size_t bytes) const {
    return ((bytes + format_.trailer_bytes() - 1) & ~std::size_t{format_.trailer_bytes() - 1}) + format_.trailer_bytes();
  }
  /// The trailer of an undamaged whole chunk; it has format().trailer_bytes().
  std::uint32_t trailer_of_whole(std::size_t bytes) const {
    return static_cast<std::uint32_t>(TrailerType::both) << (format_.family == BlockFamily::trailer16 ? 13 : 29) |
           static_cast<std::uint32_t>(bytes);
  }
  void wrote_wholes(std::size_t count, std::size_t bytes) {
    at_ += count * whole_stride(bytes);
    close_if_no_room_for_data();
  }
  const BlockFormat& format() const { return format_; }

  /// push() and begin() until the chunk is complete; `next` returns memory for a new block at each call.
  template <typename NextBlock>
  void append(std::span<const std::byte> chunk, std::uint8_t status, NextBlock&& next) {
    while (!push(chunk, status)) begin(next());
  }

  /// Fills the rest of the block with zeros and a timeout trailer, like a card without data. Requires !full().
  void timeout();

  /// Ends the open chunk with as many of `last_bytes` as fit, under a timeout trailer with the
  /// truncation flag. Requires !full(); in_chunk() is false afterwards.
  void give_up(std::span<const std::byte> last_bytes);

  /// Fills the rest of the block with null trailers. Requires !full().
  void null_fill();

  /// Writes one out-of-band trailer. Requires !full().
  void out_of_band();

 private:
  void put(TrailerType type, std::uint32_t flags_and_length);
  std::uint32_t flags(std::uint8_t status) const;
  void pad(std::size_t bytes);
  void close_if_no_room_for_data();

  BlockFormat format_;
  std::uint16_t elink_;
  std::uint32_t sequence_;
  bool in_chunk_ = false;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace rodeo::formats
