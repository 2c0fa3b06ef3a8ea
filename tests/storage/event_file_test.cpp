// Event files: files of the writer are read back by the reader and checked separately.
#include <gtest/gtest.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "formats/checksum.h"
#include "formats/random_event.h"
#include "formats/temporary_directory.h"
#include "formats/zlib_stream.h"
#include "storage/event_file_encoder.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_sequence.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::test::RandomEvents;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;

constexpr std::time_t kNow = 1795231845;

EventFileSettings settings() {
  EventFileSettings settings;
  settings.project = "data26_test";
  settings.application = "readout-1";
  settings.lumi_block = 525;
  settings.run = {.run_number = 431493, .max_events = 0, .detector_mask = {1, 2, 3, 4}};
  settings.free_strings = {"Site=test"};
  settings.provable = ProvableMark{.seed = 7};
  return settings;
}

std::vector<std::vector<std::byte>> blocks_of(EventFileReader& reader) {
  std::vector<std::vector<std::byte>> blocks;
  while (true) {
    const auto block = reader.next();
    if (!block || !*block) break;
    blocks.emplace_back((*block)->stored.begin(), (*block)->stored.end());
  }
  return blocks;
}

/// A sequence of files, written event by event.
struct Writing {
  EventFileSequence sequence;
  std::vector<rodeo::FragmentConsumer::File> files;

  Writing(const std::string& directory, const EventFileSettings& settings)
      : sequence({.directory = directory, .files = settings}) {
    sequence.start();
  }
  bool add(std::span<const std::byte> event) {
    return sequence.append({&event, 1}, event.size()) == EventFileSequence::Outcome::taken;
  }
  bool close() {
    sequence.close();
    files = sequence.status().files;
    return sequence.status().failure.empty();
  }
};

/// The error code if a sequence with these settings is refused, else empty.
std::string refusal(const std::string& directory, const EventFileSettings& settings) {
  try {
    const Writing writing(directory, settings);
    return "";
  } catch (const rodeo::SetupError& error) {
    EXPECT_NE(error.error().message().find(directory), std::string::npos) << error.error().message();
    return error.error().code;
  }
}

TEST(IdsMark, SaysHowL1IdsCount) {
  for (const IdLayout& ids :
       {IdLayout{}, IdLayout{.bits = 7, .has_resets = false}, IdLayout{.bits = 24, .has_resets = false},
        IdLayout{.bits = 28, .has_resets = false}, IdLayout{.bits = 32, .has_resets = false}}) {
    const std::string text = IdsMark{ids}.text();
    const auto read = IdsMark::parse(text.substr(text.find('=') + 1));
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->layout, ids) << text;
  }
  EXPECT_EQ(IdsMark{}.text(), "Rodeo-Ids=global");
  EXPECT_EQ(IdsMark{IdLayout{}}.text(), "Rodeo-Ids=global l1id_bits=32");
  EXPECT_EQ((IdsMark{IdLayout{.bits = 32, .has_resets = false}}.text()), "Rodeo-Ids=global l1id_counter=32");
  for (const char* const text :
       {"", "local", "global ", "global l1id_bits=0", "global l1id_bits=33", "global l1id_counter=24"})
    EXPECT_FALSE(IdsMark::parse(text)) << text;
}

TEST(EventFile, WhatIsWrittenComesBack) {
  TemporaryDirectory directory;
  RandomEvents random(1);
  std::vector<std::vector<std::byte>> events;
  const std::time_t before = std::time(nullptr);
  Writing writer(directory.path(), settings());
  for (int i = 0; i < 20; ++i) {
    events.push_back(random.event());
    ASSERT_TRUE(writer.add(events.back()));
  }
  ASSERT_TRUE(writer.close());
  ASSERT_EQ(writer.files.size(), 1u);
  const rodeo::FragmentConsumer::File& closed = writer.files[0];
  EXPECT_EQ(closed.path, directory.file("data26_test.00431493.physics_Main.daq.RAW._lb0525._readout-1._0001.data"));

  const std::vector<std::byte> file = read_file(closed.path);
  EXPECT_EQ(file.size(), closed.bytes);
  EXPECT_EQ(adler32(file), closed.adler32);
  auto reader = EventFileReader::open(file);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(blocks_of(*reader), events);
  ASSERT_TRUE(reader->end().has_value());
  EXPECT_EQ(reader->position(), file.size());

  const DecodedFileHeader& header = reader->header();
  EXPECT_EQ(header.version, 6u);
  EXPECT_EQ(header.application, "readout-1");
  EXPECT_EQ(header.run, settings().run);
  bool then = false;
  for (std::time_t now = before; now <= std::time(nullptr); ++now) then = then || header.opened == FileTime::of(now);
  EXPECT_TRUE(then) << header.opened.text();
  EXPECT_EQ(header.free_string("Stream"), "physics_Main");
  EXPECT_EQ(header.free_string("Project"), "data26_test");
  EXPECT_EQ(header.free_string("LumiBlock"), "525");
  EXPECT_EQ(header.free_string("Site"), "test");
  EXPECT_EQ(ProvableMark::parse(header.free_string(kProvableKey)), ProvableMark{.seed = 7});
  EXPECT_EQ(header.free_strings.front().substr(0, 5), "GUID=");
  EXPECT_EQ(header.free_strings.front().size(), 5u + 36u);
  EXPECT_EQ(reader->end()->blocks_in_file, 20u);
  EXPECT_EQ(reader->end()->last_file, 1u);
}

TEST(EventFile, ItsCrcIsThatOfTheFileWithItsDigitsZero) {
  TemporaryDirectory directory;
  Writing writer(directory.path(), settings());
  ASSERT_TRUE(writer.add(RandomEvents(2).event()));
  ASSERT_TRUE(writer.close());
  std::vector<std::byte> file = read_file(writer.files[0].path);
  std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t at = text.find("Rodeo-CRC32=") + 12;
  const std::string digits = text.substr(at, 8);
  std::fill_n(file.data() + at, 8, std::byte{'0'});
  const auto crc = ::crc32_z(0, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  char expected[9];
  std::snprintf(expected, sizeof expected, "%08lx", crc);
  EXPECT_EQ(digits, expected);
}

TEST(EventFile, RollsOverByNumberOfEvents) {
  TemporaryDirectory directory;
  EventFileSettings limited = settings();
  limited.simple_name = "small";
  limited.max_blocks = 3;
  Writing writer(directory.path(), limited);
  RandomEvents random(3);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(writer.add(random.event()));
  ASSERT_TRUE(writer.close());
  ASSERT_EQ(writer.files.size(), 3u);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(writer.files[i].path, directory.file("small._000" + std::to_string(i + 1) + ".data"));
    const std::vector<std::byte> file = read_file(writer.files[i].path);
    auto reader = EventFileReader::open(file);
    ASSERT_TRUE(reader.has_value());
    EXPECT_EQ(reader->header().file_number, i + 1);
    EXPECT_EQ(reader->header().max_blocks, 3u);
    while (true) {
      const auto block = reader->next();
      ASSERT_TRUE(block.has_value());
      if (!*block) break;
      EXPECT_EQ((*block)->number, ++number);
    }
    EXPECT_EQ(reader->end()->blocks_in_file, i < 2 ? 3u : 1u);
    EXPECT_EQ(reader->end()->blocks_in_sequence, number);
    EXPECT_EQ(reader->end()->last_file, i < 2 ? 0u : 1u);
  }
}

TEST(EventFile, NoFileBecomesLargerThanItsLimitUnlessItHoldsOneEvent) {
  TemporaryDirectory directory;
  EventFileSettings limited = settings();
  limited.max_bytes = 100'000;
  Writing writer(directory.path(), limited);
  for (std::size_t i = 0; i < 200; ++i) ASSERT_TRUE(writer.add(std::vector<std::byte>(1000 + i * 37 % 5000 / 4 * 4)));
  ASSERT_TRUE(writer.add(std::vector<std::byte>(200'000)));
  ASSERT_TRUE(writer.close());
  ASSERT_GE(writer.files.size(), 5u);
  for (std::size_t i = 0; i + 1 < writer.files.size(); ++i) {
    const auto size = read_file(writer.files[i].path).size();
    EXPECT_LE(size, limited.max_bytes);
    if (i + 2 < writer.files.size()) {
      EXPECT_GT(size + 6100, limited.max_bytes) << "the next event would fit";
    }
  }
  const std::vector<std::byte> file = read_file(writer.files[0].path);
  const auto reader = EventFileReader::open(file);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->header().max_mib, 1u);
}

TEST(EventFile, RollsOverBySizeAndCountsMebibytesRounded) {
  TemporaryDirectory directory;
  EventFileSettings limited = settings();
  limited.max_bytes = 5 << 19;
  Writing writer(directory.path(), limited);
  const std::vector<std::byte> block(700 * 1024);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(writer.add(block));
  ASSERT_TRUE(writer.close());
  ASSERT_EQ(writer.files.size(), 2u);  // 3 x 700 KiB are 2.05 MiB, 4 are 2.7
  const std::vector<std::byte> file = read_file(writer.files[1].path);
  const auto end = decode_file_end(std::span(file).last(kFileEndBytes));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->blocks_in_file, 2u);
  EXPECT_EQ(end->mib_in_file, 1u);
  EXPECT_EQ(end->mib_in_sequence, 3u);
}

TEST(EventFile, IsCalledWritingUntilItIsClosedAndNeverOverwrites) {
  TemporaryDirectory directory;
  EventFileSettings simple = settings();
  simple.simple_name = "run";
  {
    Writing writer(directory.path(), simple);
    ASSERT_TRUE(writer.add(RandomEvents(4).event()));
    EXPECT_TRUE(std::filesystem::exists(directory.file("run._0001.writing")));
    EXPECT_FALSE(std::filesystem::exists(directory.file("run._0001.data")));
    EXPECT_EQ(refusal(directory.path(), simple), "file.exists");
    ASSERT_TRUE(writer.close());
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("run._0001.writing")));
  EXPECT_EQ(refusal(directory.path(), simple), "file.exists");
}

TEST(EventFile, ADirectoryThatCannotBeMadeIsSaidByName) {
  EXPECT_EQ(refusal("/proc/nowhere", settings()), "readout.cannot_write");
}

TEST(EventFile, RunParametersOfOlderVersionsAreRead) {
  for (const std::uint32_t version : {2u, 5u}) {
    std::vector<std::byte> bytes;
    for (const std::uint32_t word :
         {0x1234aaaau, 8u, version, 1u, 21112026u, 30405u, 0u, 0u, 0x1234aabbu, 0u, 3u, 0x20636261u}) {
      append_word(bytes, word);
    }
    if (version == 5) {
      for (const std::uint32_t word : {0x1234aabcu, 1u, 2u, 0x20207978u}) append_word(bytes, word);
    }
    for (const std::uint32_t word : {0x1234bbbbu, version == 2 ? 9u : 10u, 99u, 5u, 1u, 3u, 0xf0u}) append_word(bytes, word);
    if (version == 5) append_word(bytes, 0xabu);
    for (const std::uint32_t word : {1u, 6500u}) append_word(bytes, word);
    const auto header = decode_file_header(bytes);
    ASSERT_TRUE(header.has_value()) << header.error().message();
    EXPECT_EQ(header->size_bytes, bytes.size());
    EXPECT_EQ(header->core_name, "abc");
    EXPECT_EQ(header->run.run_number, 99u);
    EXPECT_EQ(header->run.detector_mask[0], 0xf0u);
    EXPECT_EQ(header->run.detector_mask[1], version == 2 ? 0u : 0xabu);
    EXPECT_EQ(header->run.beam_energy, 6500u);
    EXPECT_EQ(header->free_strings.size(), version == 2 ? 0u : 1u);
  }
}

TEST(EventFile, EveryCutEndsInAnErrorOrAMissingEnd) {
  RandomEvents random(5);
  EventFileEncoder encoder(settings());
  const auto header = encoder.begin_file(kNow, make_guid());
  std::vector<std::byte> file(header.begin(), header.end());
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::byte> event = random.rob();
    append_bytes(file, encoder.separator(static_cast<std::uint32_t>(event.size())));
    append_bytes(file, event);
  }
  append_bytes(file, encoder.end_file(kNow, true));
  ASSERT_EQ(file.size(), encoder.file_bytes());
  for (std::size_t size = 0; size < file.size(); ++size) {
    auto reader = EventFileReader::open(std::span(file).first(size));
    if (!reader) continue;
    while (true) {
      const auto block = reader->next();
      if (!block) break;
      ASSERT_TRUE(block->has_value()) << "cut at " << size << " was not noticed";
    }
    EXPECT_FALSE(reader->end().has_value());
  }
}

TEST(EventFile, BlocksThatAForeignWriterCompressedAreDecompressed) {
  EventFileHeader header;
  header.free_strings = {"GUID=1", "Compression=zlib"};
  std::vector<std::byte> file = encode_file_header(header);
  const std::vector<std::byte> event = RandomEvents(6).event();
  const std::vector<std::byte> stored = zlib_compress(event, 6);
  append_bytes(file, encode_separator({1, static_cast<std::uint32_t>(stored.size())}));
  append_bytes(file, stored);
  auto reader = EventFileReader::open(file);
  ASSERT_TRUE(reader.has_value());
  const auto block = reader->next();
  ASSERT_TRUE(block.has_value() && block->has_value());
  std::vector<std::byte> buffer;
  const auto found = reader->event(**block, buffer);
  EXPECT_EQ(std::vector<std::byte>(found.begin(), found.end()), event);
}

}  // namespace
