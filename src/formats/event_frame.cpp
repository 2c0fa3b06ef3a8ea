#include "formats/event_frame.h"

#include <cstring>

#include "formats/checksum.h"
#include "formats/rob_frame.h"
#include "formats/words.h"

namespace rodeo::formats {
namespace {

using namespace event_word;

std::span<const std::byte> bytes_of(const FragmentPart& part) { return {part.data, part.size}; }

}  // namespace

EventFrame::EventFrame(EventFrameSettings settings) : settings_(std::move(settings)) {
  header_.resize(kStreamTags + 1);
  header_[kMarker] = kFullEventMarker;
  header_[kHeaderSize] = static_cast<std::uint32_t>(header_.size() + settings_.stream_tags.size());
  header_[kVersion] = std::uint32_t{kEventVersion5} << 16;
  header_[kSourceId] = settings_.source_id.value;
  header_[kStatusWords] = 1;
  header_[kChecksumType] = static_cast<std::uint32_t>(settings_.event_checksum);
  header_[kRunType] = settings_.run_type;
  header_[kRunNumber] = settings_.run_number;
  header_[kLumiBlock] = settings_.lumi_block;
  header_[kStreamTags] = static_cast<std::uint32_t>(settings_.stream_tags.size());
  header_.insert(header_.end(), settings_.stream_tags.begin(), settings_.stream_tags.end());
}

std::size_t EventFrame::bytes_around(const Fragment& fragment) const {
  const std::size_t checksums = (settings_.rob_checksum == ChecksumType::adler32 ? 1 : 0) +
                                (settings_.event_checksum == ChecksumType::adler32 ? 1 : 0);
  return (header_.size() + kRobHeaderWords + rod_words(fragment, 0) + checksums) * kWordBytes;
}

// Fills the ends with ROB and ROD, leaving room for the event's header in front. Returns the Adler-32 over the ends and the
// data between them, if a checksum is configured.
std::uint32_t EventFrame::make_ends(const Fragment& fragment, std::size_t data_bytes, EventEnds& ends) const {
  const bool rob_checksum = settings_.rob_checksum == ChecksumType::adler32;
  const RobFrame rob{.run_number = settings_.run_number,
                     .checksum = rob_checksum ? ChecksumType::adler32 : ChecksumType::none,
                     .status_position = settings_.status_position,
                     .rod_minor_version = settings_.rod_minor_version,
                     .detector_event_type = settings_.detector_event_type};
  const std::size_t header_bytes = header_.size() * kWordBytes;
  constexpr std::size_t kRobHeaderBytes = kRobHeaderWords * kWordBytes;
  ends.head.resize(header_bytes);
  append_rob_head(ends.head, rob, fragment, fragment.l1id, data_bytes);
  ends.tail.clear();
  append_rob_tail(ends.tail, rob, fragment, data_bytes);

  if (!rob_checksum && settings_.event_checksum != ChecksumType::adler32) return kAdler32Start;
  std::uint32_t rod_adler = adler32(std::span(ends.head).subspan(header_bytes + kRobHeaderBytes));
  for (const FragmentPart& part : fragment.all_parts()) rod_adler = adler32(bytes_of(part), rod_adler);
  rod_adler = adler32(ends.tail, rod_adler);
  const std::uint32_t rob_adler = adler32(std::span(ends.head).subspan(header_bytes, kRobHeaderBytes));
  const std::uint32_t adler = adler32_of_both(rob_adler, rod_adler, rod_words(fragment, data_bytes) * kWordBytes);
  if (!rob_checksum) return adler;
  append_word(ends.tail, rod_adler);
  return adler32(std::span(ends.tail).last(kWordBytes), adler);
}

void EventFrame::store_event_header(const Fragment& fragment, const EventStamp& stamp, std::size_t stored_words,
                                    std::size_t uncompressed_words, Compression compression, std::byte* at) const {
  const auto set = [&](std::size_t word, std::uint64_t value) {
    store_word(at + word * kWordBytes, static_cast<std::uint32_t>(value));
  };
  std::memcpy(at, header_.data(), header_.size() * kWordBytes);
  const std::size_t checksum_words = settings_.event_checksum == ChecksumType::adler32 ? 1 : 0;
  set(kSize, header_.size() + stored_words + checksum_words);
  set(kStatus, fragment.status & 0xffff);
  set(kSeconds, stamp.bc_time_s);
  set(kNanoseconds, stamp.bc_time_ns);
  set(kGlobalIdLow, fragment.global_id & 0xffffffff);
  set(kGlobalIdHigh, fragment.global_id >> 32);
  set(kL1Id, fragment.l1id.value);
  set(kBcid, fragment.bcid);
  set(kTriggerType, fragment.trigger_type);
  set(kCompression, static_cast<std::uint32_t>(compression));
  set(kUncompressedWords, uncompressed_words);
}

void EventFrame::store(const Fragment& fragment, const EventStamp& stamp, EventEnds& ends) const {
  const std::size_t data_bytes = fragment.payload_bytes();
  const std::uint32_t adler = make_ends(fragment, data_bytes, ends);
  const std::size_t payload_words = (ends.head.size() + data_bytes + ends.tail.size()) / kWordBytes - header_.size();
  store_event_header(fragment, stamp, payload_words, payload_words, Compression::none, ends.head.data());
  if (settings_.event_checksum == ChecksumType::adler32) append_word(ends.tail, adler);
}

std::size_t EventFrame::store_compressed(const Fragment& fragment, const EventStamp& stamp, ZlibCompressor& compressor,
                                         EventEnds& ends, std::vector<std::byte>& out) const {
  const std::size_t data_bytes = fragment.payload_bytes();
  make_ends(fragment, data_bytes, ends);
  const std::size_t header_bytes = header_.size() * kWordBytes;
  const std::size_t payload_bytes = ends.head.size() - header_bytes + data_bytes + ends.tail.size();
  const std::size_t bound = header_bytes + padded_to_word(compressor.bound(payload_bytes)) + kWordBytes;
  if (out.size() < bound) out.resize(bound);
  compressor.start(std::span(out).subspan(header_bytes));
  compressor.add(std::span(ends.head).subspan(header_bytes));
  for (const FragmentPart& part : fragment.all_parts()) compressor.add(bytes_of(part));
  compressor.add(ends.tail);
  const std::size_t stream_bytes = compressor.finish();
  const std::size_t stored_bytes = padded_to_word(stream_bytes);
  std::memset(out.data() + header_bytes + stream_bytes, 0, stored_bytes - stream_bytes);
  store_event_header(fragment, stamp, stored_bytes / kWordBytes, payload_bytes / kWordBytes, Compression::zlib, out.data());
  std::size_t event_bytes = header_bytes + stored_bytes;
  if (settings_.event_checksum == ChecksumType::adler32) {
    store_word(out.data() + event_bytes, adler32(std::span(out).subspan(header_bytes, stored_bytes)));
    event_bytes += kWordBytes;
  }
  return event_bytes;
}

}  // namespace rodeo::formats
