// Comparison: equal files give no output, and every difference is found at its place.
#include "storage/file_diff.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/made_files.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::test::events_of;
using rodeo::test::make_files;
using rodeo::test::sample_event;
using rodeo::test::SampleSettings;
using rodeo::test::TemporaryDirectory;

std::vector<EventDifference> differences(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                                         bool times = true) {
  std::vector<EventDifference> all;
  const std::uint64_t count = diff_events(a, b, {.times = times}, [&](const EventDifference& one) { all.push_back(one); });
  EXPECT_EQ(count, all.size());
  return all;
}

TEST(EventDiff, TheSameEventHasNoDifference) {
  EXPECT_TRUE(differences(sample_event({}, 1), sample_event({}, 1)).empty());
  EXPECT_TRUE(differences(sample_event({}, 1), sample_event({.compress = true}, 1)).empty()) << "in any storage";
}

TEST(EventDiff, HeaderFieldsAreNamed) {
  std::vector<std::byte> other = sample_event({}, 1);
  other[event_word::kBcid * 4] ^= std::byte{1};
  other[event_word::kNanoseconds * 4] ^= std::byte{1};
  const auto found = differences(sample_event({}, 1), other);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].field, "time [ns]");
  EXPECT_EQ(found[1].field, "BCID");
  EXPECT_EQ(differences(sample_event({}, 1), other, false).size(), 1u);
}

TEST(EventDiff, TheFirstByteOfAChunkThatDiffersIsNamed) {
  const SampleSettings sample{.links = 3, .chunk_bytes = 40, .event_checksum = ChecksumType::none};
  const std::vector<std::byte> event = sample_event(sample, 1);
  std::vector<std::byte> other = event;
  const std::size_t trailer = 12;
  const std::size_t last_chunk = event.size() - trailer - 44;  // 42 bytes, padded
  other[last_chunk + 17] ^= std::byte{0x80};
  const auto found = differences(event, other);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "ROB 0x00610001, link id 0x00540002");
  EXPECT_EQ(found[0].field, "chunk bytes from 17");
  EXPECT_EQ(found[0].left_offset, last_chunk + 17);
}

TEST(EventDiff, AChunkThatOnlyOneHasIsNamed) {
  const auto found = differences(sample_event({}, 2), sample_event({.missing_in_event = 2}, 2));
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(found.front().field, "status");
  EXPECT_EQ(found.back().where, "ROB 0x00610001, link id 0x00540002");
  EXPECT_EQ(found.back().right, "");
}

TEST(EventDiff, BytesThatAreNoEventAreADifference) {
  const auto found = differences(sample_event({}, 1), std::vector<std::byte>(50));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "structure");
}

struct Compared {
  DiffReport report;
  std::vector<FileDifference> all;
};

Compared compare(const std::string& a, const std::string& b) {
  Compared done;
  const auto report = diff_files(a, b, {.window = 10}, {}, [&](const FileDifference& one) { done.all.push_back(one); });
  EXPECT_TRUE(report) << report.error().message();
  if (report) done.report = *report;
  return done;
}

TEST(FileDiff, TwoWritingsOfTheSameEventsAreTheSame) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  const auto events = events_of({}, {1, 2, 3});
  const Compared done = compare(make_files(a.path(), {}, {}, events)[0], make_files(b.path(), {}, {}, events)[0]);
  EXPECT_TRUE(done.report.same());
  EXPECT_EQ(done.report.same_events, 3u);
}

TEST(FileDiff, EventsArePairedByTheirIds) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  const Compared done = compare(make_files(a.path(), {}, {}, events_of({}, {1, 2, 3}))[0],
                                make_files(b.path(), {.run_number = 7}, {}, events_of({}, {3, 2, 4}))[0]);
  EXPECT_EQ(done.report.same_events, 2u);
  EXPECT_EQ(done.report.only_left, 1u);
  EXPECT_EQ(done.report.only_right, 1u);
  ASSERT_EQ(done.all.size(), 3u);
  EXPECT_EQ(done.all[0].what.field, "run number");
  EXPECT_EQ(done.all[1].l1id, rodeo::L1Id::of(1, 1));
  EXPECT_FALSE(done.all[1].right_number);
  EXPECT_EQ(done.all[2].right_number, 3u);
}

TEST(FileDiff, TwoEventsOfOneIdArePairedByTheirRobs) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  const SampleSettings other{.source_id = 0x610002};
  const std::vector<std::vector<std::byte>> events{sample_event({}, 1), sample_event(other, 1)};
  const Compared done =
      compare(make_files(a.path(), {}, {}, events)[0], make_files(b.path(), {}, {}, {events[1], events[0]})[0]);
  EXPECT_TRUE(done.report.same());
  EXPECT_EQ(done.report.same_events, 2u);
}

TEST(FileDiff, AFileThatWasCutIsComparedAsFarAsItGoes) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  const auto events = events_of({}, {1, 2, 3});
  const std::string whole = make_files(a.path(), {}, {}, events)[0];
  const std::string cut = make_files(b.path(), {}, {}, events)[0];
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 100);
  const Compared done = compare(whole, cut);
  EXPECT_EQ(done.report.same_events, 2u);
  EXPECT_EQ(done.report.only_left, 1u);
  ASSERT_EQ(done.all.size(), 2u);
  EXPECT_EQ(done.all[1].what.field, "can be read to");
}

}  // namespace
