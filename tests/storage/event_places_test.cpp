// The places of events: found by walking the file, or read from its index file; an index of another file is never used.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "formats/event_index.h"
#include "formats/full_event.h"
#include "formats/temporary_directory.h"
#include "storage/event_places.h"
#include "storage/sample_file.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::test::read_file;
using rodeo::test::sample_event;
using rodeo::test::sample_file;
using rodeo::test::TemporaryDirectory;

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

}  // namespace

TEST(EventPlaces, AreWalkedAsFarAsIsAskedFor) {
  const auto file = sample_file({.events = 5});
  auto places = *EventPlaces::open(file);
  EXPECT_TRUE(places.has(1));
  EXPECT_EQ(places.found().size(), 2U);
  EXPECT_EQ(places.count(), 5U);
  EXPECT_FALSE(places.has(5));
  EXPECT_TRUE(places.end() && !places.damage());
  std::vector<std::byte> buffer;
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(same(places.event(i, buffer), sample_event({}, i + 1)));
    EXPECT_EQ(places[i].l1id, rodeo::L1Id::of(1, i + 1).value);
  }
}

TEST(EventPlaces, GoOnInAFileThatGrewByAnyPiece) {
  const auto whole = sample_file({.events = 4});
  const std::size_t header = EventPlaces::open(whole)->header().size_bytes;
  for (const std::size_t step : std::initializer_list<std::size_t>{1, 7, 300}) {
    auto places = *EventPlaces::open(std::span(whole).first(header));
    std::size_t seen = 0;
    for (std::size_t size = header; size < whole.size();) {
      size = std::min(size + step, whole.size());
      places.go_on(std::span(whole).first(size));
      EXPECT_GE(places.count(), seen);
      seen = places.count();
      EXPECT_EQ(places.end().has_value(), size == whole.size());
    }
    EXPECT_EQ(seen, 4U);
  }
}

TEST(EventPlaces, AreKeptAndTakenAgainWhileTheFileIsTheSame) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("run._0001.data");
  const auto file = sample_file({.events = 4});
  write(path, file);
  auto places = *EventPlaces::open(file);
  EXPECT_FALSE(places.load(path));
  EXPECT_TRUE(places.keep(path));

  auto taken = *EventPlaces::open(file);
  ASSERT_TRUE(taken.load(path));
  EXPECT_TRUE(taken.end() && std::ranges::equal(taken.found(), places.found()));

  auto index = read_file(index_path(path));
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] ^= std::byte{0x20};
    write(index_path(path), index);
    EXPECT_FALSE(EventPlaces::open(file)->load(path)) << "byte " << i;
    index[i] ^= std::byte{0x20};
  }
  write(index_path(path), std::span(index).first(index.size() - 1));
  EXPECT_FALSE(EventPlaces::open(file)->load(path));
  write(index_path(path), index);
  EXPECT_TRUE(EventPlaces::open(file)->load(path));

  const auto other = sample_file({.events = 4, .seed = 8});  // the same length, with another payload and CRC
  ASSERT_EQ(other.size(), file.size());
  EXPECT_FALSE(EventPlaces::open(other)->load(path));
}

TEST(EventPlaces, OfAFileThatIsNotClosedAreNotKept) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("run._0001.data");
  auto file = sample_file({.events = 4});
  file.resize(file.size() - 41);
  write(path, file);
  auto places = *EventPlaces::open(file);
  EXPECT_FALSE(places.keep(path));
  EXPECT_EQ(places.count(), 3U);
  EXPECT_TRUE(places.damage());
}

TEST(EventIndex, DoesNotLeadOutOfTheFileEvenIfItsCrcHolds) {
  const IndexedFile file{.bytes = 1000, .modified_ns = -5, .records_crc = 7, .records_bytes = 200};
  const std::vector<EventPlace> good{{.place = 200, .bytes = 100, .l1id = 1},
                                     {.place = 316 | EventPlace::kDamaged, .bytes = 20}};
  const auto decoded = decode_event_index(encode_event_index(file, good), file);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, good);
  for (const EventPlace wrong :
       {EventPlace{.place = 316, .bytes = 700}, EventPlace{.place = 315, .bytes = 20},
        EventPlace{.place = std::uint64_t{1} << 62, .bytes = 20}, EventPlace{.place = 316, .bytes = ~0U}}) {
    auto places = good;
    places[1] = wrong;
    EXPECT_FALSE(decode_event_index(encode_event_index(file, places), file));
  }
  for (IndexedFile other : {IndexedFile{1001, -5, 7, 200}, IndexedFile{1000, -4, 7, 200}, IndexedFile{1000, -5, 8, 200},
                            IndexedFile{1000, -5, 7, 204}})
    EXPECT_FALSE(decode_event_index(encode_event_index(file, good), other));
}
