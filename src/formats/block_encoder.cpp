#include "formats/block_encoder.h"

#include <algorithm>
#include <cassert>

namespace rodeo::formats {

std::uint32_t BlockEncoder::flags(std::uint8_t status) const {
  return format_.family == BlockFamily::trailer16 ? trailer_flags_of<Trailer16>(status)
                                                  : trailer_flags_of<Trailer32>(status);
}

void BlockEncoder::put(TrailerType type, std::uint32_t flags_and_length) {
  if (format_.family == BlockFamily::trailer16) {
    const auto word =
        static_cast<Trailer16::Word>(static_cast<std::uint32_t>(type) << Trailer16::kTypeShift | flags_and_length);
    std::memcpy(at_, &word, sizeof word);
  } else {
    const Trailer32::Word word = static_cast<std::uint32_t>(type) << Trailer32::kTypeShift | flags_and_length;
    std::memcpy(at_, &word, sizeof word);
  }
  at_ += format_.trailer_bytes();
}

/// Skips `bytes` written in place; writes zeros up to the next place for a trailer.
void BlockEncoder::pad(std::size_t bytes) {
  at_ += bytes;
  const std::size_t padding = -bytes & (format_.trailer_bytes() - 1);
  if (padding > 0) std::memset(at_, 0, padding);
  at_ += padding;
}

void BlockEncoder::close_if_no_room_for_data() {
  if (room() == format_.trailer_bytes()) put(TrailerType::null, 0);
}

void BlockEncoder::begin(std::span<std::byte> block) {
  assert(full() && block.size() == format_.block_bytes);
  const BlockHeader header = BlockHeader::of(elink_, sequence_, format_.marker());
  sequence_ = (sequence_ + 1) & 0x1fU;
  std::memcpy(block.data(), &header.word, kBlockHeaderBytes);
  at_ = block.data() + kBlockHeaderBytes;
  end_ = block.data() + block.size();
}

bool BlockEncoder::push(std::span<const std::byte>& rest, std::uint8_t status) {
  if (full()) return false;
  // Room is a multiple of the trailer size, so a part that fits needs no padding unless it ends the chunk.
  const std::size_t taken = std::min(room_for_part(), rest.size());
  const bool complete = taken == rest.size();
  if (taken > 0) std::memcpy(at_, rest.data(), taken);
  rest = rest.subspan(taken);
  wrote_part(taken, complete, status);
  return complete;
}

void BlockEncoder::wrote_part(std::size_t bytes, bool complete, std::uint8_t status) {
  assert(!full() && (complete ? bytes <= room_for_part() : bytes == room_for_part()));
  pad(bytes);
  const TrailerType type =
      in_chunk_ ? (complete ? TrailerType::last : TrailerType::middle) : (complete ? TrailerType::both : TrailerType::first);
  put(type, static_cast<std::uint32_t>(bytes) | (complete ? flags(status) : 0));
  in_chunk_ = !complete;
  if (complete) close_if_no_room_for_data();
}

void BlockEncoder::timeout() {
  assert(!full());
  const std::size_t filler = room() - format_.trailer_bytes();
  std::memset(at_, 0, filler);
  at_ += filler;
  put(TrailerType::timeout, static_cast<std::uint32_t>(filler));
}

void BlockEncoder::give_up(std::span<const std::byte> last_bytes) {
  assert(!full());
  const std::size_t taken = std::min(room() - format_.trailer_bytes(), last_bytes.size());
  if (taken > 0) std::memcpy(at_, last_bytes.data(), taken);
  pad(taken);
  put(TrailerType::timeout, static_cast<std::uint32_t>(taken) | flags(chunk_status::kFirmwareTruncated));
  in_chunk_ = false;
  close_if_no_room_for_data();
}

void BlockEncoder::null_fill() {
  while (!full()) put(TrailerType::null, 0);
}

void BlockEncoder::out_of_band() {
  assert(!full());
  put(TrailerType::out_of_band, 0);
  close_if_no_room_for_data();
}

}  // namespace rodeo::formats
