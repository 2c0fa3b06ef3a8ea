// rodeo data recover: it saves exactly the whole events of a file that is cut anywhere or damaged in the middle.
#include "storage/file_recover.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/random_event.h"
#include "formats/temporary_directory.h"
#include "formats/zlib_stream.h"
#include "storage/event_file_reader.h"
#include "storage/event_numbers.h"
#include "storage/file_verify.h"
#include "storage/sample_file.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
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
      // A damaged event may count as whole, because its header has no checksum.
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

// What a scan reports about missing events.
std::vector<std::string> said_missing(std::span<const std::byte> file) {
  const auto scan = scan_events(file, [](const FoundEvent&) -> rodeo::Result<void> { return {}; });
  std::vector<std::string> said;
  for (const Finding& finding : scan->findings.listed()) {
    if (finding.what.find("missing") != std::string::npos) said.push_back(finding.what);
  }
  EXPECT_EQ(scan->missing_events == 0, said.empty());
  return said;
}

TEST(FileRecover, NamesEveryEventThatIsNotThere) {
  const Sample sample({.events = 5});
  const auto damaged = [&](std::initializer_list<std::size_t> events) {
    Bytes file = sample.file;
    for (const std::size_t event : events) file[sample.end_of(event) - 1] ^= std::byte{1};
    return file;
  };
  using Said = std::vector<std::string>;
  EXPECT_EQ(said_missing(sample.file), Said{});
  for (const std::size_t event : {0, 1, 2, 3, 4})
    EXPECT_EQ(said_missing(damaged({event})), Said{"event " + std::to_string(event + 1) + " is missing"});
  EXPECT_EQ(said_missing(damaged({1, 3})), (Said{"event 2 is missing", "event 4 is missing"}));
  EXPECT_EQ(said_missing(damaged({1, 2, 4})), (Said{"events 2 to 3 are missing", "event 5 is missing"}));
  EXPECT_EQ(said_missing(damaged({0, 1, 2, 3, 4})), Said{"events 1 to 5 are missing"});
  Bytes file = sample.file;  // removes an event together with its separator
  file.erase(file.begin() + static_cast<std::ptrdiff_t>(sample.end_of(1)),
             file.begin() + static_cast<std::ptrdiff_t>(sample.end_of(2)));
  EXPECT_EQ(said_missing(file), Said{"event 3 is missing"});
  file = damaged({1});
  file[sample.offsets[2] - 4] ^= std::byte{1};  // damages the size of event 3, which is found without its separator
  EXPECT_EQ(said_missing(file), Said{"of events 2 to 3 one is missing"});
  EXPECT_EQ(said_missing(std::span(sample.file).first(sample.end_of(3) - 1)), Said{"event 4 is missing"});
  EXPECT_EQ(said_missing(std::span(sample.file).first(sample.end_of(3) + 3)), Said{});
}

TEST(FileRecover, ADamagedNumberIsNoMissingEvent) {
  const Sample sample({.events = 4});
  for (const std::size_t event : {0, 1, 2, 3}) {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      Bytes file = sample.file;
      file[sample.offsets[event] - 8 + bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_TRUE(said_missing(file).empty()) << "event " << event << " bit " << bit;
    }
  }
  for (const std::size_t field : {4, 6}) {  // words of the end record: the number of blocks in the file, and in the sequence
    for (std::size_t bit = 0; bit < 32; ++bit) {
      Bytes file = sample.file;
      file[file.size() - kFileEndBytes + 4 * field + bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_TRUE(said_missing(file).empty()) << "end record, word " << field << " bit " << bit;
    }
  }
}

// The file's first number is unknown, and its first separator is damaged.
TEST(EventNumbers, AFirstNumberThatIsTooHighHidesNoGap) {
  const auto missing = [](const std::vector<std::uint32_t>& numbers, std::optional<FileEnd> end = {}) {
    Findings findings;
    EventNumbers of(findings);
    for (const std::uint32_t number : numbers) of.found(number, number, false);
    of.finish(end, 0, 0);
    return of.missing();
  };
  EXPECT_EQ(missing({11, 12, 13, 14}), 0U);
  EXPECT_EQ(missing({11, 12, 14, 15}), 1U);
  for (const std::uint32_t flipped : {11U + 16, 11U + 4096, 11U + (1U << 31)}) {
    EXPECT_EQ(missing({flipped, 12, 13, 14}), 0U) << flipped;
    EXPECT_EQ(missing({flipped, 12, 13, 15, 16}), 1U) << flipped;
    EXPECT_EQ(missing({flipped, 12, 14, 15}), 1U) << flipped;
    FileEnd end;
    end.blocks_in_file = 2;
    end.blocks_in_sequence = 12;
    EXPECT_EQ(missing({flipped, 12}, end), 0U) << flipped;
    end.blocks_in_file = 3;
    end.blocks_in_sequence = 13;
    EXPECT_EQ(missing({flipped, 12}, end), 1U) << flipped;
  }
  EXPECT_EQ(missing({11, 4, 13, 14}), 0U) << "the second number is damaged";
  EXPECT_EQ(missing({11, 4, 13, 15, 16}), 1U);
  EXPECT_EQ(missing({11, 12, 3, 14, 16, 17}), 1U);
}

TEST(FileRecover, LeavesNothingWhereItIsStoppedAndCanBeTriedAgain) {
  const Sample sample({.events = 50});
  const auto cut = std::span(sample.file).first(sample.end_of(40) + 20);
  for (const int steps : {1, 20, 60}) {  // the first pass is interrupted, or the second one, which writes
    TemporaryDirectory directory;
    int asked = 0;
    const auto stopped = recover_events(cut, directory.path(), "cut", {}, [&] { return ++asked == steps; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, "data.interrupted");
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
    const auto again = recover_events(cut, directory.path(), "cut");
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->written->events, 41u);
  }
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

// The result of recover: the events, the number of marked ones, and the report of verify.
struct Recovered {
  std::vector<Bytes> events;
  std::vector<bool> marked;
  EventFileReport report;
  std::uint64_t told = 0;  // number of marked events that recover reports
};

Recovered recover(std::span<const std::byte> damaged) {
  TemporaryDirectory directory;
  const auto result = recover_events(damaged, directory.path(), "damaged");
  Recovered recovered;
  EXPECT_TRUE(result.has_value());
  if (!result || !result->written) return recovered;
  const Bytes file = read_file(result->written->path);
  recovered.events = blocks_of(file);
  for (const Bytes& event : recovered.events) recovered.marked.push_back(decode_full_event(event)->header_not_proven());
  recovered.report = verify_event_file(file);
  recovered.told = result->marked;
  EXPECT_EQ(verify_event_file(file, {.prove = false}).totals.unproven_headers, recovered.report.totals.unproven_headers);
  return recovered;
}

TEST(FileRecover, LaundersNoFlippedBitOfAHeader) {
  const Sample sample({.events = 5});
  const std::size_t header = decode_full_event(sample.events[0])->header_words * 4;
  for (const std::size_t event : {0, 2, 4}) {
    // Flips every bit of one event, and one bit of each word of the first and the last event.
    for (std::size_t bit = event == 2 ? 0 : event; bit < header * 8; bit += event == 2 ? 1 : 32) {
      Bytes file = sample.file;
      file[sample.offsets[event] + bit / 8] ^= std::byte{1} << (bit % 8);
      const Recovered recovered = recover(file);
      EXPECT_TRUE(recovered.report.sound()) << recovered.report.findings.listed().front().what << " bit " << bit;
      EXPECT_EQ(recovered.report.totals.unproven_headers, recovered.told);
      EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(recovered.marked, true)), recovered.told);
      if (recovered.events.size() == 4) {
        EXPECT_EQ(recovered.told, 0u) << "bit " << bit;  // the event is left out, and no other one is marked
        continue;
      }
      ASSERT_EQ(recovered.events.size(), 5u);
      EXPECT_TRUE(recovered.marked[event]) << "event " << event << " word " << bit / 32 << " bit " << bit % 32;
      const std::size_t word = bit / 32;
      const bool of_the_event_alone = word == 9 || word == 10;  // nanoseconds, global id: no other word contradicts these
      EXPECT_EQ(recovered.told, of_the_event_alone ? 5u : 1u) << "word " << word;
    }
  }
}

TEST(FileRecover, MarksEveryEventWhereNothingSaysWhereTheDamageIs) {
  const Sample sample({.events = 3});
  Bytes file = sample.file;
  file[17] ^= std::byte{1};  // the date in the start record
  EXPECT_EQ(recover(file).told, 3u);
  file = sample.file;
  file[file.size() - kFileEndBytes + 9] ^= std::byte{1};  // the date in the end record
  EXPECT_EQ(recover(file).told, 3u);
}

TEST(FileRecover, DamageInTwoHeadersIsNotExplainedByOne) {
  const Sample sample({.events = 5});
  Bytes file = sample.file;
  file[sample.offsets[1] + 14 * 4] ^= std::byte{1};  // lumi block: contradicts the others
  EXPECT_EQ(recover(file).told, 1u);
  file[sample.offsets[3] + 10 * 4] ^= std::byte{1};  // global id: no other word contradicts it
  EXPECT_EQ(recover(file).told, 5u);
  file = sample.file;
  file[sample.offsets[1] + 14 * 4] ^= std::byte{1};
  file[sample.offsets[3] + 15 * 4] ^= std::byte{1};  // L1 id: contradicts its ROD
  EXPECT_EQ(recover(file).marked, (std::vector<bool>{false, true, false, true, false}));
}

TEST(FileRecover, AMarkStaysWhenAMarkedFileIsRecoveredAgain) {
  const Sample sample({.events = 5});
  Bytes file = sample.file;
  file[sample.offsets[1] + 15 * 4] ^= std::byte{1};
  TemporaryDirectory directory;
  Bytes again = read_file(recover_events(file, directory.path(), "once")->written->path);
  const Bytes third = blocks_of(again)[2];
  const auto at = std::search(again.begin(), again.end(), third.begin(), third.end()) - again.begin();
  again[static_cast<std::size_t>(at) + 14 * 4] ^= std::byte{1};
  EXPECT_EQ(recover(again).marked, (std::vector<bool>{false, true, true, false, false}));
}

TEST(FileRecover, MarksWhatContradictsItselfInAFileThatWasNeverClosedToo) {
  const Sample sample({.events = 4, .seal = false});
  EXPECT_EQ(recover(std::span(sample.file).first(sample.end_of(3))).told, 0u);
  Bytes file(sample.file.begin(), sample.file.begin() + static_cast<std::ptrdiff_t>(sample.end_of(3)));
  file[sample.offsets[2] + 15 * 4] ^= std::byte{1};
  const Recovered recovered = recover(file);
  EXPECT_EQ(recovered.marked, (std::vector<bool>{false, false, true, false}));
  EXPECT_TRUE(recovered.report.sound());
}

TEST(FileRecover, MarksEventsThatHaveNoStatusWordAndThoseThatAreCompressed) {
  for (const bool compressed : {false, true}) {
    EventFileSettings settings;
    settings.foreign_events = true;
    if (compressed) settings.free_strings = {"Compression=zlib"};
    EventFileEncoder encoder(settings);
    const auto header = encoder.begin_file(rodeo::test::kSampleTime, "GUID");
    Bytes file(header.begin(), header.end());
    FullEventHeader without_status;
    without_status.run_number = 5;
    without_status.status.clear();
    const Bytes event = encode_full_event(without_status, {});
    const Bytes stored = compressed ? zlib_compress(event, 1) : event;
    append_bytes(file, encoder.separator(static_cast<std::uint32_t>(stored.size())));
    append_bytes(file, stored);
    append_bytes(file, encoder.end_file(rodeo::test::kSampleTime, true));
    rodeo::test::reseal(file);
    file[17] ^= std::byte{1};
    TemporaryDirectory directory;
    const auto result = recover_events(file, directory.path(), "foreign");
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->marked, 1u);
    Bytes saved = blocks_of(read_file(result->written->path)).at(0);
    if (compressed) saved = zlib_decompress_all(saved, 10000);
    const auto view = decode_full_event(saved);
    ASSERT_TRUE(view.has_value()) << view.error().what();
    EXPECT_TRUE(view->header_not_proven());
    EXPECT_EQ(view->run_number, 5u);
    EXPECT_EQ(view->words.size(), event.size() / 4 + 1);
    EXPECT_EQ(view->header_words, 24u);
  }
}

TEST(FileRecover, JudgesNoHeaderOfAnEventThatIsCompressedWhole) {
  EventFileHeader header;
  header.free_strings = {"Rodeo-Format=1", "Compression=zlib", "Rodeo-CRC32=00000000"};
  Bytes file = encode_file_header(header);
  for (std::uint32_t number = 1; number <= 4; ++number) {
    const Bytes stored = zlib_compress(sample_event({}, number), 6);
    append_bytes(file, encode_separator({number, static_cast<std::uint32_t>(stored.size())}));
    append_bytes(file, stored);
  }
  TemporaryDirectory directory;
  const auto result = recover_events(file, directory.path(), "crafted");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->scan.events, 4u);
}

TEST(FileRecover, GoesOnBehindAnEndRecordThatDoesNotEndTheFile) {
  const Sample sample({.events = 2});
  Bytes file = sample.file;
  append_bytes(file, sample.file);
  TemporaryDirectory directory;
  const auto result = recover_events(file, directory.path(), "twice");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(blocks_of(read_file(result->written->path)),
            (std::vector<Bytes>{sample.events[0], sample.events[1], sample.events[0], sample.events[1]}));
  EXPECT_TRUE(result->scan.closed);
  EXPECT_EQ(result->scan.damaged_places, 1u);
  EXPECT_EQ(result->scan.skipped_bytes, sample.offsets[0] - kSeparatorBytes);  // the skipped bytes are the second header
  EXPECT_EQ(result->scan.missing_events, 0u);
  EXPECT_EQ(result->marked, 0u);
}

TEST(FileRecover, CountsWhatFollowsTheEndRecord) {
  const Sample sample({.events = 2});
  Bytes file = sample.file;
  file.resize(file.size() + 100);
  const auto scan = scan_events(file, [](const FoundEvent&) -> rodeo::Result<void> { return {}; });
  ASSERT_TRUE(scan.has_value());
  EXPECT_TRUE(scan->closed);
  EXPECT_EQ(scan->events, 2u);
  EXPECT_EQ(scan->damaged_places, 1u);
  EXPECT_EQ(scan->skipped_bytes, 100u);
  EXPECT_EQ(scan->missing_events, 0u);
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
