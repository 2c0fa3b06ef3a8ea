// Merging: fragments of one event from several files become one event, every loss is counted, and the new file verifies.
#include "storage/file_merge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/mapped_file.h"
#include "formats/event_merge.h"
#include "formats/event_names.h"
#include "formats/rob.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_walk.h"
#include "storage/file_verify.h"
#include "storage/made_files.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::SourceId;
using rodeo::test::events_of;
using rodeo::test::make_files;
using rodeo::test::sample_event;
using rodeo::test::SampleSettings;
using rodeo::test::TemporaryDirectory;

const SampleSettings kOne{.source_id = 0x610001};
const SampleSettings kTwo{.links = 2, .source_id = 0x610002, .first_link = 0x580000};

std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> all(last - first + 1);
  std::iota(all.begin(), all.end(), first);
  return all;
}

rodeo::Result<MergeReport> merge(
    const TemporaryDirectory& directory, std::vector<std::string> files, std::size_t window = 10,
    const std::function<bool()>& stop = [] { return false; }) {
  return merge_files(
      {.files = std::move(files), .output = {directory.path(), "merged"}, .window = window}, [](std::uint64_t) {}, {}, stop);
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Each event as a text: L1 id, source ids and status, for example "1: 610001 610002 ok".
std::vector<std::string> events_in(const std::string& path) {
  const auto mapped = rodeo::base::MappedFile::open(path);
  auto reader = EventFileReader::open(mapped->bytes());
  std::vector<std::string> events;
  while (const auto block = *reader->next()) {
    const auto event = decode_full_event(block->stored);
    std::vector<std::byte> buffer;
    std::string text = fmt::format("{}:", event->l1id.l1());
    (void)for_each_rob(*event->robs(buffer),
                       [&](const RobView& rob, std::size_t) { text += fmt::format(" {:x}", rob.source_id.value); });
    text += " " + joined_or_ok(status_names(event->status[0], FragmentKind::event));
    for (const SourceId id : missing_robs(event->status)) text += fmt::format(" {:x}", id.value);
    events.push_back(text);
  }
  return events;
}

EventFileReport verified(const std::string& path) {
  const auto mapped = rodeo::base::MappedFile::open(path);
  return verify_event_file(mapped->bytes());
}

std::vector<std::string> left_over(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().filename().string().starts_with("merged")) names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(FileMerge, FragmentsOfTwoReadoutsBecomeOneEvent) {
  const TemporaryDirectory directory;
  const auto one =
      make_files(directory.path(), {.application = "one", .max_blocks = 4}, kOne, events_of(kOne, numbers(1, 10)));
  const auto two = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, numbers(1, 10)));
  ASSERT_EQ(one.size(), 3u);
  const auto report = merge(directory, {one[2], two[0], one[0], one[1]});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::events_in), 20u);
  EXPECT_EQ(report->count(MergeCounter::merged_in), 20u);
  EXPECT_EQ(report->count(MergeCounter::complete_events), 10u);
  EXPECT_TRUE(report->adds_up());
  ASSERT_EQ(report->files.size(), 1u);
  const auto events = events_in(report->files[0].path);
  ASSERT_EQ(events.size(), 10u);
  EXPECT_EQ(events[0], "1: 610001 610002 ok");
  const EventFileReport proof = verified(report->files[0].path);
  EXPECT_TRUE(proof.sound()) << proof.findings.listed().front().what;
  EXPECT_EQ(proof.totals.proven_chunks, 50u);
}

TEST(FileMerge, WhatOnlyOneHasIsKeptAndFlagged) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1, 2, 4}));
  const auto two = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, {1, 3, 4}));
  const auto report = merge(directory, joined(one, two));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::complete_events), 2u);
  EXPECT_EQ(report->count(MergeCounter::incomplete_events), 2u);
  EXPECT_EQ(report->count(MergeCounter::missing_robs), 2u);
  const auto events = events_in(report->files[0].path);
  EXPECT_EQ(events[1], "2: 610001 ROBs missing 610002");
  EXPECT_EQ(events[2], "3: 610002 ROBs missing 610001");
  EXPECT_TRUE(verified(report->files[0].path).sound());
}

TEST(FileMerge, WhatWasMissingIsThereWhenItIsMergedLater) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1, 2}));
  const auto two = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, {1}));
  const auto late = make_files(directory.path(), {.application = "late"}, kTwo, events_of(kTwo, {2}));
  const auto first = merge_files(
      {.files = joined(one, two), .output = {directory.path(), "first"}}, [](std::uint64_t) {}, {}, [] { return false; });
  ASSERT_TRUE(first);
  const auto report = merge(directory, joined({first->files[0].path}, late));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(events_in(report->files[0].path), (std::vector<std::string>{"1: 610001 610002 ok", "2: 610001 610002 ok"}));
}

TEST(FileMerge, AWriterThatNamesNoRobsIsMissingAllTheSame) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one", .named_robs = false}, kOne, events_of(kOne, {1, 2}));
  const auto two = make_files(directory.path(), {.application = "two", .named_robs = false}, kTwo, events_of(kTwo, {1}));
  const auto report = merge(directory, joined(one, two));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::incomplete_events), 1u);
  EXPECT_EQ(events_in(report->files[0].path)[1], "2: 610001 ROBs missing");
}

TEST(FileMerge, DuplicatesAreTakenOnceAndNamed) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1, 2, 2, 3}));
  const auto report = merge(directory, one);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::duplicate_events), 1u);
  EXPECT_EQ(report->count(MergeCounter::duplicate_robs), 1u);
  EXPECT_EQ(report->count(MergeCounter::events_out), 3u);
  EXPECT_TRUE(report->adds_up());
  ASSERT_EQ(report->named.size(), 1u);
  EXPECT_NE(report->named[0].find("event 3 (L1 id 0x01000002) is a duplicate"), std::string::npos) << report->named[0];
  EXPECT_EQ(events_in(report->files[0].path)[1], "2: 610001 ok");
}

TEST(FileMerge, AFragmentThatContradictsIsNamed) {
  const TemporaryDirectory directory;
  const SampleSettings other{.seed = 8, .source_id = 0x610001};
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1, 2}));
  const auto two = make_files(directory.path(), {.application = "two"}, other, events_of(other, {2}));
  const auto report = merge(directory, joined(one, two));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::contradicting_robs), 1u);
  EXPECT_EQ(report->count(MergeCounter::contradicting_events), 1u);
  EXPECT_EQ(report->count(MergeCounter::duplicate_events), 0u);
  EXPECT_EQ(report->count(MergeCounter::bcid_differs), 1u);
  EXPECT_TRUE(report->adds_up());
}

TEST(FileMerge, EventsOutOfOrderAreSortedWithinTheWindow) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {3, 1, 2, 6, 5, 4}));
  const auto two = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, numbers(1, 6)));
  const auto report = merge(directory, joined(one, two), 3);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(MergeCounter::complete_events), 6u);
  EXPECT_LE(report->most_held, 6u);
}

TEST(FileMerge, AnEventBeyondTheWindowIsRefusedByNameAndNothingIsLeft) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {2, 3, 4, 5, 1}));
  const auto report = merge(directory, one, 3);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, "data.order");
  EXPECT_NE(report.error().what.find("event 5 (L1 id 0x01000001)"), std::string::npos) << report.error().what;
  EXPECT_TRUE(left_over(directory).empty());
}

TEST(FileMerge, AnEventOfOneFileStaysAsItIs) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1, 2}));
  const auto report = merge(directory, one);
  ASSERT_TRUE(report);
  const auto mapped = rodeo::base::MappedFile::open(report->files[0].path);
  auto reader = EventFileReader::open(mapped->bytes());
  const auto block = *reader->next();
  EXPECT_TRUE(std::ranges::equal(block->stored, sample_event(kOne, 1)));
}

TEST(FileMerge, CompressedEventsStayCompressed) {
  const TemporaryDirectory directory;
  SampleSettings one = kOne;
  one.compress = true;
  const auto a = make_files(directory.path(), {.application = "one"}, one, events_of(one, {1, 2}));
  const auto b = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, {1, 2}));
  const auto report = merge(directory, joined(a, b));
  ASSERT_TRUE(report);
  const EventFileReport proof = verified(report->files[0].path);
  EXPECT_TRUE(proof.sound()) << proof.findings.listed().front().what;
  EXPECT_EQ(proof.totals.proven_chunks, 10u);
}

TEST(FileMerge, AFileThatIsNotWholeIsRefusedAndNothingIsLeft) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, numbers(1, 20)));
  const auto bytes = rodeo::test::read_file(one[0]);
  const auto write = [&](std::size_t size, std::size_t flipped) {
    std::vector<std::byte> changed(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    if (flipped != 0) changed[flipped] ^= std::byte{1};
    std::ofstream(one[0], std::ios::binary)
        .write(reinterpret_cast<const char*>(changed.data()), static_cast<std::streamsize>(size));
    return merge(directory, one);
  };
  EXPECT_EQ(write(bytes.size() - 1, 0).error().code, "data.not_closed");
  EXPECT_EQ(write(0, 0).error().code, "data.empty");
  const std::size_t seconds = bytes.size() - 40 - 100;  // this place is in the last event
  const auto flipped = write(bytes.size(), seconds);
  ASSERT_FALSE(flipped);
  EXPECT_EQ(flipped.error().code, "data.damaged");
  EXPECT_NE(flipped.error().next.find("rodeo data recover"), std::string::npos);
  EXPECT_TRUE(left_over(directory).empty());
}

TEST(EventFileWalk, AFileThatIsCutWhileItIsReadIsNotBelieved) {
  const TemporaryDirectory directory;
  const SampleSettings large{.links = 20, .chunk_bytes = 500};
  const auto files = make_files(directory.path(), {}, large, events_of(large, numbers(1, 40)));
  auto walk = EventFileWalk::open(files[0]);
  ASSERT_TRUE(walk);
  ASSERT_TRUE(walk->next());
  std::filesystem::resize_file(files[0], 20'000);
  auto event = walk->next();
  while (event && *event) event = walk->next();
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, "file.shrunk");
}

TEST(FileMerge, WhoIsInterruptedLeavesNothing) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, numbers(1, 20)));
  int asked = 0;
  const auto report = merge(directory, one, 3, [&] { return ++asked == 5; });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, "data.interrupted");
  EXPECT_TRUE(left_over(directory).empty());
}

TEST(FileMerge, WhatIsThereIsNotWrittenOver) {
  const TemporaryDirectory directory;
  const auto one = make_files(directory.path(), {.application = "one"}, kOne, events_of(kOne, {1}));
  std::ofstream(std::filesystem::path(directory.path()) / "merged._0001.data") << "mine";
  const auto report = merge(directory, one);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, "file.exists");
  EXPECT_EQ(left_over(directory), std::vector<std::string>{"merged._0001.data"});
}

// Returns to the working directory at the end.
class Within {
 public:
  explicit Within(const std::string& directory) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory);
  }
  ~Within() { std::filesystem::current_path(before_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  std::filesystem::path before_;
};

TEST(FileMerge, OneDirectoryIsOneHoweverItIsNamed) {
  const TemporaryDirectory directory;
  const auto one =
      make_files(directory.path(), {.application = "one", .max_blocks = 3}, kOne, events_of(kOne, numbers(1, 9)));
  const auto two = make_files(directory.path(), {.application = "two"}, kTwo, events_of(kTwo, numbers(1, 9)));
  const Within within(directory.path());
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  const auto report =
      merge(directory, {name(one[0]), "./" + name(one[1]), one[2], "../" + name(directory.path()) + "/" + name(two[0])});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->writers.size(), 2u);
  EXPECT_EQ(report->count(MergeCounter::complete_events), 9u);
  EXPECT_EQ(report->count(MergeCounter::incomplete_events), 0u);
}

}  // namespace
