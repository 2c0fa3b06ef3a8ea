// A whole event as a filter node sends it to a recorder.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/encode_event.h"
#include "formats/event_record.h"
#include "formats/rod_data.h"
#include "formats/stream_tags.h"

namespace rodeo::test {

struct FarmEvent {
  std::uint64_t id = 1;
  std::uint32_t run_number = 7;
  std::uint32_t lumi_block = 1;
  std::vector<formats::RecordStream> streams = {{}};
  std::size_t data_bytes = 200;
  bool assigned_again = false;

  std::vector<std::byte> event() const {
    formats::FullEventHeader header;
    header.global_id = id;
    header.run_number = run_number;
    header.lumi_block = lumi_block;
    header.l1id = {static_cast<std::uint32_t>(id)};
    header.checksum_type = formats::ChecksumType::adler32;
    std::vector<formats::StreamTag> tags;
    for (const auto& stream : streams) tags.push_back({.name = stream.name, .type = stream.type});
    header.stream_tags = formats::encode_stream_tags(tags);
    const formats::RodHeader rod{.source_id = {0x510000}, .run_number = run_number, .l1id = header.l1id};
    std::vector<std::byte> data;
    formats::append_chunk_record(data, ChunkHeader{.link_id = 1},
                                 std::vector<std::byte>(data_bytes, static_cast<std::byte>(id)));
    return formats::encode_full_event(header,
                                      formats::encode_rob({.source_id = {0x510000}}, formats::encode_rod(rod, {}, data)));
  }

  /// A RECORD request.
  std::vector<std::byte> request() const {
    std::vector<std::byte> bytes;
    formats::append_record_head(bytes, {.global_id = id, .streams = streams, .assigned_again = assigned_again});
    formats::append_bytes(bytes, event());
    return bytes;
  }
};

}  // namespace rodeo::test
