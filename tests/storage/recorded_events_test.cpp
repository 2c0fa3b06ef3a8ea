// Recordings as events: every byte of every chunk at its place, and the index file; an index of another file is never used.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "formats/block_encoder.h"
#include "formats/rdh.h"
#include "formats/temporary_directory.h"
#include "storage/recorded_events.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;
using Bytes = std::vector<std::byte>;

const std::function<void()> kNothing = [] {};

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes chunk_of(std::uint32_t id, std::uint16_t link, std::size_t size) {
  Bytes chunk(size);
  for (std::size_t i = 0; i < size; ++i) chunk[i] = static_cast<std::byte>(id * 7 + link * 31 + i * 5 + i / 251);
  std::memcpy(chunk.data(), &id, sizeof id);
  return chunk;
}

/// L1 id -> link -> chunk; the place of a chunk does not matter.
using Events = std::map<std::uint32_t, std::map<std::uint16_t, Bytes>>;

struct Sample {
  Bytes file;
  Events events;
};

constexpr std::array<std::uint16_t, 2> kLinks{5, 9};

/// Two E-links with alternating blocks; chunks of the second span several blocks.
Sample recording(std::uint32_t events) {
  constexpr BlockFormat kFormat{BlockFamily::trailer32, 1024};
  Sample made;
  std::map<std::uint16_t, std::vector<Bytes>> blocks;
  for (const std::uint16_t link : kLinks) {
    std::vector<std::unique_ptr<Bytes>> of_link;
    BlockEncoder encoder(kFormat, link, 0);
    const auto next = [&]() -> std::span<std::byte> {
      return *of_link.emplace_back(std::make_unique<Bytes>(kFormat.block_bytes));
    };
    for (std::uint32_t id = 0; id < events; ++id) {
      const Bytes chunk = chunk_of(id, link, link == 5 ? 40 : 3000);
      encoder.append(chunk, 0, next);
      made.events[id][link] = chunk;
    }
    if (!encoder.full()) encoder.null_fill();
    for (const auto& block : of_link) blocks[link].push_back(*block);
  }
  for (std::size_t i = 0; i < std::max(blocks[5].size(), blocks[9].size()); ++i) {
    for (const std::uint16_t link : kLinks) {
      if (i < blocks[link].size()) made.file.insert(made.file.end(), blocks[link][i].begin(), blocks[link][i].end());
    }
  }
  return made;
}

/// Frames of two pages. Each superpage has one page, and those of two links alternate.
Sample dump(std::uint32_t orbits) {
  Sample made;
  std::map<std::uint8_t, std::uint8_t> packets;
  for (std::uint32_t orbit = 0; orbit < orbits; ++orbit) {
    for (std::uint16_t number = 0; number < 2; ++number) {
      for (std::uint8_t link = 3; link < 5; ++link) {
        constexpr std::uint16_t kPayload = 160;
        Bytes page(kRdhBytes + kPayload, static_cast<std::byte>(orbit * 3 + link + number));
        RdhFields{.offset_next = static_cast<std::uint16_t>(page.size()),
                  .memory_size = static_cast<std::uint16_t>(page.size()),
                  .link_id = link,
                  .packet_counter = packets[link]++,
                  .orbit = orbit,
                  .page_number = number,
                  .stop = number == 1}
            .header()
            .write(page.data());
        made.file.insert(made.file.end(), page.begin(), page.end());
        Bytes& frame = made.events[orbit][link];
        frame.insert(frame.end(), page.begin(), page.end());
      }
    }
  }
  return made;
}

Events events_of(const RecordingTable& table, std::span<const std::byte> file) {
  Events found;
  for (std::size_t i = 0; i < table.events.size(); ++i) {
    Bytes chunk;
    for (const RecordedPiece& piece : table.pieces_of(i)) {
      const auto bytes = file.subspan(piece.place, piece.bytes);
      chunk.insert(chunk.end(), bytes.begin(), bytes.end());
      if (piece.more != 0) continue;
      EXPECT_TRUE(found[table.events[i].l1id].emplace(piece.link, std::exchange(chunk, {})).second);
    }
  }
  return found;
}

/// A recording on disk, and its table.
class KeptRecording : public ::testing::Test {
 protected:
  KeptRecording() { write(path, sample.file); }
  bool keep() { return keep_recording_index(path, sample.file, {}, *state_of(path), table); }
  std::optional<RecordingTable> load(const L1IdField& field = {}) const {
    return load_recording_index(path, sample.file, field);
  }

  TemporaryDirectory directory;
  const std::string path = directory.file("card.felix");
  const Sample sample = recording(3);
  RecordingTable table = *read_block_recording(sample.file, {}, kNothing);
};

}  // namespace

TEST(RecordedEvents, AreTheChunksOfOneIdHoweverManyBlocksTheyLieIn) {
  const Sample sample = recording(300);
  const auto table = read_block_recording(sample.file, {}, kNothing);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->damage, "");
  EXPECT_EQ(events_of(*table, sample.file), sample.events);
  EXPECT_TRUE(std::ranges::any_of(table->pieces, [](const RecordedPiece& piece) { return piece.more != 0; }));
}

TEST(RecordedEvents, AreTheFramesOfOneOrbitHoweverManySuperpagesTheyLieIn) {
  const Sample sample = dump(50);
  const auto table = read_page_dump(sample.file, kNothing);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->damage, "");
  EXPECT_EQ(events_of(*table, sample.file), sample.events);
  EXPECT_TRUE(std::ranges::any_of(table->pieces, [](const RecordedPiece& piece) { return piece.more != 0; }));
}

TEST(RecordedEvents, OfADamagedRecordingSayWhatIsWrongAlsoFromTheIndex) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("card.felix");
  Sample sample = recording(20);
  sample.file.erase(sample.file.begin() + 4096, sample.file.begin() + 6144);
  sample.file.resize(sample.file.size() - 100);
  write(path, sample.file);
  const auto table = read_block_recording(sample.file, {}, kNothing);
  ASSERT_TRUE(table);
  EXPECT_NE(table->damage.find("bytes behind the last whole block"), std::string::npos) << table->damage;
  EXPECT_TRUE(keep_recording_index(path, sample.file, {}, *state_of(path), *table));
  EXPECT_EQ(load_recording_index(path, sample.file, {}), *table);
}

TEST_F(KeptRecording, IsTakenAgainWhileItIsTheSame) {
  EXPECT_FALSE(load());
  EXPECT_TRUE(keep());
  EXPECT_EQ(load(), table);
  for (const L1IdField other : {L1IdField{4, 32}, L1IdField{0, 8}}) EXPECT_FALSE(load(other));
}

TEST_F(KeptRecording, IsNotTakenFromAnIndexThatIsDamagedAnywhereOrCut) {
  EXPECT_TRUE(keep());
  auto index = read_file(index_path(path));
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] ^= std::byte{0x20};
    write(index_path(path), index);
    EXPECT_FALSE(load()) << "byte " << i;
    index[i] ^= std::byte{0x20};
  }
  for (const std::size_t size : {index.size() - 1, std::size_t{60}, std::size_t{0}}) {
    write(index_path(path), std::span(index).first(size));
    EXPECT_FALSE(load()) << size << " bytes";
  }
  write(index_path(path), index);
  EXPECT_TRUE(load());
}

TEST_F(KeptRecording, IsNotTakenFromTheIndexOfAnother) {
  EXPECT_TRUE(keep());
  auto other = sample.file;
  other.back() ^= std::byte{1};  // the length and the time of the file stay the same
  EXPECT_FALSE(load_recording_index(path, other, {}));
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::seconds(1));
  EXPECT_FALSE(load());
  EXPECT_TRUE(keep());
  EXPECT_TRUE(load());
}

TEST_F(KeptRecording, IsNotKeptIfItChangedWhileItWasRead) {
  const FileState before = *state_of(path);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_FALSE(keep_recording_index(path, sample.file, {}, before, table));
  EXPECT_FALSE(std::filesystem::exists(index_path(path)));
}

TEST_F(KeptRecording, IsNotKeptWhereNothingCanBeWritten) {
  std::filesystem::create_directory(index_path(path));
  EXPECT_FALSE(keep());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 2) << "no temporary file is left";
}

TEST(RecordingIndex, DoesNotLeadOutOfTheFileEvenIfItsCrcHolds) {
  const IndexedRecording file{.bytes = 1000, .modified_ns = -5, .ends_crc = 7};
  const RecordingTable good{.events = {{.first_piece = 0, .l1id = 1}, {.first_piece = 2, .l1id = 2}},
                            .pieces = {{4, 40, 5, 0, 1}, {60, 20, 5, 0, 0}, {100, 900, 6, 2, 0}},
                            .damage = "1 gap"};
  const auto taken = [&](const RecordingTable& table) {
    return decode_recording_index(encode_recording_index(file, table), file);
  };
  ASSERT_TRUE(taken(good));
  EXPECT_EQ(*taken(good), good);
  const auto wrong = [&](auto&& change) {
    RecordingTable table = good;
    change(table);
    return taken(table) ? "taken" : taken(table).error().what();
  };
  EXPECT_NE(wrong([](RecordingTable& t) { t.pieces[2].bytes = 901; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.pieces[2].place = ~0ULL; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.pieces[2].more = 1; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.pieces[1].more = 1; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.pieces[0].more = 2; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.events[1].first_piece = 3; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.events[1].first_piece = 0; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.events[0].first_piece = 1; }), "taken");
  EXPECT_NE(wrong([](RecordingTable& t) { t.events.clear(); }), "taken");
  for (const IndexedRecording& other :
       {IndexedRecording{1001, -5, 7, 0, 32}, IndexedRecording{1000, -4, 7, 0, 32}, IndexedRecording{1000, -5, 8, 0, 32},
        IndexedRecording{1000, -5, 7, 4, 32}, IndexedRecording{1000, -5, 7, 0, 31}})
    EXPECT_FALSE(decode_recording_index(encode_recording_index(file, good), other));
}
