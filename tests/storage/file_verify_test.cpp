// rodeo data verify: it finds any flipped bit of a file and two swapped chunks, and accepts sound files.
#include "storage/file_verify.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>

#include "formats/checksum.h"
#include "formats/event_names.h"
#include "formats/random_event.h"
#include "storage/sample_file.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::test::sample_event;
using rodeo::test::sample_file;
using rodeo::test::SampleSettings;

std::string first_finding(const EventFileReport& report) {
  return report.sound() ? "" : report.findings.listed().front().what;
}

std::size_t find(const std::vector<std::byte>& file, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).find(text);
}

TEST(FileVerify, ASoundFilePassesAndIsCounted) {
  const std::vector<std::byte> file = sample_file({.events = 5, .links = 4, .missing_in_event = 2});
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.crc, FileCrc::holds);
  EXPECT_EQ(report.blocks, 5u);
  EXPECT_EQ(report.totals.robs, 5u);
  EXPECT_EQ(report.totals.chunks, 19u);
  EXPECT_EQ(report.totals.proven_chunks, 19u);
  EXPECT_EQ(report.totals.incomplete_robs, 1u);
  EXPECT_EQ(report.totals.missing_links, 1u);
  EXPECT_EQ(report.totals.events_with_checksum, 5u);
  EXPECT_EQ(report.adler32, adler32(file));
  EXPECT_TRUE(report.unprotected().empty());
  EXPECT_TRUE(report.end.has_value());
}

TEST(FileVerify, EventsWhoseL1IdsHaveWrappedAreProvenByTheirGlobalIds) {
  const EventFileReport report = verify_event_file(sample_file({.events = 5, .links = 4, .wrapped = true}));
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.totals.proven_chunks, 20u);
}

TEST(FileVerify, EveryWayToStoreEventsPasses) {
  for (const bool compress : {false, true}) {
    for (const ChecksumType event : {ChecksumType::none, ChecksumType::adler32}) {
      for (const ChecksumType rob : {ChecksumType::none, ChecksumType::adler32}) {
        const EventFileReport report =
            verify_event_file(sample_file({.event_checksum = event, .rob_checksum = rob, .compress = compress}));
        EXPECT_TRUE(report.sound()) << first_finding(report);
        EXPECT_EQ(report.totals.proven_chunks, 9u);
        EXPECT_EQ(report.totals.robs_with_checksum, rob == ChecksumType::none ? 0u : 3u);
      }
    }
  }
}

class AnyFlippedBit : public ::testing::TestWithParam<SampleSettings> {};

TEST_P(AnyFlippedBit, OfAFileIsFound) {
  std::vector<std::byte> file = sample_file(GetParam());
  ASSERT_TRUE(verify_event_file(file).sound());
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    file[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(verify_event_file(file).sound()) << "byte " << bit / 8 << " bit " << bit % 8;
    file[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, AnyFlippedBit,
                         ::testing::Values(SampleSettings{.events = 2}, SampleSettings{.events = 0},
                                           SampleSettings{.events = 1, .event_checksum = ChecksumType::none},
                                           SampleSettings{.events = 1, .compress = true},
                                           SampleSettings{.events = 2, .missing_in_event = 1}));

// Damage in parts protected by the provable payload is found even if all checksums are corrected.
TEST(FileVerify, EveryChunkByteIsProvenWithoutAnyChecksum) {
  const SampleSettings settings{.events = 1, .links = 2, .event_checksum = ChecksumType::none};
  const std::vector<std::byte> sound = sample_file(settings);
  const rodeo::formats::Provable provable(settings.seed);
  std::vector<std::byte> chunk(settings.chunk_bytes);
  provable.write(chunk, 0x540000, rodeo::L1Id::of(1, 1));
  const std::size_t at = find(sound, std::string_view(reinterpret_cast<const char*>(chunk.data()), chunk.size()));
  ASSERT_LT(at, sound.size());
  for (std::size_t bit = 0; bit < chunk.size() * 8; ++bit) {
    std::vector<std::byte> file = sound;
    file[at + bit / 8] ^= std::byte{1} << (bit % 8);
    rodeo::test::reseal(file);
    const EventFileReport report = verify_event_file(file);
    EXPECT_EQ(report.crc, FileCrc::holds);
    EXPECT_NE(first_finding(report).find("not what the link sent"), std::string::npos) << bit;
  }
}

TEST(FileVerify, TwoSwappedChunksAreFound) {
  const SampleSettings settings{.events = 2, .links = 4, .chunk_bytes = 16};
  const std::vector<std::byte> sound = sample_file(settings);
  std::vector<std::pair<std::size_t, std::size_t>> chunks;  // offset and size of each record's bytes
  for (std::uint32_t event = 1; event <= 2; ++event) {
    for (std::uint32_t link = 0; link < settings.links; ++link) {
      std::vector<std::byte> chunk(settings.chunk_bytes + link);
      rodeo::formats::Provable(settings.seed).write(chunk, 0x540000 + link, rodeo::L1Id::of(1, event));
      chunks.emplace_back(find(sound, std::string_view(reinterpret_cast<const char*>(chunk.data()), chunk.size())), 16);
    }
  }
  for (std::size_t a = 0; a < chunks.size(); ++a) {
    for (std::size_t b = a + 1; b < chunks.size(); ++b) {
      std::vector<std::byte> file = sound;
      std::swap_ranges(file.begin() + static_cast<std::ptrdiff_t>(chunks[a].first),
                       file.begin() + static_cast<std::ptrdiff_t>(chunks[a].first + 16),
                       file.begin() + static_cast<std::ptrdiff_t>(chunks[b].first));
      EXPECT_FALSE(verify_event_file(file).sound());
      rodeo::test::reseal(file);
      EXPECT_FALSE(verify_event_file(file).sound()) << "resealed";
    }
  }
}

// A file of several batches, each with damage: the findings and their order do not depend on the distribution to threads.
TEST(FileVerify, SeveralThreadsSayWhatOneSays) {
  std::vector<std::byte> file = sample_file({.events = 400, .links = 20, .chunk_bytes = 500, .missing_in_event = 7});
  ASSERT_GT(file.size(), 3u << 20);
  for (std::size_t at = 200'000; at < file.size(); at += 300'000) file[at] ^= std::byte{4};
  const EventFileReport one = verify_event_file(file);
  ASSERT_GT(one.findings.total(), 10u);
  for (const unsigned threads : {2U, 3U, 7U}) {
    const EventFileReport several = verify_event_file(file, {.threads = threads});
    EXPECT_EQ(several.adler32, one.adler32);
    EXPECT_EQ(several.crc, FileCrc::wrong);
    EXPECT_EQ(several.blocks, one.blocks);
    EXPECT_EQ(several.totals.chunks, one.totals.chunks);
    EXPECT_EQ(several.totals.proven_chunks, one.totals.proven_chunks);
    ASSERT_EQ(several.findings.total(), one.findings.total());
    for (std::size_t i = 0; i < one.findings.listed().size(); ++i)
      EXPECT_EQ(several.findings.listed()[i].what, one.findings.listed()[i].what);
  }
}

TEST(FileVerify, EveryByteIsToldOfTwice) {
  const std::vector<std::byte> file = sample_file({.events = 300, .links = 20, .chunk_bytes = 500});
  std::atomic<std::uint64_t> told = 0;
  std::atomic<int> calls = 0;
  const EventFileReport report = verify_event_file(file, {.threads = 2, .progress = [&](std::uint64_t bytes) {
                                                            told += bytes;
                                                            ++calls;
                                                          }});
  EXPECT_TRUE(report.sound());
  EXPECT_GT(calls.load(), 4);
  EXPECT_LE(told.load(), 2 * file.size());
  EXPECT_GT(told.load(), 2 * file.size() - 1000) << "records at both ends are reported once";
}

TEST(FileVerify, ADamagedSizeEndsTheWalkInTheSamePlace) {
  std::vector<std::byte> file = sample_file({.events = 200, .links = 20, .chunk_bytes = 500});
  const std::vector<std::byte> event = sample_event({.events = 200, .links = 20, .chunk_bytes = 500}, 1);
  const std::size_t last = file.size() - kFileEndBytes - 50 * (event.size() + kSeparatorBytes);
  file[last + 15] ^= std::byte{0x40};
  for (const unsigned threads : {1U, 4U}) {
    const EventFileReport report = verify_event_file(file, {.threads = threads});
    ASSERT_TRUE(report.unread);
    EXPECT_EQ(report.unread->offset, last + 12);
    EXPECT_EQ(report.blocks, 150u);
    EXPECT_EQ(report.totals.events, 150u);
  }
}

TEST(FileVerify, SwappedEventsAreFoundByTheirNumbers) {
  std::vector<std::byte> file = sample_file({.events = 2});
  const std::size_t size = kSeparatorBytes + sample_event({.events = 2}, 1).size();
  const std::size_t first = file.size() - kFileEndBytes - 2 * size;
  std::swap_ranges(file.begin() + static_cast<std::ptrdiff_t>(first),
                   file.begin() + static_cast<std::ptrdiff_t>(first + size),
                   file.begin() + static_cast<std::ptrdiff_t>(first + size));
  rodeo::test::reseal(file);
  EXPECT_NE(first_finding(verify_event_file(file)).find("data block has number 2, not 1"), std::string::npos);
}

TEST(FileVerify, AFlaggedChunkThatWasDamagedBeforeIsNoFault) {
  const SampleSettings settings{.events = 1, .links = 1, .event_checksum = ChecksumType::none};
  std::vector<std::byte> file = sample_file(settings);
  std::vector<std::byte> chunk(settings.chunk_bytes);
  rodeo::formats::Provable(settings.seed).write(chunk, 0x540000, rodeo::L1Id::of(1, 1));
  const std::size_t at = find(file, std::string_view(reinterpret_cast<const char*>(chunk.data()), chunk.size()));
  file[at + 9] ^= std::byte{1};
  file[at - 5] = std::byte{rodeo::chunk_flag::kCorrupt};
  rodeo::test::reseal(file);
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.totals.flagged_chunks, 1u);
  EXPECT_EQ(report.totals.proven_chunks, 0u);
}

TEST(FileVerify, RemovedLinksAreCountedAndNotMissing) {
  const std::vector<std::byte> file = sample_file({.events = 5, .links = 40, .missing_in_event = 2, .removed_in_event = 4});
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.totals.incomplete_robs, 1u);
  EXPECT_EQ(report.totals.missing_links, 1u);
  EXPECT_EQ(report.totals.robs_without_removed, 1u);
  EXPECT_EQ(report.totals.removed_links, 1u);
  EXPECT_EQ(report.totals.proven_chunks, 198u);
}

TEST(FileVerify, StatusWordsThatContradictEachOtherAreFound) {
  const SampleSettings settings{.events = 1, .links = 3, .event_checksum = ChecksumType::none, .missing_in_event = 1};
  const std::vector<std::byte> sound = sample_file(settings);
  const std::size_t status = find(sound, std::string_view("\xee\x34\x12\xee", 4)) + 9 * 4;
  // These words are the generic status, the number of missing links, and the bitmaps of missing and removed links.
  for (const std::size_t at : {status + 2, status + 4, status + 12, status + 16}) {
    std::vector<std::byte> file = sound;
    file[at] ^= std::byte{1};
    rodeo::test::reseal(file);
    EXPECT_FALSE(verify_event_file(file).sound()) << at - status;
  }
}

TEST(FileVerify, AWrongBcidInAChunkIsNoFaultOnlyWhereTheChunkSaysSo) {
  const SampleSettings settings{.events = 1, .links = 2, .event_checksum = ChecksumType::none};
  std::vector<std::byte> file = sample_file(settings);
  std::vector<std::byte> chunk(settings.chunk_bytes);
  rodeo::formats::Provable(settings.seed).write(chunk, 0x540000, rodeo::L1Id::of(1, 1));
  const std::size_t at = find(file, std::string_view(reinterpret_cast<const char*>(chunk.data()), chunk.size()));
  file[at + 4] ^= std::byte{0x10};
  rodeo::test::reseal(file);
  EXPECT_NE(first_finding(verify_event_file(file)).find("not what the link sent"), std::string::npos);
  const std::size_t rod_status = at - 8 - 4;
  file[rod_status] = std::byte{rodeo::fragment_status::kBcidMismatch};
  file[at - 5] = std::byte{rodeo::chunk_flag::kBcidMismatch};
  rodeo::test::reseal(file);
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.totals.flagged_chunks, 1u);
  file[at - 5] = std::byte{0};
  EXPECT_FALSE(verify_event_file(file).wrong_as_written()) << "damaged: the CRC is wrong";
  rodeo::test::reseal(file);
  const EventFileReport wrong = verify_event_file(file);
  EXPECT_FALSE(wrong.sound());
  EXPECT_TRUE(wrong.wrong_as_written()) << "the file is unchanged, and reports that the fragment is wrong";
  EXPECT_EQ(wrong.totals.wrong_chunks, 1u);
  EXPECT_EQ(wrong.totals.wrong_in_flagged, 1u);
}

TEST(FileVerify, AnUnclosedFileSaysSo) {
  const EventFileReport report = verify_event_file(sample_file({.seal = false}));
  EXPECT_EQ(report.crc, FileCrc::open);
  EXPECT_NE(first_finding(report).find("never closed"), std::string::npos);
}

TEST(FileVerify, AnEndRecordThatCannotBeReachedIsNotKnownToBeMissing) {
  const std::vector<std::byte> sound = sample_file({.events = 3});
  const std::size_t second = sound.size() - kFileEndBytes - 2 * (sample_event({.events = 3}, 2).size() + kSeparatorBytes);
  for (const std::size_t word : {0, 1, 3}) {  // marker, size of the separator, size of the data block
    std::vector<std::byte> file = sound;
    file[second + 4 * word + 3] ^= std::byte{0x40};
    const EventFileReport report = verify_event_file(file);
    EXPECT_EQ(report.blocks, 1u);
    ASSERT_TRUE(report.unread.has_value()) << word;
    EXPECT_EQ(report.unread->offset, second + 4 * word);
  }
  std::vector<std::byte> file = sound;
  file.resize(sound.size() - kFileEndBytes);
  EXPECT_FALSE(verify_event_file(file).unread.has_value()) << "it ends where the record should be";
  EXPECT_FALSE(verify_event_file(sound).unread.has_value());
}

TEST(FileVerify, EveryCutFileIsFound) {
  const std::vector<std::byte> file = sample_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(verify_event_file(std::span(file).first(size)).sound()) << size;
  }
}

TEST(FileVerify, AForeignFileIsCheckedAndSaysWhatWasNotProtected) {
  EventFileHeader header;
  header.free_strings = {"GUID=0", "Stream=physics_Main"};
  std::vector<std::byte> file = encode_file_header(header);
  rodeo::test::RandomEvents random(1);
  FullEventHeader fields = random.event_header();
  fields.checksum_type = ChecksumType::none;
  fields.compression = Compression::none;
  const std::vector<std::byte> event = encode_full_event(fields, random.rob());
  append_bytes(file, encode_separator({77, static_cast<std::uint32_t>(event.size())}));
  append_bytes(file, event);
  append_bytes(file, encode_file_end({.blocks_in_file = 1}));
  const EventFileReport report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << first_finding(report);
  EXPECT_EQ(report.crc, FileCrc::foreign);
  EXPECT_EQ(report.unprotected().size(), 2u);
}

TEST(FileVerify, RandomDamageIsSurvivedAndFound) {
  rodeo::test::RandomEvents random(2);
  const std::vector<std::byte> sound = sample_file({.events = 4});
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> file = sound;
    for (int n = 0; n < 5; ++n)
      file[random.below(static_cast<std::uint32_t>(file.size()))] = static_cast<std::byte>(random.word());
    file.resize(random.below(static_cast<std::uint32_t>(file.size())) + 1);
    if (!std::equal(file.begin(), file.end(), sound.begin()) || file.size() < sound.size()) {
      EXPECT_FALSE(verify_event_file(file).sound());
    }
  }
}

TEST(FileKind, IsToldByTheFirstBytes) {
  EXPECT_EQ(file_kind({}), FileKind::empty);
  EXPECT_EQ(file_kind(sample_file({.events = 0})), FileKind::event_file);
  EXPECT_EQ(file_kind(std::vector<std::byte>(10000)), FileKind::zeros);
  EXPECT_EQ(file_kind(std::as_bytes(std::span("hello, world"))), FileKind::foreign);
  const std::uint32_t block = 0xabcd0040;
  EXPECT_EQ(file_kind(std::as_bytes(std::span(&block, 1))), FileKind::block_recording);
}

TEST(EventNames, StatusBitsAreSaidInWords) {
  EXPECT_EQ(joined_or_ok(status_names(0, FragmentKind::rob)), "ok");
  EXPECT_EQ(joined_or_ok(status_names(0x20000014, FragmentKind::rob)), "time-out, internal overflow, fragment lost");
  EXPECT_EQ(joined_or_ok(status_names(0x80000001, FragmentKind::event)), "BCID mismatch, partial event");
  EXPECT_EQ(joined_or_ok(status_names(0x00030000, FragmentKind::rod)), "links removed, bit 17");
  EXPECT_EQ(subdetector_name(0x6b), "NSW Micromegas");
}

}  // namespace
