// Filtering: each condition needs only the header. An event is kept unchanged, or counted by the first condition that it
// does not meet.
#include "storage/file_filter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "storage/event_file_reader.h"
#include "storage/file_verify.h"
#include "storage/made_files.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::L1Id;
using rodeo::test::events_of;
using rodeo::test::make_files;
using rodeo::test::SampleSettings;
using rodeo::test::TemporaryDirectory;
using Status = EventFilter::Status;

FilterVerdict judge(const EventFilter& filter, const SampleSettings& sample, std::uint32_t number) {
  const auto event = rodeo::test::sample_event(sample, number);
  return filter.judge(*decode_full_event(event));
}

TEST(EventFilter, KeepsEverythingWithoutAsking) { EXPECT_EQ(judge({}, {}, 1), FilterVerdict::kept); }

TEST(EventFilter, KnowsStatus) {
  const SampleSettings sample{.missing_in_event = 2};
  EXPECT_EQ(judge({.status = Status::good}, sample, 1), FilterVerdict::kept);
  EXPECT_EQ(judge({.status = Status::good}, sample, 2), FilterVerdict::other_status);
  EXPECT_EQ(judge({.status = Status::flagged}, sample, 1), FilterVerdict::other_status);
  EXPECT_EQ(judge({.status = Status::flagged}, sample, 2), FilterVerdict::kept);
  EXPECT_EQ(judge({.status_bits = 0x5}, sample, 2), FilterVerdict::kept) << "a time-out is 0x4";
  EXPECT_EQ(judge({.status_bits = 0x8}, sample, 2), FilterVerdict::other_status);
}

TEST(EventFilter, KnowsStreams) {
  EXPECT_EQ(judge({.streams = {"physics_Main"}}, {}, 1), FilterVerdict::kept);
  EXPECT_EQ(judge({.streams = {"physics_Other", "physics_Main"}}, {}, 1), FilterVerdict::kept);
  EXPECT_EQ(judge({.streams = {"calibration_Main"}}, {}, 1), FilterVerdict::other_stream);
}

TEST(EventFilter, KnowsTriggerTypes) {
  const auto event = rodeo::test::sample_event({}, 1);
  const std::uint32_t type = decode_full_event(event)->trigger_type;
  EXPECT_EQ(judge({.trigger_types = {type}}, {}, 1), FilterVerdict::kept);
  EXPECT_EQ(judge({.trigger_types = {type + 1}}, {}, 1), FilterVerdict::other_trigger_type);
}

TEST(EventFilter, KnowsRangesOfL1Ids) {
  const auto in = [](std::uint32_t first, std::uint32_t last) {
    return judge({.l1ids = std::pair(L1Id{first}, L1Id{last})}, {}, 5) == FilterVerdict::kept;
  };
  EXPECT_TRUE(in(0x01000005, 0x01000005));
  EXPECT_FALSE(in(0x01000006, 0x02000000));
  EXPECT_FALSE(in(0, 0x01000004));
  EXPECT_TRUE(in(0xff000000, 0x01000005)) << "a range across the wrap";
  EXPECT_FALSE(in(0xff000000, 0x01000004));
}

struct Kept {
  std::vector<std::uint32_t> numbers;
  bool sound = true;
};

Kept kept(const std::vector<rodeo::FragmentConsumer::File>& files) {
  Kept all;
  for (const auto& file : files) {
    const auto mapped = rodeo::base::MappedFile::open(file.path);
    all.sound = all.sound && verify_event_file(mapped->bytes()).sound();
    auto reader = EventFileReader::open(mapped->bytes());
    while (const auto block = *reader->next()) all.numbers.push_back(decode_full_event(block->stored)->l1id.l1());
  }
  return all;
}

rodeo::Result<FilterReport> filter(FilterSettings settings, const TemporaryDirectory& directory) {
  settings.output = {directory.path(), "kept"};
  return filter_files(settings, {}, [] { return false; });
}

TEST(FileFilter, EveryEventIsKeptOrCounted) {
  const TemporaryDirectory directory;
  const SampleSettings sample{.missing_in_event = 4};
  const auto files = make_files(directory.path(), {.max_blocks = 3}, sample, events_of(sample, {1, 2, 3, 4, 5, 6, 7}));
  const auto report =
      filter({.files = files, .filter = {.status = Status::good, .l1ids = std::pair(L1Id{0x01000002}, L1Id{0x01000006})}},
             directory);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->count(FilterCounter::events_in), 7u);
  EXPECT_EQ(report->count(FilterCounter::kept), 4u);
  EXPECT_EQ(report->count(FilterCounter::other_status), 1u);
  EXPECT_EQ(report->count(FilterCounter::other_l1id), 2u);
  const Kept found = kept(report->files);
  EXPECT_EQ(found.numbers, (std::vector<std::uint32_t>{2, 3, 5, 6}));
  EXPECT_TRUE(found.sound);
}

TEST(FileFilter, SplitsByNumber) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {}, {}, events_of({}, {1, 2, 3, 4, 5}));
  const auto report = filter({.files = files, .max_events = 2}, directory);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->files.size(), 3u);
  EXPECT_EQ(report->files[2].events, 1u);
  EXPECT_EQ(kept(report->files).numbers, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
}

TEST(FileFilter, SplitsByStream) {
  const TemporaryDirectory directory;
  const SampleSettings other{.stream = "../Other"};
  auto events = events_of({}, {1, 2});
  events.push_back(rodeo::test::sample_event(other, 3));
  const auto files = make_files(directory.path(), {}, {}, events);
  const auto report = filter({.files = files, .by_stream = true}, directory);
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->files.size(), 2u);
  EXPECT_EQ(report->files[0].path, directory.file("kept.physics_.._Other._0001.data"))
      << "a name in a file cannot lead to another directory";
  EXPECT_EQ(report->files[1].path, directory.file("kept.physics_Main._0001.data"));
  EXPECT_EQ(report->files[1].events, 2u);
}

TEST(FileFilter, AsksSomebodyElseAboutEveryEvent) {
  const TemporaryDirectory directory;
  auto events = events_of({}, {1, 2, 3, 4, 5, 6});
  events[4].front() ^= std::byte{1};  // written damaged: no other event may get its answer
  const auto files = make_files(directory.path(), {}, {}, events);
  std::vector<std::uint32_t> asked;
  const auto report = filter({.files = files,
                              .filter = {.l1ids = std::pair(L1Id{0x01000002}, L1Id{0x01000006})},
                              .wants = [&](const WalkedEvent& event) -> rodeo::Result<Wanted> {
                                asked.push_back(event.number);
                                if (asked.size() == 3) return Wanted::timed_out;
                                return asked.size() % 2 == 0 ? Wanted::yes : Wanted::no;
                              }},
                             directory);
  ASSERT_TRUE(report);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(report->count(FilterCounter::other_l1id), 1u);
  EXPECT_EQ(report->count(FilterCounter::timed_out), 1u);
  EXPECT_EQ(report->count(FilterCounter::damaged_events), 1u);
  EXPECT_EQ(kept(report->files).numbers, (std::vector<std::uint32_t>{2, 4, 6}));
}

TEST(FileFilter, WhoIsAskedMayFailAndNothingIsLeft) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {}, {}, events_of({}, {1, 2}));
  const auto report = filter({.files = files,
                              .wants = [](const WalkedEvent&) -> rodeo::Result<Wanted> {
                                return std::unexpected(rodeo::Error{"data.function", "no"});
                              }},
                             directory);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, "data.function");
  EXPECT_FALSE(std::filesystem::exists(directory.file("kept._0001.data")));
  EXPECT_FALSE(std::filesystem::exists(directory.file("kept._0001.writing")));
}

TEST(FileFilter, WhatIsNotItsOwnStaysWhereItFails) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {}, {}, events_of({}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<std::string> others = {directory.file("kept._0007.data"), directory.file("kept._0009.writing"),
                                           directory.file("kept._0001.writing.data")};
  const auto report = filter({.files = files,
                              .max_events = 2,
                              .wants = [&](const WalkedEvent& event) -> rodeo::Result<Wanted> {
                                if (event.number < 7) return Wanted::yes;
                                for (const std::string& path : others) std::ofstream(path) << "a foreign file";
                                return std::unexpected(rodeo::Error{"data.function", "no"});
                              }},
                             directory);
  ASSERT_FALSE(report);
  for (const std::string& path : others) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  for (const std::string number : {"1", "2", "3", "4"}) {
    EXPECT_FALSE(std::filesystem::exists(directory.file("kept._000" + number + ".data")));
    EXPECT_FALSE(std::filesystem::exists(directory.file("kept._000" + number + ".writing")));
  }
}

TEST(FileFilter, AllStreamsAreThereOrNone) {
  const TemporaryDirectory directory;
  const SampleSettings other{.stream = "Other"};
  auto events = events_of({}, {1, 2});
  events.push_back(rodeo::test::sample_event(other, 3));
  const auto files = make_files(directory.path(), {}, {}, events);
  // When the last stream's file is to be closed, another file has its name.
  const std::string taken = directory.file("kept.physics_Other._0001.data");
  FilterSettings settings{.files = files, .output = {directory.path(), "kept"}, .by_stream = true};
  const auto report = filter_files(settings, {}, [&] {
    if (std::filesystem::exists(directory.file("kept.physics_Other._0001.writing")))
      std::ofstream(taken) << "a foreign file";
    return false;
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, "file.write");
  EXPECT_TRUE(std::filesystem::exists(taken));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().filename().string().starts_with("kept")) left.push_back(entry.path().string());
  }
  EXPECT_EQ(left, std::vector<std::string>{taken});
}

}  // namespace
