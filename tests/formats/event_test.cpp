// ROD, ROB and full event: the decoders against a slow twin, with random events and random damage.
#include <gtest/gtest.h>

#include <zlib.h>

#include <optional>

#include "formats/checksum.h"
#include "formats/full_event.h"
#include "formats/random_event.h"
#include "formats/rob.h"
#include "formats/rod.h"
#include "formats/rod_data.h"
#include "formats/slow_event.h"
#include "formats/stream_tags.h"
#include "rodeo/fragment.h"

namespace {

using namespace rodeo;
using namespace rodeo::formats;
using rodeo::test::RandomEvents;
namespace slow = rodeo::slow;

template <typename Decode>
auto slowly(Decode decode, std::span<const std::byte> bytes) -> std::optional<decltype(decode(slow::Words{}))> {
  try {
    return decode(slow::words_of(bytes));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void expect_same_chunks(WordView data, bool dense) {
  const auto expected = slowly(slow::chunks, data.bytes());
  std::vector<slow::Chunk> chunks;
  const Decoded<void> all = for_each_chunk_record(data.bytes(), [&](const ChunkRecord& record) {
    const std::uint32_t word0 = std::uint32_t{record.header.rodeo_status} << 24 |
                                std::uint32_t{record.header.felix_status} << 16 | record.header.size;
    chunks.push_back({word0, record.header.link_id, {record.bytes.begin(), record.bytes.end()}});
  });
  ASSERT_EQ(all.has_value(), expected.has_value());
  if (expected) {
    EXPECT_EQ(chunks, *expected);
  }
  EXPECT_TRUE(expected.has_value() || !dense);
}

void expect_same_rod(std::span<const std::byte> bytes) {
  const auto expected = slowly(slow::rod, bytes);
  const Decoded<RodView> rod = decode_rod(bytes);
  ASSERT_EQ(rod.has_value(), expected.has_value());
  if (!rod) return;
  EXPECT_EQ(rod->header.minor_version, expected->header[2] & 0xffff);
  EXPECT_EQ(rod->header.source_id.value, expected->header[3]);
  EXPECT_EQ(rod->header.run_number, expected->header[4]);
  EXPECT_EQ(rod->header.l1id.value, expected->header[5]);
  EXPECT_EQ(rod->header.bcid, expected->header[6]);
  EXPECT_EQ(rod->header.trigger_type, expected->header[7]);
  EXPECT_EQ(rod->header.detector_event_type, expected->header[8]);
  EXPECT_EQ(rod->status.to_vector(), expected->status);
  EXPECT_EQ(rod->data.to_vector(), expected->data);
  EXPECT_EQ(static_cast<std::uint32_t>(rod->status_position), expected->position);
  expect_same_chunks(rod->data, false);
}

void expect_same_robs(WordView payload) {
  for (std::size_t at = 0; at < payload.size();) {
    const WordView rest = payload.sub(at, payload.size() - at);
    const auto expected = slowly(slow::rob, rest.bytes());
    const Decoded<RobView> rob = decode_rob(rest.bytes());
    ASSERT_EQ(rob.has_value(), expected.has_value());
    if (!rob) return;
    EXPECT_EQ(rob->version, expected->header[3]);
    EXPECT_EQ(rob->source_id.value, expected->header[4]);
    EXPECT_EQ(rob->status.to_vector(), expected->status);
    EXPECT_EQ(static_cast<std::uint32_t>(rob->checksum_type), expected->checksum_type);
    EXPECT_EQ(rob->checksum, expected->checksum);
    EXPECT_EQ(rob->payload.to_vector(), expected->payload);
    EXPECT_EQ(rob->checksum_holds(), expected->checksum_type != 2 || slow::adler32(expected->payload) == expected->checksum);
    expect_same_rod(rob->payload.bytes());
    at += rob->words.size();
  }
}

void expect_same_event(std::span<const std::byte> bytes) {
  const auto expected = slowly(slow::event, bytes);
  const Decoded<FullEventView> event = decode_full_event(bytes);
  ASSERT_EQ(event.has_value(), expected.has_value()) << (event ? "" : event.error().message());
  if (!event) return;
  slow::Words specific = {event->bc_time_s, event->bc_time_ns, static_cast<std::uint32_t>(event->global_id)};
  if (event->version >> 16 == kEventVersion5) specific.push_back(static_cast<std::uint32_t>(event->global_id >> 32));
  for (const std::uint32_t word :
       {event->run_type, event->run_number, event->lumi_block, event->l1id.value, event->bcid, event->trigger_type}) {
    specific.push_back(word);
  }
  if (event->version >> 16 == kEventVersion5) {
    specific.push_back(static_cast<std::uint32_t>(event->compression));
    specific.push_back(expected->specific[11]);
  }
  EXPECT_EQ(specific, expected->specific);
  EXPECT_EQ(event->source_id.value, expected->generic[4]);
  EXPECT_EQ(event->status.to_vector(), expected->status);
  EXPECT_EQ(event->l1_info.to_vector(), expected->lists[0]);
  EXPECT_EQ(event->l2_info.to_vector(), expected->lists[1]);
  EXPECT_EQ(event->hlt_info.to_vector(), expected->lists[2]);
  EXPECT_EQ(event->stream_tags.to_vector(), expected->lists[3]);
  EXPECT_EQ(event->payload.to_vector(), expected->payload);
  EXPECT_EQ(event->checksum, expected->checksum);
  EXPECT_EQ(event->checksum_holds(), expected->checksum_type != 2 || slow::adler32(expected->payload) == expected->checksum);
  std::vector<std::byte> buffer;
  if (const Decoded<WordView> robs = event->robs(buffer)) expect_same_robs(*robs);
}

TEST(FullEvent, RandomEventsDecodeAsTheSlowTwinSays) {
  RandomEvents random(1);
  for (int i = 0; i < 300; ++i) {
    const std::vector<std::byte> event = random.event();
    ASSERT_TRUE(decode_full_event(event).has_value());
    expect_same_event(event);
    if (HasFailure()) FAIL() << "event " << i;
  }
}

TEST(FullEvent, DamagedEventsAreJudgedAsTheSlowTwinSays) {
  RandomEvents random(2);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> event = random.event();
    const std::size_t reach = random.below(2) == 0 ? event.size() : std::min<std::size_t>(event.size(), 160);
    for (std::uint32_t flips = 1 + random.below(3); flips > 0; --flips) {
      event[random.below(static_cast<std::uint32_t>(reach))] ^= std::byte{1} << random.below(8);
    }
    if (random.below(4) == 0) event.resize(random.below(static_cast<std::uint32_t>(event.size()) + 1));
    expect_same_event(event);
    if (HasFailure()) FAIL() << "event " << i;
  }
}

TEST(FullEvent, AVersion4EventHasNoCompressionAndA32BitGlobalId) {
  const std::vector<std::byte> robs = encode_rob({.source_id = {0x610001}}, encode_rod({.l1id = {7}}, {}, {}));
  slow::Words words = {0xaa1234aa, 0,      21,  0x04000000, 0x007c0000, 1,   0, 0, 1000, 5, 99,
                       0,          431493, 525, 0x01000007, 12,         130, 0, 0, 0,    0};
  words[1] = static_cast<std::uint32_t>(words.size() + robs.size() / 4);
  std::vector<std::byte> bytes;
  append_bytes(bytes, std::as_bytes(std::span(words)));
  append_bytes(bytes, robs);
  const Decoded<FullEventView> event = decode_full_event(bytes);
  ASSERT_TRUE(event.has_value()) << event.error().message();
  EXPECT_EQ(event->global_id, 99u);
  EXPECT_EQ(event->run_number, 431493u);
  EXPECT_EQ(event->lumi_block, 525u);
  EXPECT_EQ(event->l1id.ecr(), 1u);
  EXPECT_EQ(event->trigger_type, 130u);
  expect_same_event(bytes);
}

TEST(FullEvent, EveryCutIsAnError) {
  RandomEvents random(3);
  const std::vector<std::byte> event = random.event();
  for (std::size_t size = 0; size < event.size(); ++size) {
    EXPECT_FALSE(decode_full_event(std::span(event).first(size)).has_value()) << size;
  }
}

TEST(FullEvent, AnErrorNamesOffsetFieldAndBothValues) {
  RandomEvents random(4);
  std::vector<std::byte> rod = encode_rod(random.rod_header(), {}, {});
  store_word(rod.data() + 4, 8);
  const std::vector<std::byte> rob = encode_rob({}, rod);
  const Decoded<RodView> decoded = decode_rob(rob)->rod();
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().message(), "byte 36: ROD header size is 0x8, not 0x9");
}

TEST(FullEvent, ACompressedPayloadThatClaimsTooMuchTakesNoMemory) {
  FullEventHeader header;
  header.compression = Compression::zlib;
  std::vector<std::byte> event = encode_full_event(header, {});
  store_word(event.data() + 19 * 4, 0xffffffff);
  std::vector<std::byte> buffer;
  const Decoded<WordView> robs = decode_full_event(event)->robs(buffer);
  ASSERT_FALSE(robs.has_value());
  EXPECT_EQ(robs.error().fault, DecodeFault::too_large);
  EXPECT_LT(buffer.capacity(), 1u << 20);
}

TEST(RodData, ChunksOfEverySizeComeBack) {
  RandomEvents random(5);
  for (const std::size_t size : {0u, 1u, 3u, 4u, 5u, 40u, 65526u, 65527u, 65528u, 70001u}) {
    std::vector<std::byte> data;
    const std::vector<std::byte> chunk = random.bytes(size);
    append_chunk_record(data, {.felix_status = 3, .rodeo_status = 4, .link_id = 77}, chunk);
    EXPECT_EQ(load_word(data.data()) & 0xffff, size + 8 < 0xffff ? size + 8 : 0xffff);
    EXPECT_EQ(data.size(), chunk_record_bytes(size));
    expect_same_chunks(WordView(data), true);
  }
}

// Three ways to read a record: in one piece, with errors, and across the parts of a fragment, with cuts at any place.
TEST(RodData, EveryWalkFindsTheSameRecordsAndStopsWhereOneIsCut) {
  RandomEvents random(15);
  for (const std::size_t size : {0u, 1u, 4u, 7u, 40u, 65526u, 65527u, 65530u}) {
    std::vector<std::byte> data;
    append_chunk_record(data, {.link_id = 76}, random.bytes(9));
    const std::size_t second = data.size();
    append_chunk_record(data, {.rodeo_status = 1, .link_id = 77}, random.bytes(size));
    const auto links_of = [](std::span<const std::byte> bytes) {
      std::vector<std::uint32_t> links;
      const std::size_t end = for_each_whole_chunk(bytes, [&](const ChunkHeader& header, auto record, auto chunk) {
        EXPECT_EQ(record.size(), chunk_record_bytes(chunk.size()));
        links.push_back(header.link_id);
      });
      EXPECT_EQ(for_each_chunk_record(bytes, [](const ChunkRecord&) {}).has_value(), end == bytes.size());
      return links;
    };
    EXPECT_EQ(links_of(data), (std::vector<std::uint32_t>{76, 77})) << size;
    for (const std::size_t end : {second + 1, second + 7, second + 8, second + 11, data.size() - 1}) {
      if (end < data.size() && end < second + chunk_record_bytes(size)) {
        EXPECT_EQ(links_of(std::span(data).first(end)), std::vector<std::uint32_t>{76}) << size << " to " << end;
      }
    }
    std::byte* const at = data.data() + second;
    const std::size_t header = chunk_header_bytes(size);
    FragmentPart parts[] = {
        {data.data(), second}, {at, header}, {at + header, size}, {at + header + size, chunk_padding_bytes(size)}};
    Fragment fragment;
    fragment.parts = parts;
    fragment.part_count = 4;
    std::vector<std::size_t> sizes;
    EXPECT_TRUE(fragment.for_each_chunk([&](const ChunkHeader&, auto bytes) { sizes.push_back(bytes.size()); }));
    EXPECT_EQ(sizes, (std::vector<std::size_t>{9, size}));
    --parts[1].size;
    EXPECT_FALSE(fragment.for_each_chunk([](const ChunkHeader&, auto) {})) << size;
  }
}

TEST(RodData, DamagedDataAreJudgedAsTheSlowTwinSays) {
  RandomEvents random(6);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> data = random.rod_data();
    if (data.empty()) continue;
    data[random.below(static_cast<std::uint32_t>(data.size()))] ^= std::byte{1} << random.below(8);
    data.resize(random.below(static_cast<std::uint32_t>(data.size() / 4 + 1)) * 4);
    expect_same_chunks(WordView(data), false);
  }
}

TEST(StreamTags, PackIntoWordsAndComeBack) {
  const std::vector<StreamTag> tags = {{.name = "Main", .type = "physics", .obeys_lumi_block = true},
                                       {.name = "TileLaser",
                                        .type = "calibration",
                                        .obeys_lumi_block = false,
                                        .robs = {0x510001, 0x520002},
                                        .dets = {0x51, 0x52}}};
  const std::vector<std::uint32_t> words = encode_stream_tags(tags);
  const std::string text = stream_tag_text(WordView(std::as_bytes(std::span(words))));
  EXPECT_EQ(text,
            "<Tag name=\"Main\" type=\"physics\" lumi=\"1\"/>"
            "<Tag name=\"TileLaser\" type=\"calibration\" lumi=\"0\">"
            "<robs>0x510001,0x520002</robs><dets>0x51,0x52</dets></Tag>");
  EXPECT_EQ(decode_stream_tags(text), tags);
}

TEST(StreamTags, WhatIsSpeltOtherwiseIsPassedOver) {
  EXPECT_TRUE(decode_stream_tags("").empty());
  EXPECT_TRUE(decode_stream_tags("<Tag name=\"Main\"").empty());
  EXPECT_TRUE(decode_stream_tags("<Tag name=\"Main type=physics").empty());
  const auto tags = decode_stream_tags(
      "xx<Tag type=\"debug\" name=\"A\"><robs>0x1,0x,7</robs></Tag><Tag name=\"B\" type=\"express\" lumi=\"0\"/>");
  ASSERT_EQ(tags.size(), 2U);
  EXPECT_EQ(tags[0], (StreamTag{.name = "A", .type = "debug", .robs = {1}}));
  EXPECT_EQ(tags[1], (StreamTag{.name = "B", .type = "express", .obeys_lumi_block = false}));
}

TEST(Checksums, AreThoseOfZlibAtEveryLengthAndInPieces) {
  RandomEvents random(8);
  const std::vector<std::byte> bytes = random.bytes(5000);
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 7) {
    const auto all = std::span(bytes).first(size);
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    EXPECT_EQ(adler32(all), ::adler32_z(1, data, size));
    EXPECT_EQ(rodeo::formats::crc32(all), ::crc32_z(0, data, size));
    const auto a = all.first(size / 3);
    const auto b = all.subspan(size / 3);
    EXPECT_EQ(adler32(b, adler32(a)), adler32(all));
    EXPECT_EQ(adler32_of_both(adler32(a), adler32(b), b.size()), adler32(all));
    EXPECT_EQ(rodeo::formats::crc32(b, rodeo::formats::crc32(a)), rodeo::formats::crc32(all));
  }
}

}  // namespace
