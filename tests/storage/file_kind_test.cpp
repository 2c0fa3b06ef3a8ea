// The kind of a file: a Rodeo file, sound or damaged, or another kind, with the program that reads it.
#include "storage/file_kind.h"

#include <gtest/gtest.h>

#include <string_view>

#include "formats/block.h"
#include "formats/rdh_stream.h"
#include "formats/superpage_dump.h"
#include "formats/words.h"
#include "storage/event_file_walk.h"
#include "storage/file_verify.h"
#include "storage/sample_file.h"

namespace {

using namespace rodeo::storage;
using namespace rodeo::formats;
using rodeo::test::sample_event;
using rodeo::test::sample_file;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes first(const Bytes& file, std::size_t bytes) {
  return {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(std::min(bytes, file.size()))};
}

// An event file of an older ATLAS format: version 2, events of format 3.0.
Bytes older_file() {
  Bytes file;
  const auto words = [&](std::initializer_list<std::uint32_t> some) {
    for (const std::uint32_t word : some) append_word(file, word);
  };
  words({kFileStartMarker, 8, 2, 2, 8042026, 120340, 0, 2008, kFileNamesMarker, 4});
  append_bytes(file, bytes_of("SFO1"));
  words({4});
  append_bytes(file, bytes_of("All "));
  words({kRunParametersMarker, 9, 91668, 0, 0, 0, 0, 0, 0});
  for (std::uint32_t number = 1; number < 4; ++number) {
    words({kSeparatorMarker, 4, number, 6 * 4, kFullEventMarker, 6, 6, 0x03000000, 0x790b50, 0});
  }
  return file;
}

Bytes pages(std::uint8_t version) {
  Bytes file = rodeo::formats::testing::RdhStream{}.file();
  for_each_page(file, [&](std::size_t at) {
    file[at] = std::byte{version};
    return true;
  });
  return file;
}

TEST(FileKind, WhatIsOursIsOursHoweverItIsCutInItsFirstRecord) {
  const Bytes events = sample_file();
  for (std::size_t size = 2; size < 400; ++size) EXPECT_EQ(file_kind(first(events, size)), FileKind::event_file) << size;
  const Bytes dump = rodeo::formats::testing::RdhStream{}.file();
  for (std::size_t size = 4; size < 400; ++size) EXPECT_EQ(file_kind(first(dump, size)), FileKind::superpage_dump) << size;
}

TEST(FileKind, ADamagedBeginningHidesNoEventAndNoPage) {
  Bytes events = sample_file();
  std::fill_n(events.begin(), 40, std::byte{0x55});
  EXPECT_EQ(file_kind(events), FileKind::event_file);
  Bytes dump = rodeo::formats::testing::RdhStream{}.file();
  std::fill_n(dump.begin(), 40, std::byte{0x55});
  EXPECT_EQ(file_kind(dump), FileKind::superpage_dump);
}

TEST(FileKind, WhatIsNotOursIsSaidByNameWithWhatReadsIt) {
  const struct {
    Bytes file;
    std::string_view what;
    std::string_view reader;
  } cases[] = {{bytes_of("\x1f\x8b\x08" + std::string(50, 'x')), "gzip", "gunzip"},
               {bytes_of("\x89HDF\r\n\x1a\n" + std::string(50, 'x')), "HDF5", "rodeo data convert"},
               {bytes_of(std::string("\x00\x80\x4d\x49", 4) + std::string(50, 'x')), "MIDAS", "mdump"},
               {bytes_of(std::string("\x20\x00\x00\x00\x01\x00\x03\x00", 8) + std::string(50, 'x')), "HLD", "go4"},
               {bytes_of("_DET" + std::string(50, '\1')), "EUDAQ", "EUDAQ"},
               {bytes_of("# no data\n"), "text", "editor"},
               {bytes_of("\xaa"), "1 byte", "nothing"},
               {bytes_of("\x01\x02\x03\x04\x05\x06\x07"), "unknown format", "wrote it"}};
  for (const auto& one : cases) {
    EXPECT_EQ(file_kind(one.file), FileKind::foreign) << one.what;
    const OtherFile other = describe_other(one.file);
    EXPECT_NE(other.what.find(one.what), std::string::npos) << other.what;
    EXPECT_NE(other.reader.find(one.reader), std::string::npos) << other.reader;
    EXPECT_EQ(no_data_error(FileKind::foreign, one.file, "x").code, "data.unknown_kind");
  }
}

TEST(FileKind, AnotherVersionIsNoDamage) {
  for (const Bytes& file : {older_file(), pages(5)}) {
    EXPECT_EQ(file_kind(file), FileKind::other_version);
    EXPECT_EQ(no_event_file(FileKind::other_version, file, "x").code, "data.other_version");
  }
  EXPECT_NE(describe_other(older_file()).what.find("version 2) with events of format 3.0"), std::string::npos);
  EXPECT_NE(describe_other(older_file()).reader.find("pybes3"), std::string::npos);
  EXPECT_NE(describe_other(pages(5)).what.find("version 5"), std::string::npos);
  // A flipped bit that changes the version of one of our events or files is damage, not another format.
  Bytes event = sample_file();
  const auto at = static_cast<std::ptrdiff_t>(event.size() - kFileEndBytes - sample_event({}, 3).size());
  event[static_cast<std::size_t>(at) + 15] ^= std::byte{6};
  EXPECT_EQ(file_kind(event), FileKind::event_file);
  Bytes file = sample_file();
  file[8] ^= std::byte{1};
  EXPECT_EQ(file_kind(file), FileKind::event_file);
}

TEST(FileKind, EmptyFilesAndZerosAreDamage) {
  EXPECT_EQ(file_kind({}), FileKind::empty);
  EXPECT_EQ(file_kind(Bytes(9000)), FileKind::zeros);
  EXPECT_EQ(no_data_error(FileKind::zeros, Bytes(9000), "x").code, "data.zeros");
}

}  // namespace
