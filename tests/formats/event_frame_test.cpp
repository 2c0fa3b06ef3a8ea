// EventFrame: the bytes that a writer puts around a fragment's parts equal those of the plain encoders.
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

// A fragment with random data, cut into random parts.
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
    // Groups of three links: missing (if there are missing links), present, removed (only in odd fragments).
    const bool removed = missing % 2 == 1;
    for (std::uint32_t i = 0; i < 3 * missing; ++i) link_ids.push_back(random.word());
    absent.resize(2 * ((link_ids.size() + 31) / 32));
    fragment.link_ids = link_ids;
    fragment.missing_links = std::span(absent).first(absent.size() / 2);
    fragment.removed_links = std::span(absent).last(absent.size() / 2);
    for (std::uint32_t i = 0; i < link_ids.size(); ++i) {
      if (i % 3 == 0) fragment.missing_links[i / 32] |= 1U << (i % 32);
      if (i % 3 == 2 && removed) fragment.removed_links[i / 32] |= 1U << (i % 32);
    }
    if (removed) {
      fragment.removed = missing;
      fragment.status |= rodeo::fragment_status::kLinksRemoved;
    }
    fragment.global_id = std::uint64_t{random.word()} << 32 | random.word();
    fragment.parts = parts.data();
    fragment.part_count = static_cast<std::uint32_t>(parts.size());
  }

  std::vector<std::byte> data;
  std::vector<FragmentPart> parts;
  std::vector<std::uint32_t> link_ids;
  std::vector<std::uint32_t> absent;
  Fragment fragment;
};

std::vector<std::byte> plain(const OwnedFragment& owned, const EventFrameSettings& settings, const EventStamp& stamp,
                             Compression compression) {
  const Fragment& f = owned.fragment;
  std::vector<std::uint32_t> status = {f.status};
  if (f.missing > 0) {
    status.push_back(f.missing);
    for (std::size_t i = 0; i < f.link_ids.size() && status.size() < 2 + kMissingListed; i += 3)
      status.push_back(f.link_ids[i]);
    status.insert(status.end(), owned.absent.begin(), owned.absent.end());
  }
  const RodHeader rod{.minor_version = settings.rod_minor_version,
                      .source_id = f.source_id,
                      .run_number = settings.run_number,
                      .l1id = f.l1id,
                      .bcid = f.bcid,
                      .trigger_type = f.trigger_type,
                      .detector_event_type = settings.detector_event_type};
  const auto rob =
      encode_rob({.source_id = f.source_id, .status = {f.status & 0xffff}, .checksum_type = settings.rob_checksum},
                 encode_rod(rod, status, owned.data, settings.status_position));
  FullEventHeader header;
  header.source_id = settings.source_id;
  header.status = {f.status & 0xffff};
  header.bc_time_s = stamp.bc_time_s;
  header.bc_time_ns = stamp.bc_time_ns;
  header.global_id = f.global_id;
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
  EventFrameSettings settings{.source_id = {random.word()},
                              .run_number = random.word(),
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
  EventEnds ends;
  for (int i = 0; i < 100; ++i) {
    const EventFrameSettings settings = random_settings(random);
    const EventFrame frame(settings);
    const OwnedFragment owned(random, GetParam());
    const EventStamp stamp{random.word(), random.below(1000000000)};
    frame.store(owned.fragment, stamp, ends);
    std::vector<std::byte> event = ends.head;
    append_bytes(event, owned.data);
    append_bytes(event, ends.tail);
    ASSERT_EQ(event.size(), frame.bytes_around(owned.fragment) + owned.data.size());
    ASSERT_EQ(event, plain(owned, settings, stamp, Compression::none));
  }
}

TEST_P(EventAroundAFragment, IsTheSameCompressedWithoutCopying) {
  RandomEvents random(200 + GetParam());
  EventEnds ends;
  ZlibCompressor compressor(1);
  for (int i = 0; i < 50; ++i) {
    const EventFrameSettings settings = random_settings(random);
    const EventFrame frame(settings);
    const OwnedFragment owned(random, GetParam());
    const EventStamp stamp{random.word(), 5};
    std::vector<std::byte> event;
    event.resize(frame.store_compressed(owned.fragment, stamp, compressor, ends, event));
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
