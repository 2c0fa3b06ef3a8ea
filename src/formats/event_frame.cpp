#include "formats/event_frame.h"

#include <cstring>

#include "formats/checksum.h"
#include "formats/rod.h"
#include "formats/words.h"

namespace rodeo::formats {
namespace {

// Word numbers in the header of an event with one status word.
enum HeaderWord : std::size_t {
  kEventSize = 1,
  kStatus = 6,
  kBcTimeSeconds = 8,
  kBcTimeNanoseconds = 9,
  kGlobalIdLow = 10,
  kGlobalIdHigh = 11,
  kL1Id = 15,
  kBcid = 16,
  kTriggerType = 17,
  kCompressionType = 18,
  kUncompressedWords = 19,
};

constexpr std::size_t kRobHeaderWords = kGenericHeaderWords + 1;

void append_at(std::byte*& at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(at, bytes.data(), bytes.size());
  at += bytes.size();
}

std::span<const std::byte> bytes_of(const FragmentPart& part) { return {part.data, part.size}; }

}  // namespace

// What stands around the data of one fragment inside the event's payload.
struct EventFrame::Robs {
  std::byte before[(kRobHeaderWords + kRodHeaderWords + kMaxRodStatusWords) * kWordBytes];
  std::byte after[kMaxTailBytes];
  std::size_t before_bytes = 0;
  std::size_t after_bytes = 0;
  std::uint32_t adler = kAdler32Start;  ///< of all of it with the data in between; only if a checksum was asked for

  std::span<const std::byte> before_data() const { return {before, before_bytes}; }
  std::span<const std::byte> after_data() const { return {after, after_bytes}; }
};

EventFrame::EventFrame(EventFrameSettings settings) : settings_(std::move(settings)) {
  header_ = {kFullEventMarker,
             0,
             0,
             std::uint32_t{kEventVersion5} << 16,
             settings_.source_id.value,
             1,
             0,
             static_cast<std::uint32_t>(settings_.event_checksum),
             0,
             0,
             0,
             0,
             settings_.run_type,
             settings_.run_number,
             settings_.lumi_block,
             0,
             0,
             0,
             0,
             0,
             0,
             0,
             0,
             static_cast<std::uint32_t>(settings_.stream_tags.size())};
  header_.insert(header_.end(), settings_.stream_tags.begin(), settings_.stream_tags.end());
  header_[2] = static_cast<std::uint32_t>(header_.size());
  max_head_bytes_ = header_.size() * kWordBytes + sizeof Robs::before;
}

EventFrame::Robs EventFrame::make_robs(const Fragment& fragment, std::size_t data_bytes) const {
  std::uint32_t status[kMaxRodStatusWords] = {fragment.status};
  std::size_t status_words = 1;
  if (fragment.missing > 0) {
    status[1] = fragment.missing;
    std::memcpy(status + 2, fragment.missing_links, fragment.missing_listed * kWordBytes);
    status_words = 2 + fragment.missing_listed;
  }
  const bool rob_checksum = settings_.rob_checksum == ChecksumType::adler32;
  const std::size_t rod_words = kRodHeaderWords + status_words + data_bytes / kWordBytes + kRodTrailerWords;
  const std::uint32_t rob_header[kRobHeaderWords] = {
      kRobMarker,
      static_cast<std::uint32_t>(kRobHeaderWords + rod_words + (rob_checksum ? 1 : 0)),
      kRobHeaderWords,
      std::uint32_t{kEventVersion5} << 16,
      fragment.source_id.value,
      1,
      fragment.status,
      static_cast<std::uint32_t>(settings_.rob_checksum)};

  Robs robs;
  std::byte* at = robs.before;
  const auto status_bytes = std::as_bytes(std::span(status, status_words));
  append_at(at, std::as_bytes(std::span(rob_header)));
  store_rod_header(at, {.minor_version = settings_.rod_minor_version,
                        .source_id = fragment.source_id,
                        .run_number = settings_.run_number,
                        .l1id = fragment.l1id,
                        .bcid = fragment.bcid,
                        .trigger_type = fragment.trigger_type,
                        .detector_event_type = settings_.detector_event_type});
  at += kRodHeaderWords * kWordBytes;
  if (settings_.status_position == StatusPosition::before_data) append_at(at, status_bytes);
  robs.before_bytes = static_cast<std::size_t>(at - robs.before);

  at = robs.after;
  if (settings_.status_position == StatusPosition::after_data) append_at(at, status_bytes);
  store_rod_trailer(at, status_words, data_bytes / kWordBytes, settings_.status_position);
  at += kRodTrailerWords * kWordBytes;
  robs.after_bytes = static_cast<std::size_t>(at - robs.after);

  if (!rob_checksum && settings_.event_checksum != ChecksumType::adler32) return robs;
  const auto header_bytes = std::as_bytes(std::span(rob_header));
  std::uint32_t rod_adler = adler32(robs.before_data().subspan(header_bytes.size()));
  for (const FragmentPart& part : fragment.all_parts()) rod_adler = adler32(bytes_of(part), rod_adler);
  rod_adler = adler32(robs.after_data(), rod_adler);
  robs.adler = adler32_of_both(adler32(header_bytes), rod_adler, rod_words * kWordBytes);
  if (rob_checksum) {
    store_word(at, rod_adler);
    robs.adler = adler32({at, kWordBytes}, robs.adler);
    robs.after_bytes += kWordBytes;
  }
  return robs;
}

void EventFrame::store_event_header(const Fragment& fragment, const EventStamp& stamp, std::size_t stored_words,
                                    std::size_t uncompressed_words, Compression compression, std::byte* at) const {
  const auto set = [&](std::size_t word, std::uint64_t value) {
    store_word(at + word * kWordBytes, static_cast<std::uint32_t>(value));
  };
  std::memcpy(at, header_.data(), header_.size() * kWordBytes);
  const std::size_t checksum_words = settings_.event_checksum == ChecksumType::adler32 ? 1 : 0;
  set(kEventSize, header_.size() + stored_words + checksum_words);
  set(kStatus, fragment.status & 0xffff);
  set(kBcTimeSeconds, stamp.bc_time_s);
  set(kBcTimeNanoseconds, stamp.bc_time_ns);
  set(kGlobalIdLow, stamp.global_id & 0xffffffff);
  set(kGlobalIdHigh, stamp.global_id >> 32);
  set(kL1Id, fragment.l1id.value);
  set(kBcid, fragment.bcid);
  set(kTriggerType, fragment.trigger_type);
  set(kCompressionType, static_cast<std::uint32_t>(compression));
  set(kUncompressedWords, uncompressed_words);
}

EventFrame::Sizes EventFrame::store(const Fragment& fragment, const EventStamp& stamp, std::byte* head,
                                    std::byte* tail) const {
  const std::size_t data_bytes = fragment.payload_bytes();
  const Robs robs = make_robs(fragment, data_bytes);
  const std::size_t payload_words = (robs.before_bytes + data_bytes + robs.after_bytes) / kWordBytes;
  store_event_header(fragment, stamp, payload_words, payload_words, Compression::none, head);
  const std::size_t header_bytes = header_.size() * kWordBytes;
  std::memcpy(head + header_bytes, robs.before, robs.before_bytes);
  std::memcpy(tail, robs.after, robs.after_bytes);
  Sizes sizes{.head_bytes = header_bytes + robs.before_bytes, .tail_bytes = robs.after_bytes};
  if (settings_.event_checksum == ChecksumType::adler32) {
    store_word(tail + sizes.tail_bytes, robs.adler);
    sizes.tail_bytes += kWordBytes;
  }
  sizes.event_bytes = sizes.head_bytes + data_bytes + sizes.tail_bytes;
  return sizes;
}

std::size_t EventFrame::max_compressed_bytes(std::size_t rod_data_bytes, const ZlibCompressor& compressor) const {
  return header_.size() * kWordBytes +
         padded_to_word(compressor.bound(sizeof Robs::before + rod_data_bytes + kMaxTailBytes)) + kWordBytes;
}

std::size_t EventFrame::store_compressed(const Fragment& fragment, const EventStamp& stamp, ZlibCompressor& compressor,
                                         std::span<std::byte> out) const {
  const std::size_t data_bytes = fragment.payload_bytes();
  const Robs robs = make_robs(fragment, data_bytes);
  const std::size_t header_bytes = header_.size() * kWordBytes;
  compressor.start(out.subspan(header_bytes));
  compressor.add(robs.before_data());
  for (const FragmentPart& part : fragment.all_parts()) compressor.add(bytes_of(part));
  compressor.add(robs.after_data());
  const std::size_t stream_bytes = compressor.finish();
  const std::size_t stored_bytes = padded_to_word(stream_bytes);
  std::memset(out.data() + header_bytes + stream_bytes, 0, stored_bytes - stream_bytes);
  store_event_header(fragment, stamp, stored_bytes / kWordBytes,
                     (robs.before_bytes + data_bytes + robs.after_bytes) / kWordBytes, Compression::zlib, out.data());
  std::size_t event_bytes = header_bytes + stored_bytes;
  if (settings_.event_checksum == ChecksumType::adler32) {
    store_word(out.data() + event_bytes, adler32(out.subspan(header_bytes, stored_bytes)));
    event_bytes += kWordBytes;
  }
  return event_bytes;
}

}  // namespace rodeo::formats
