// rodeo data recover: every whole event of a file cut anywhere, or broken in the middle, is saved, and nothing else.
#include "formats/file_recover.h"

#include <gtest/gtest.h>

#include "formats/event_file_reader.h"
#include "formats/file_verify.h"
#include "formats/random_event.h"
#include "formats/sample_file.h"
#include "formats/temporary_directory.h"
#include "formats/zlib_stream.h"

namespace {

using namespace rodeo::formats;
using rodeo::test::read_file;
using rodeo::test::sample_event;
using rodeo::test::sample_file;
using rodeo::test::SampleSettings;
using rodeo::test::TemporaryDirectory;
using Bytes = std::vector<std::byte>;

struct Sample {
  explicit Sample(SampleSettings settings) : file(sample_file(settings)) {
    std::size_t at = file.size() - kFileEndBytes;
    for (std::uint32_t number = settings.events; number > 0; --number) {
      events.insert(events.begin(), sample_event(settings, number));
      at -= events.front().size();
      offsets.insert(offsets.begin(), at);
      at -= kSeparatorBytes;
    }
  }

  std::size_t end_of(std::size_t event) const { return offsets[event] + events[event].size(); }

  Bytes file;
  std::vector<Bytes> events;
  std::vector<std::size_t> offsets;
};

std::vector<Bytes> saved_from(std::span<const std::byte> file) {
  std::vector<Bytes> saved;
  const auto scan = scan_events(file, [&](const FoundEvent& event) -> rodeo::Result<void> {
    saved.emplace_back(event.stored.begin(), event.stored.end());
    return {};
  });
  EXPECT_TRUE(scan.has_value());
  return saved;
}

std::vector<Bytes> blocks_of(const Bytes& file) {
  std::vector<Bytes> blocks;
  auto reader = EventFileReader::open(file);
  while (reader) {
    const auto block = reader->next();
    if (!block || !*block) break;
    blocks.emplace_back((*block)->stored.begin(), (*block)->stored.end());
  }
  return blocks;
}

TEST(FileRecover, SavesEveryWholeEventOfAFileCutAnywhere) {
  const Sample sample({.events = 3});
  for (std::size_t size = 0; size <= sample.file.size(); ++size) {
    std::vector<Bytes> expected;
    for (std::size_t i = 0; i < sample.events.size() && sample.end_of(i) <= size; ++i) expected.push_back(sample.events[i]);
    ASSERT_EQ(saved_from(std::span(sample.file).first(size)), expected) << "cut at " << size;
  }
}

TEST(FileRecover, SavesEveryEventThatAFlippedBitDidNotTouch) {
  const Sample sample({.events = 3});
  for (std::size_t bit = 0; bit < sample.file.size() * 8; ++bit) {
    Bytes file = sample.file;
    file[bit / 8] ^= std::byte{1} << (bit % 8);
    std::size_t found = 0;
    const std::vector<Bytes> saved = saved_from(file);
    for (std::size_t i = 0; i < sample.events.size(); ++i) {
      const bool touched = bit / 8 >= sample.offsets[i] && bit / 8 < sample.end_of(i);
      if (touched) continue;
      ASSERT_LT(found, saved.size()) << "bit " << bit;
      // A touched event may still count as whole: its header has no checksum.
      if (saved[found] != sample.events[i]) ++found;
      ASSERT_LT(found, saved.size()) << "bit " << bit;
      ASSERT_EQ(saved[found++], sample.events[i]) << "bit " << bit;
    }
  }
}

TEST(FileRecover, GoesOnBehindBytesThatAreMissingOrTooMany) {
  const Sample sample({.events = 4});
  for (const std::ptrdiff_t size : {1, 3, 17, 64}) {
    Bytes removed = sample.file;
    const auto at = removed.begin() + static_cast<std::ptrdiff_t>(sample.offsets[1]) + 40;
    removed.erase(at, at + size);
    EXPECT_EQ(saved_from(removed), (std::vector<Bytes>{sample.events[0], sample.events[2], sample.events[3]})) << size;
    Bytes added = sample.file;
    added.insert(added.begin() + static_cast<std::ptrdiff_t>(sample.end_of(1)), static_cast<std::size_t>(size),
                 std::byte{0x5a});
    EXPECT_EQ(saved_from(added), sample.events) << size;
  }
}

TEST(FileRecover, SaysHowMuchWasLeftOutAndWhere) {
  const Sample sample({.events = 4});
  Bytes file = sample.file;
  file[sample.end_of(1) - 1] ^= std::byte{1};
  file[sample.end_of(3) - 1] ^= std::byte{1};
  const auto scan = scan_events(file, [](const FoundEvent&) -> rodeo::Result<void> { return {}; });
  ASSERT_TRUE(scan.has_value());
  EXPECT_EQ(scan->events, 2u);
  EXPECT_EQ(scan->damaged_places, 2u);
  EXPECT_TRUE(scan->closed || scan->findings.total() == 3);
  EXPECT_EQ(scan->findings.listed()[0].offset, sample.end_of(1) - 4);
}

TEST(FileRecover, WritesAClosedFileThatVerifies) {
  const Sample sample({.events = 5, .missing_in_event = 2});
  TemporaryDirectory directory;
  const auto result = recover_events(std::span(sample.file).first(sample.end_of(3) + 20), directory.path(), "cut");
  ASSERT_TRUE(result.has_value()) << result.error().message();
  ASSERT_TRUE(result->written.has_value());
  EXPECT_EQ(result->written->path, directory.file("cut.recovered._0001.data"));
  EXPECT_EQ(result->written->events, 4u);
  const Bytes file = read_file(result->written->path);
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << report.findings.listed().front().what;
  EXPECT_EQ(report.totals.proven_chunks, 11u);
  EXPECT_EQ(report.header->application, "test");
  EXPECT_EQ(report.header->run.run_number, 431493u);
  EXPECT_EQ(report.header->free_string("Stream"), "physics_Main");
  EXPECT_EQ(report.header->free_string("Rodeo-Recovered").substr(0, 21), "4 whole events of cut");
  EXPECT_EQ(blocks_of(file), (std::vector<Bytes>(sample.events.begin(), sample.events.begin() + 4)));
}

TEST(FileRecover, TakesTheRunNumberFromEventsWhenTheHeaderIsGone) {
  const Sample sample({.events = 2});
  TemporaryDirectory directory;
  Bytes file(sample.file.begin() + 30, sample.file.end());
  const auto result = recover_events(file, directory.path(), "headless");
  ASSERT_TRUE(result.has_value());
  EXPECT_FALSE(result->scan.header.has_value());
  const EventFileReport report = verify_event_file(read_file(result->written->path));
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.blocks, 2u);
  EXPECT_EQ(report.header->run.run_number, 431493u);
}

TEST(FileRecover, WritesNothingWhereThereIsNothing) {
  TemporaryDirectory directory;
  for (const Bytes& file : {Bytes{}, Bytes(5000), Bytes(3)}) {
    const auto result = recover_events(file, directory.path(), "nothing");
    ASSERT_TRUE(result.has_value());
    EXPECT_FALSE(result->written.has_value());
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(FileRecover, KeepsBlocksCompressedThatWereCompressed) {
  EventFileHeader header;
  header.free_strings = {"GUID=1", "Compression=zlib"};
  Bytes file = encode_file_header(header);
  std::vector<Bytes> stored;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    stored.push_back(zlib_compress(sample_event({}, number), 6));
    append_bytes(file, encode_separator({number, static_cast<std::uint32_t>(stored.back().size())}));
    append_bytes(file, stored.back());
  }
  file.resize(file.size() - 1);
  TemporaryDirectory directory;
  const auto result = recover_events(file, directory.path(), "z");
  ASSERT_TRUE(result.has_value());
  stored.pop_back();
  EXPECT_EQ(blocks_of(read_file(result->written->path)), stored);
  const EventFileReport report = verify_event_file(read_file(result->written->path));
  EXPECT_TRUE(report.sound()) << report.findings.listed().front().what;
  EXPECT_EQ(report.totals.events, 2u);
}

}  // namespace
