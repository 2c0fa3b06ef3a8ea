#include "readout/consumer/works.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <unordered_set>

#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using test::counter_of;
using test::FragmentPool;

ChunkHeader header_at(const std::byte* at) {
  ChunkHeader header;
  std::memcpy(&header, at, sizeof header);
  return header;
}
void store_header(std::byte* at, const ChunkHeader& header) { std::memcpy(at, &header, sizeof header); }

class Verify : public testing::Test {
 protected:
  std::uint64_t count(const VerifyWork& work, std::string_view name) const { return counter_of(work.counters(), name); }
  FragmentPool pool_{{.links = 24, .chunk_bytes = 40, .links_per_part = 8}};
  VerifyWork work_{VerifyWork::Settings{.seed = 1}};
};

TEST_F(Verify, ProvesSoundFragmentsOfManySizes) {
  for (const std::uint32_t bytes : {8u, 9u, 11u, 12u, 13u, 40u, 41u, 63u, 500u}) {
    for (const bool crc : {false, true}) {
      const FragmentPool pool({.links = 5, .chunk_bytes = bytes, .links_per_part = 3, .crc = crc, .seed = 9});
      VerifyWork work({.seed = 9, .crc = crc, .chunk_bytes = bytes});
      for (Sequence i = 0; i < 20; ++i) work.process(*pool.make(i));
      EXPECT_EQ(count(work, "verified_chunks"), 100u) << bytes;
      EXPECT_EQ(count(work, "mismatches"), 0u) << bytes;
    }
  }
}

TEST_F(Verify, FindsEveryFlippedBitOfAChunk) {
  FragmentPtr fragment = pool_.make(77);
  std::uint64_t flipped = 0;
  for (std::size_t bit = 0; bit < 40 * 8; ++bit) {
    std::byte& byte = fragment->parts[1].data[sizeof(ChunkHeader) + bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    work_.process(*fragment);
    byte ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(count(work_, "wrong_chunks"), ++flipped) << "bit " << bit;
  }
  EXPECT_EQ(count(work_, "mismatching_fragments"), flipped);
  EXPECT_EQ(count(work_, "verified_chunks"), flipped * 23);
}

TEST_F(Verify, FindsAWrongLinkIdAndSwappedChunks) {
  FragmentPtr fragment = pool_.make(5);
  std::byte* const first = fragment->parts[0].data;
  ChunkHeader header = header_at(first);
  header.link_id = 1001;
  store_header(first, header);
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "wrong_chunks"), 1u);

  FragmentPtr swapped = pool_.make(6);
  std::byte* const a = swapped->parts[0].data + sizeof(ChunkHeader);
  std::swap_ranges(a, a + 40, a + 48);
  work_.process(*swapped);
  EXPECT_EQ(count(work_, "wrong_chunks"), 3u);
}

TEST_F(Verify, FindsAChunkOfAnotherEventAndALinkThatOccursTwice) {
  FragmentPtr fragment = pool_.make(5);
  const FragmentPtr other = pool_.make(6);
  std::memcpy(fragment->parts[0].data, other->parts[0].data, 48);
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "wrong_chunks"), 1u);

  FragmentPtr twice = pool_.make(7);
  std::memcpy(twice->parts[0].data, twice->parts[2].data, 48);
  work_.process(*twice);
  EXPECT_EQ(count(work_, "duplicate_links"), 1u);
  EXPECT_EQ(count(work_, "mismatches"), 2u);
}

TEST_F(Verify, SaysWhichEventAndLinkDidNotMatchFirst) {
  work_.process(*pool_.make(4));
  for (const NamedCounter& counter : work_.counters()) EXPECT_FALSE(counter.name.starts_with("first_wrong"));
  std::uint64_t l1id = 0;
  std::uint64_t link_id = 0;
  for (const Sequence event : {5, 6}) {
    FragmentPtr fragment = pool_.make(event);
    std::byte* const chunk = fragment->parts[event - 5].data;
    chunk[sizeof(ChunkHeader) + 20] ^= std::byte{1};
    if (event == 5) {
      l1id = fragment->l1id.value;
      link_id = header_at(chunk).link_id;
    }
    work_.process(*fragment);
  }
  EXPECT_EQ(count(work_, "wrong_chunks"), 2u);
  EXPECT_EQ(count(work_, "first_wrong_l1id"), l1id);
  EXPECT_EQ(count(work_, "first_wrong_link_id"), link_id);
}

TEST_F(Verify, CountsFlaggedChunksApartAndDoesNotCompareThem) {
  FragmentPtr fragment = pool_.make(5);
  std::byte* const first = fragment->parts[0].data;
  ChunkHeader header = header_at(first);
  header.rodeo_status = chunk_flag::kCorrupt;
  store_header(first, header);
  first[20] ^= std::byte{0xff};
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "flagged_chunks"), 1u);
  EXPECT_EQ(count(work_, "verified_chunks"), 23u);
  EXPECT_EQ(count(work_, "mismatches"), 0u);
}

TEST_F(Verify, ComparesTheTriggerOfTheFragment) {
  FragmentPtr fragment = pool_.make(5);
  fragment->bcid ^= 1;
  work_.process(*fragment);
  fragment->bcid ^= 1;
  fragment->trigger_type ^= 1;
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "wrong_triggers"), 2u);
  VerifyWork without({.seed = 1, .trigger = false});
  without.process(*fragment);
  EXPECT_EQ(count(without, "mismatches"), 0u);
}

TEST_F(Verify, FindsStructuresThatDoNotHold) {
  FragmentPtr cut = pool_.make(5);
  cut->parts[2].size -= 4;
  work_.process(*cut);
  EXPECT_EQ(count(work_, "broken_fragments"), 1u);
  FragmentPtr fewer = pool_.make(6);
  fewer->chunks -= 1;
  work_.process(*fewer);
  EXPECT_EQ(count(work_, "broken_fragments"), 2u);
  FragmentPtr small = pool_.make(7);
  ChunkHeader header = header_at(small->parts[0].data);
  header.size = 3;
  store_header(small->parts[0].data, header);
  work_.process(*small);
  EXPECT_EQ(count(work_, "broken_fragments"), 3u);
}

TEST_F(Verify, FindsALinkThatIsListedAsMissingAndThereAllTheSame) {
  const FragmentPtr fragment = pool_.make(5, 20);
  ASSERT_EQ(fragment->missing, 4u);
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "mismatches"), 0u);
  fragment->missing_links[0] |= 1U << 4;
  work_.process(*fragment);
  EXPECT_EQ(count(work_, "missing_but_present"), 1u);
}

TEST_F(Verify, FindsChunksCutShortIfToldTheirSize) {
  const FragmentPool pool({.links = 4, .chunk_bytes = 32});
  VerifyWork any({.seed = 1});
  any.process(*pool.make(1));
  EXPECT_EQ(count(any, "mismatches"), 0u) << "a prefix is correct";
  VerifyWork forty({.seed = 1, .chunk_bytes = 40});
  forty.process(*pool.make(1));
  EXPECT_EQ(count(forty, "wrong_chunks"), 4u);
}

TEST_F(Verify, WalksChunksWhoseBytesAreAPartOfTheirOwn) {
  // In FULL mode a chunk has a header part, a bytes part and a padding part. One chunk's size does not fit its header.
  const formats::Provable provable(1);
  const L1Id l1id{42};
  std::vector<std::byte> bytes(70'001);
  provable.write(bytes, 7, l1id);
  std::vector<std::byte> small(13);
  provable.write(small, 8, l1id);
  std::byte long_header[12];
  store_chunk_header(long_header, {.link_id = 7}, bytes.size());
  std::byte small_header[8];
  store_chunk_header(small_header, {.link_id = 8}, small.size());
  std::byte padding[3] = {};
  FragmentPart parts[] = {{long_header, 12}, {bytes.data(), bytes.size()}, {padding, 3},
                          {small_header, 8}, {small.data(), small.size()}, {padding, 3}};
  Fragment fragment;
  fragment.l1id = l1id;
  fragment.global_id = l1id.value;
  fragment.bcid = provable.trigger(l1id).bcid;
  fragment.trigger_type = provable.trigger(l1id).trigger_type;
  fragment.chunks = 2;
  fragment.parts = parts;
  fragment.part_count = 6;
  work_.process(fragment);
  EXPECT_EQ(count(work_, "verified_chunks"), 2u);
  EXPECT_EQ(count(work_, "mismatches"), 0u);
  bytes[69'990] ^= std::byte{4};
  work_.process(fragment);
  EXPECT_EQ(count(work_, "wrong_chunks"), 1u);
}

TEST_F(Verify, KnowsNarrowFormatsBeyondTheirWrapAndTheirResets) {
  for (const std::uint32_t bits : {8U, 16U, 24U}) {
    const formats::Provable provable(1, false, bits);
    VerifyWork narrow({.seed = 1, .l1id_bits = bits});
    VerifyWork wide({.seed = 1});
    for (const L1Id l1id : {L1Id::of(0, 7), L1Id::of(0, 0x01'0003), L1Id::of(3, 9)}) {
      std::vector<std::byte> record(48);
      store_header(record.data(), {.size = 48, .link_id = 7});
      provable.write(std::span(record).subspan(8), 7, l1id);
      FragmentPart part{record.data(), record.size()};
      Fragment fragment;
      fragment.l1id = L1Id::of(0, l1id.l1());  // the format has no reset counter
      fragment.global_id = l1id.value;
      fragment.bcid = provable.trigger(l1id).bcid;
      fragment.trigger_type = provable.trigger(l1id).trigger_type;
      fragment.chunks = 1;
      fragment.parts = &part;
      fragment.part_count = 1;
      narrow.process(fragment);
      wide.process(fragment);
    }
    EXPECT_EQ(count(narrow, "verified_chunks"), 3u) << bits;
    EXPECT_EQ(count(narrow, "mismatches"), 0u) << bits;
    EXPECT_GE(count(wide, "wrong_chunks"), 1u) << bits;
  }
}

TEST(LinkTable, AgreesWithASetForIdsThatCollide) {
  std::mt19937 random(3);
  LinkTable table;
  for (int fragment = 0; fragment < 50; ++fragment) {
    table.next_fragment();
    std::unordered_set<std::uint32_t> set;
    for (int i = 0; i < 2000; ++i) {
      const auto link = static_cast<std::uint32_t>(random() % 3000) << (random() % 3 * 10);
      EXPECT_EQ(table.contains(link), set.contains(link));
      EXPECT_EQ(table.add(link), set.insert(link).second);
    }
  }
}

TEST(ReadWork, ReadsEveryByteOnce) {
  std::mt19937_64 random(5);
  for (const std::size_t size : {0u, 1u, 8u, 63u, 64u, 65u, 1000u}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) expected ^= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (i % 8 * 8);
    EXPECT_EQ(xor_of(bytes), expected) << size;
  }
  const FragmentPool pool({.links = 6});
  ReadWork work;
  work.process(*pool.make(1));
  EXPECT_EQ(counter_of(work.counters(), "read_bytes"), 6u * 48);
}

}  // namespace
}  // namespace rodeo::readout
