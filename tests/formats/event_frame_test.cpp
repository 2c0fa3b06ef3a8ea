// EventFrame: what a writer puts around a fragment's parts is, byte for byte, what the plain encoders make of the same event.
#include "formats/event_frame.h"

#include <gtest/gtest.h>

#include "formats/full_event.h"
#include "formats/random_event.h"
#include "formats/stream_tags.h"

namespace {

using namespace rodeo::formats;
using rodeo::Fragment;
using rodeo::FragmentPart;
using rodeo::test::RandomEvents;

// A fragment over random data, cut into parts anywhere.
struct OwnedFragment {
  OwnedFragment(RandomEvents& random, std::uint32_t missing) : data(random.rod_data()) {
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t size = std::min<std::size_t>(data.size() - at, 1 + random.below(200));
      parts.push_back({data.data() + at, size});
      at += size;
    }
    fragment.l1id = {random.word()};
    fragment.source_id = {random.word()};
    fragment.bcid = static_cast<std::uint16_t>(random.below(3564));
    fragment.trigger_type = static_cast<std::uint8_t>(random.below(256));
    fragment.status = missing > 0 ? rodeo::fragment_status::kTimeout : 0;
    fragment.missing = missing;
    fragment.missing_listed = std::min<std::uint32_t>(missing, Fragment::kMissingListed);
    for (std::uint32_t i = 0; i < fragment.missing_listed; ++i) fragment.missing_links[i] = random.word();
    fragment.parts = parts.data();
    fragment.part_count = static_cast<std::uint32_t>(parts.size());
  }

  std::vector<std::byte> data;
  std::vector<FragmentPart> parts;
  Fragment fragment;
};

std::vector<std::byte> plain(const OwnedFragment& owned, const EventFrameSettings& settings, const EventStamp& stamp,
                             Compression compression) {
  const Fragment& f = owned.fragment;
  std::vector<std::uint32_t> status = {f.status};
  if (f.missing > 0) {
    status.push_back(f.missing);
    status.insert(status.end(), f.missing_links, f.missing_links + f.missing_listed);
  }
  const RodHeader rod{.minor_version = settings.rod_minor_version,
                      .source_id = f.source_id,
                      .run_number = settings.run_number,
                      .l1id = f.l1id,
                      .bcid = f.bcid,
                      .trigger_type = f.trigger_type,
                      .detector_event_type = settings.detector_event_type};
  const auto rob = encode_rob({.source_id = f.source_id, .status = {f.status}, .checksum_type = settings.rob_checksum},
                              encode_rod(rod, status, owned.data, settings.status_position));
  FullEventHeader header;
  header.status = {f.status};
  header.bc_time_s = stamp.bc_time_s;
  header.bc_time_ns = stamp.bc_time_ns;
  header.global_id = stamp.global_id;
  header.run_type = settings.run_type;
  header.run_number = settings.run_number;
  header.lumi_block = settings.lumi_block;
  header.l1id = f.l1id;
  header.bcid = f.bcid;
  header.trigger_type = f.trigger_type;
  header.checksum_type = settings.event_checksum;
  header.compression = compression;
  header.stream_tags = settings.stream_tags;
  return encode_full_event(header, rob);
}

EventFrameSettings random_settings(RandomEvents& random) {
  const auto checksum = [&] { return random.below(2) == 0 ? ChecksumType::none : ChecksumType::adler32; };
  EventFrameSettings settings{.run_number = random.word(),
                              .run_type = run_type::kTest,
                              .lumi_block = random.below(0x10000),
                              .event_checksum = checksum(),
                              .rob_checksum = checksum(),
                              .status_position = static_cast<StatusPosition>(random.below(2)),
                              .rod_minor_version = static_cast<std::uint16_t>(random.word()),
                              .detector_event_type = random.word()};
  if (random.below(2) == 0) settings.stream_tags = encode_stream_tags(std::vector<StreamTag>{{}});
  return settings;
}

class EventAroundAFragment : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(EventAroundAFragment, IsWhatThePlainEncodersMake) {
  RandomEvents random(100 + GetParam());
  for (int i = 0; i < 100; ++i) {
    const EventFrameSettings settings = random_settings(random);
    const EventFrame frame(settings);
    const OwnedFragment owned(random, GetParam());
    const EventStamp stamp{std::uint64_t{random.word()} << 32 | random.word(), random.word(), random.below(1000000000)};
    std::vector<std::byte> head(frame.max_head_bytes());
    std::vector<std::byte> tail(EventFrame::kMaxTailBytes);
    const EventFrame::Sizes sizes = frame.store(owned.fragment, stamp, head.data(), tail.data());
    std::vector<std::byte> event(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(sizes.head_bytes));
    append_bytes(event, owned.data);
    append_bytes(event, std::span(tail).first(sizes.tail_bytes));
    ASSERT_EQ(event.size(), sizes.event_bytes);
    ASSERT_EQ(event, plain(owned, settings, stamp, Compression::none));
  }
}

TEST_P(EventAroundAFragment, IsTheSameCompressedWithoutCopying) {
  RandomEvents random(200 + GetParam());
  ZlibCompressor compressor(1);
  for (int i = 0; i < 50; ++i) {
    const EventFrameSettings settings = random_settings(random);
    const EventFrame frame(settings);
    const OwnedFragment owned(random, GetParam());
    const EventStamp stamp{random.word(), random.word(), 5};
    std::vector<std::byte> event(frame.max_compressed_bytes(owned.data.size(), compressor));
    event.resize(frame.store_compressed(owned.fragment, stamp, compressor, event));
    const Decoded<FullEventView> found = decode_full_event(event);
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_TRUE(found->checksum_holds());
    EXPECT_EQ(found->compression, Compression::zlib);
    std::vector<std::byte> buffer;
    const Decoded<WordView> robs = found->robs(buffer);
    ASSERT_TRUE(robs.has_value()) << robs.error().message();
    const std::vector<std::byte> uncompressed = plain(owned, settings, stamp, Compression::none);
    EXPECT_EQ(robs->to_vector(), decode_full_event(uncompressed)->payload.to_vector());
  }
}

INSTANTIATE_TEST_SUITE_P(MissingLinks, EventAroundAFragment, ::testing::Values(0, 1, 5, 16, 40));

}  // namespace
