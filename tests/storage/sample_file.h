// Small closed event files with provable payload, in memory, made with the same parts as the readout's writer.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/event_frame.h"
#include "formats/provable.h"
#include "formats/rod_data.h"
#include "formats/stream_tags.h"
#include "formats/words.h"
#include "storage/event_file_encoder.h"

namespace rodeo::test {

struct SampleSettings {
  std::uint32_t events = 3;
  std::uint32_t links = 3;
  std::uint32_t chunk_bytes = 14;
  std::uint64_t seed = 7;
  formats::ChecksumType event_checksum = formats::ChecksumType::adler32;
  formats::ChecksumType rob_checksum = formats::ChecksumType::none;
  bool compress = false;
  bool seal = true;
  std::uint32_t missing_in_event = 0;  ///< number of the event (from 1) whose last link is missing; 0: none
  std::uint32_t removed_in_event = 0;  ///< number of the event whose last link is removed; 0: none
  std::uint32_t source_id = 0x610001;
  std::uint32_t first_link = 0x540000;
  const char* stream = "Main";
  bool wrapped = false;  ///< the L1 ids of the file have wrapped without a reset counter, and the file reports this
};

inline constexpr std::time_t kSampleTime = 1795231845;

inline std::vector<std::byte> sample_event(const SampleSettings& settings, std::uint32_t number) {
  const formats::Provable provable(settings.seed);
  const L1Id l1id = L1Id::of(1, number);
  const bool is_missing = settings.missing_in_event == number;
  const bool incomplete = is_missing || settings.removed_in_event == number;
  std::vector<std::uint32_t> link_ids;
  for (std::uint32_t link = 0; link < settings.links; ++link) link_ids.push_back(settings.first_link + link);
  std::vector<std::uint32_t> absent(2 * ((settings.links + 31) / 32));
  std::vector<std::byte> data;
  for (std::uint32_t link = 0; link + (incomplete ? 1 : 0) < settings.links; ++link) {
    std::vector<std::byte> chunk(settings.chunk_bytes + link);
    provable.write(chunk, settings.first_link + link, l1id);
    formats::append_chunk_record(data, {.link_id = settings.first_link + link}, chunk);
  }
  FragmentPart part{data.data(), data.size()};
  Fragment fragment;
  fragment.l1id = settings.wrapped ? L1Id::of(0, number) : l1id;
  fragment.global_id = 0x1000000 + number;
  fragment.source_id = {settings.source_id};
  fragment.bcid = provable.trigger(l1id).bcid;
  fragment.trigger_type = provable.trigger(l1id).trigger_type;
  fragment.parts = &part;
  fragment.part_count = 1;
  if (incomplete) {
    fragment.status = is_missing ? fragment_status::kTimeout : fragment_status::kLinksRemoved;
    (is_missing ? fragment.missing : fragment.removed) = 1;
    fragment.link_ids = link_ids;
    fragment.missing_links = std::span(absent).first(absent.size() / 2);
    fragment.removed_links = std::span(absent).last(absent.size() / 2);
    const std::uint32_t last = settings.links - 1;
    (is_missing ? fragment.missing_links : fragment.removed_links)[last / 32] |= 1U << (last % 32);
  }
  const formats::EventFrame frame(
      {.run_number = 431493,
       .run_type = formats::run_type::kTest,
       .lumi_block = 1,
       .stream_tags = formats::encode_stream_tags(std::vector<formats::StreamTag>{{.name = settings.stream}}),
       .event_checksum = settings.event_checksum,
       .rob_checksum = settings.rob_checksum});
  const formats::EventStamp stamp{1795231845, number * 1000};
  formats::EventEnds ends;
  if (settings.compress) {
    formats::ZlibCompressor compressor(1);
    std::vector<std::byte> event;
    event.resize(frame.store_compressed(fragment, stamp, compressor, ends, event));
    return event;
  }
  frame.store(fragment, stamp, ends);
  std::vector<std::byte> event = ends.head;
  formats::append_bytes(event, data);
  formats::append_bytes(event, ends.tail);
  return event;
}

inline std::vector<std::byte> sample_file(const SampleSettings& settings = {}) {
  storage::EventFileSettings file_settings;
  file_settings.application = "test";
  file_settings.run.run_number = 431493;
  file_settings.provable = formats::ProvableMark{.seed = settings.seed};
  if (settings.wrapped)
    file_settings.free_strings.push_back(formats::IdsMark{formats::IdLayout{.bits = 24, .has_resets = false}}.text());
  storage::EventFileEncoder encoder(file_settings);
  const auto header = encoder.begin_file(kSampleTime, "01234567-89AB-4DEF-8123-456789ABCDEF");
  std::vector<std::byte> file(header.begin(), header.end());
  for (std::uint32_t number = 1; number <= settings.events; ++number) {
    const std::vector<std::byte> event = sample_event(settings, number);
    formats::append_bytes(file, encoder.separator(static_cast<std::uint32_t>(event.size())));
    formats::append_bytes(file, event);
  }
  formats::append_bytes(file, encoder.end_file(kSampleTime + 10, true));
  if (settings.seal) {
    formats::FileDigest digest;
    digest.update(file);
    const auto digits = formats::crc_digits(digest.crc32());
    std::memcpy(file.data() + encoder.crc_offset(), digits.data(), digits.size());
  }
  return file;
}

/// Writes the right CRC into a file that a test has changed.
inline void reseal(std::vector<std::byte>& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  std::byte* digits = file.data() + text.find("Rodeo-CRC32=") + 12;
  std::fill_n(digits, 8, std::byte{'0'});
  formats::FileDigest digest;
  digest.update(file);
  std::memcpy(digits, formats::crc_digits(digest.crc32()).data(), 8);
}

}  // namespace rodeo::test
