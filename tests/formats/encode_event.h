// Simple encoders of events: the slow twin of EventFrame, and forms that decoders must read but Rodeo never writes.
#pragma once

#include <vector>

#include "formats/checksum.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "formats/rod.h"
#include "formats/words.h"
#include "formats/zlib_stream.h"

namespace rodeo::formats {

/// Makes a ROD; `data` is padded with zeros to a word.
inline std::vector<std::byte> encode_rod(const RodHeader& header, std::span<const std::uint32_t> status,
                                         std::span<const std::byte> data,
                                         StatusPosition position = StatusPosition::before_data) {
  std::vector<std::byte> out;
  out.reserve(((kRodHeaderWords + kRodTrailerWords) + status.size()) * kWordBytes + padded_to_word(data.size()));
  out.resize(kRodHeaderWords * kWordBytes);
  store_rod_header(out.data(), header);
  const auto append_status = [&] { append_bytes(out, std::as_bytes(status)); };
  if (position == StatusPosition::before_data) append_status();
  append_bytes(out, data);
  out.resize(padded_to_word(out.size()));
  if (position == StatusPosition::after_data) append_status();
  out.resize(out.size() + kRodTrailerWords * kWordBytes);
  store_rod_trailer(out.data() + out.size() - kRodTrailerWords * kWordBytes, status.size(),
                    padded_to_word(data.size()) / kWordBytes, position);
  return out;
}

struct RobHeader {
  SourceId source_id = {};
  std::vector<std::uint32_t> status = {0};
  ChecksumType checksum_type = ChecksumType::none;
};

/// Makes a ROB around a ROD. CRC16-CCITT is not supported, because its bit order is not public.
inline std::vector<std::byte> encode_rob(const RobHeader& header, std::span<const std::byte> rod) {
  const bool with_checksum = header.checksum_type == ChecksumType::adler32;
  const std::size_t header_words = kGenericHeaderWords + header.status.size();
  std::vector<std::byte> out;
  append_word(out, kRobMarker);
  append_word(out,
              static_cast<std::uint32_t>(header_words + padded_to_word(rod.size()) / kWordBytes + (with_checksum ? 1 : 0)));
  append_word(out, static_cast<std::uint32_t>(header_words));
  append_word(out, std::uint32_t{kEventVersion5} << 16);
  append_word(out, header.source_id.value);
  append_word(out, static_cast<std::uint32_t>(header.status.size()));
  append_bytes(out, std::as_bytes(std::span(header.status)));
  append_word(out, static_cast<std::uint32_t>(with_checksum ? ChecksumType::adler32 : ChecksumType::none));
  append_bytes(out, rod);
  out.resize(padded_to_word(out.size()));
  if (with_checksum) append_word(out, adler32(std::span(out).subspan(header_words * kWordBytes)));
  return out;
}

/// The input of encode_full_event(): fields, and variable parts, which it owns.
struct FullEventHeader : EventFields {
  std::vector<std::uint32_t> status = {0};
  std::vector<std::uint32_t> l1_info;
  std::vector<std::uint32_t> l2_info;
  std::vector<std::uint32_t> hlt_info;
  std::vector<std::uint32_t> stream_tags;  ///< packed, see stream_tags.h
  int compression_level = 1;
};

/// Makes a v5 event around ROBs, with the compression and checksum that the header states.
inline std::vector<std::byte> encode_full_event(const FullEventHeader& header, std::span<const std::byte> robs) {
  std::vector<std::byte> stored(robs.begin(), robs.end());
  stored.resize(padded_to_word(stored.size()));
  const std::size_t uncompressed_words = stored.size() / kWordBytes;
  if (header.compression == Compression::zlib) {
    stored = zlib_compress(stored, header.compression_level);
    stored.resize(padded_to_word(stored.size()));
  }
  const bool with_checksum = header.checksum_type == ChecksumType::adler32;
  const std::size_t header_words = kGenericHeaderWords + kEventSpecificWords5 + header.status.size() +
                                   header.l1_info.size() + header.l2_info.size() + header.hlt_info.size() +
                                   header.stream_tags.size();
  std::vector<std::byte> out;
  out.reserve(header_words * kWordBytes + stored.size() + kWordBytes);
  const auto put = [&](std::size_t value) { append_word(out, static_cast<std::uint32_t>(value)); };
  const auto put_list = [&](const std::vector<std::uint32_t>& words) {
    put(words.size());
    append_bytes(out, std::as_bytes(std::span(words)));
  };
  put(kFullEventMarker);
  put(header_words + stored.size() / kWordBytes + (with_checksum ? 1 : 0));
  put(header_words);
  put(std::size_t{kEventVersion5} << 16);
  put(header.source_id.value);
  put_list(header.status);
  put(static_cast<std::size_t>(with_checksum ? ChecksumType::adler32 : ChecksumType::none));
  put(header.bc_time_s);
  put(header.bc_time_ns);
  put(header.global_id & 0xffffffff);
  put(header.global_id >> 32);
  put(header.run_type);
  put(header.run_number);
  put(header.lumi_block);
  put(header.l1id.value);
  put(header.bcid);
  put(header.trigger_type);
  put(static_cast<std::size_t>(header.compression));
  put(uncompressed_words);
  put_list(header.l1_info);
  put_list(header.l2_info);
  put_list(header.hlt_info);
  put_list(header.stream_tags);
  append_bytes(out, stored);
  if (with_checksum) put(adler32(stored));
  return out;
}

}  // namespace rodeo::formats
