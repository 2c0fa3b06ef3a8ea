#include "formats/network_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace {

using namespace rodeo::formats;
using rodeo::ChunkEntry;
using rodeo::ChunkRun;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<std::byte> example() {
  return bytes_of({0x52, 0x4e, 0x47, 0x31, 0x38, 0, 0, 0, 5, 0, 0,    0,    0,    0,    0,    0,    0x40, 0x42, 0x0f,
                   0,    0,    0,    0,    0,    1, 0, 0, 0, 0, 0,    0,    0,    3,    0,    0,    0,    2,    0,
                   0,    0,    9,    0,    0,    0, 3, 0, 0, 0, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0,    0});
}

struct Chunk {
  std::vector<std::byte> bytes;
  std::uint8_t status = 0;
  std::uint32_t count = 0;
  bool operator==(const Chunk&) const = default;
};
using Links = std::map<unsigned, std::vector<Chunk>>;

// Collects whole chunks of successive pages, by link.
class Collector {
 public:
  void take(const NetworkPageReader& reader) {
    for (std::size_t i = 0; i < reader.runs().size(); ++i) {
      const ChunkRun& run = reader.runs()[i];
      for (std::uint32_t k = 0; k < run.count; ++k) {
        Chunk& part = parts_[run.link];
        const auto chunk = run.chunk(k);
        part.bytes.insert(part.bytes.end(), chunk.begin(), chunk.end());
        part.status |= run.chunk_status(k);
        part.count = reader.counts()[i] + k;
        if (!run.more_follows) links[run.link].push_back(std::exchange(part, {}));
      }
    }
  }

  Links links;

 private:
  std::map<unsigned, Chunk> parts_;
};

struct Sender {
  explicit Sender(std::size_t page_bytes) : memory(page_bytes), writer(memory), reader(64, page_bytes) {}

  // Reads pages as soon as they are full.
  void send(rodeo::LinkIndex link, std::uint32_t count, const ChunkRun& run, bool continues = false) {
    RunPlace from{.continues = continues};
    for (int tries = 0; !writer.append(link, count + from.chunk, run, from); ++tries) {
      ASSERT_LT(tries, 1000);
      ASSERT_GT(writer.runs(), 0U) << "an empty page has no room";
      flush();
    }
  }

  void flush() {
    const auto page = writer.finish(pages++, 17);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(page.data()) % 8, 0U);
    const auto header = reader.read(page);
    ASSERT_TRUE(header.has_value()) << header.error().message();
    EXPECT_EQ(*header, (NetworkPageHeader{pages - 1, 17}));
    runs += reader.runs().size();
    bytes += page.size();
    collector.take(reader);
  }

  std::vector<std::byte> memory;
  NetworkPageWriter writer;
  NetworkPageReader reader;
  Collector collector;
  std::uint64_t pages = 0;
  std::size_t runs = 0;
  std::size_t bytes = 0;
};

TEST(NetworkPage, IsWrittenAsInTheWorkedExample) {
  const auto data = bytes_of({0x61, 0x62, 0x63, 0x64, 0x65, 0x66});
  std::vector<std::byte> memory(256, std::byte{0xff});
  NetworkPageWriter writer(memory);
  RunPlace from;
  EXPECT_TRUE(writer.append(3, 9, {.data = data.data(), .size = 3, .stride = 3, .count = 2}, from));
  const auto page = writer.finish(5, 1'000'000);
  EXPECT_EQ(std::vector(page.begin(), page.end()), example());
}

TEST(NetworkPage, IsReadAsInTheWorkedExample) {
  NetworkPageReader reader(4, 4096);
  const std::vector<std::byte> page = example();
  EXPECT_EQ(reader.read(page), (NetworkPageHeader{5, 1'000'000}));
  ASSERT_EQ(reader.runs().size(), 1U);
  const ChunkRun& run = reader.runs()[0];
  EXPECT_EQ(run.link, 3U);
  EXPECT_EQ(run.count, 2U);
  EXPECT_EQ(reader.counts()[0], 9U);
  EXPECT_EQ(std::memcmp(run.chunk(1).data(), "def", 3), 0);
}

TEST(NetworkPage, MayTellTheClockAlone) {
  std::vector<std::byte> memory(256);
  NetworkPageReader reader(1, 256);
  const auto page = NetworkPageWriter(memory).finish(7, 99);
  EXPECT_EQ(page.size(), kNetworkPageHeaderBytes);
  EXPECT_EQ(reader.read(page), (NetworkPageHeader{7, 99}));
  EXPECT_TRUE(reader.runs().empty());
}

TEST(NetworkPage, RunsOfALinkThatFollowEachOtherAreOne) {
  const std::vector<std::byte> data(4096, std::byte{1});
  Sender sender(64 * 1024);
  const ChunkRun blocks{.data = data.data(), .size = 40, .stride = 42, .count = 24};
  for (std::uint32_t block = 0; block < 10; ++block) sender.send(5, block * 24, blocks);
  sender.send(5, 250, blocks);  // ten chunks are missing before these
  sender.send(6, 274, blocks);  // another link
  sender.flush();
  EXPECT_EQ(sender.runs, 3U);
  EXPECT_EQ(sender.collector.links[5].size(), 264U);
}

// Chunks of a block, with other bytes between them; memory ends with the last chunk, and with the page.
TEST(NetworkPage, ChunksThatDoNotTouchAreCopiedWithoutWhatIsBetween) {
  for (std::uint32_t size = 1; size <= 80; ++size) {
    for (const std::uint32_t between : {1U, 2U, 7U, 24U}) {
      constexpr std::uint32_t kChunks = 5;
      std::vector<std::byte> source((kChunks - 1) * (size + between) + size);
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
      const ChunkRun run{.data = source.data(), .size = size, .stride = size + between, .count = kChunks};
      std::vector<std::byte> memory((kNetworkPageHeaderBytes + kNetworkRunHeaderBytes + kChunks * size + 7) / 8 * 8);
      memory.resize(std::max(memory.size(), NetworkPageWriter::kLeastBytes));
      NetworkPageWriter writer(memory);
      RunPlace place;
      ASSERT_TRUE(writer.append(0, 0, run, place));
      NetworkPageReader reader(1, memory.size());
      ASSERT_TRUE(reader.read(writer.finish(0, 0)));
      ASSERT_EQ(reader.runs().size(), 1U);
      ASSERT_EQ(reader.runs()[0].count, kChunks);
      for (std::uint32_t i = 0; i < kChunks; ++i)
        ASSERT_TRUE(std::ranges::equal(reader.runs()[0].chunk(i), run.chunk(i))) << size << " B, " << between << " between";
    }
  }
}

TEST(NetworkPage, CostsLessThanAByteAChunkOfFortyBytes) {
  const std::vector<std::byte> data(4096, std::byte{1});
  Sender sender(64 * 1024);
  std::size_t payload = 0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (rodeo::LinkIndex link = 0; link < 64; ++link, payload += 960)
      sender.send(link, round * 24, {.data = data.data(), .size = 40, .stride = 44, .count = 24});
  }
  sender.flush();
  EXPECT_LT(static_cast<double>(sender.bytes - payload) / (static_cast<double>(payload) / 40), 1);
  EXPECT_GE(static_cast<double>(payload) / static_cast<double>(sender.bytes), 0.96);
}

TEST(NetworkPage, AChunkLargerThanAPageComesInParts) {
  std::vector<std::byte> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  Sender sender(256);
  sender.send(1, 41, {.data = data.data(), .size = 1000, .stride = 1000, .count = 1, .status = 4});
  sender.send(1, 42, {.data = data.data(), .size = 3, .stride = 3, .count = 2, .status = 4});
  sender.flush();
  EXPECT_EQ(sender.collector.links[1][0], (Chunk{data, 4, 41}));
  EXPECT_EQ(sender.collector.links[1].size(), 3U);
  EXPECT_GE(sender.pages, 5U);
}

TEST(NetworkPage, PartsOfTheSourceStayParts) {
  const std::vector<std::byte> data(90, std::byte{7});
  Sender sender(512);
  sender.send(1, 5, {.data = data.data(), .size = 30, .stride = 30, .count = 1, .more_follows = true});
  sender.send(1, 5, {.data = data.data() + 30, .size = 30, .stride = 30, .count = 1, .more_follows = true}, true);
  sender.send(1, 5, {.data = data.data() + 60, .size = 30, .stride = 30, .count = 1}, true);
  sender.send(1, 6, {.data = data.data(), .size = 30, .stride = 30, .count = 1});
  sender.flush();
  EXPECT_EQ(sender.runs, 4U) << "no chunk is joined to a part";
  EXPECT_EQ(sender.collector.links[1], (std::vector{Chunk{data, 0, 5}, Chunk{std::vector(30, std::byte{7}), 0, 6}}));
}

// Compares with a plain list of the chunks.
TEST(NetworkPage, WhateverIsSentComesAsItWas) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    Sender sender(256 + random() % 3000);
    Links expected;
    std::vector<std::byte> data(20000);
    for (auto& byte : data) byte = static_cast<std::byte>(random());
    for (int i = 0; i < 60; ++i) {
      const auto link = static_cast<rodeo::LinkIndex>(random() % 5);
      auto& sent = expected[link];
      std::uint32_t count = sent.empty() ? 0xfffffff0U : sent.back().count + 1;
      if (random() % 8 == 0) count += 3;  // lost before they were sent
      std::vector<ChunkEntry> entries;
      ChunkRun run{
          .data = data.data() + random() % 100, .count = static_cast<std::uint32_t>(1 + random() % 40), .link = link};
      if (random() % 2 == 0) {
        std::uint32_t offset = 0;
        for (std::uint32_t k = 0; k < run.count; ++k) {
          entries.push_back({offset, static_cast<std::uint32_t>(random() % (random() % 20 == 0 ? 900 : 60)),
                             static_cast<std::uint8_t>(random() % 4)});
          offset = (offset + entries.back().size + 2) % 15000;
        }
        run.entries = entries.data();
      } else {
        run.size = static_cast<std::uint32_t>(random() % 9 == 0 ? 0 : random() % 300);
        run.stride = run.size + static_cast<std::uint32_t>(random() % 3);
        run.status = static_cast<std::uint8_t>(random() % 2);
      }
      for (std::uint32_t k = 0; k < run.count; ++k) {
        const auto chunk = run.chunk(k);
        sent.push_back({{chunk.begin(), chunk.end()}, run.chunk_status(k), count + k});
      }
      sender.send(link, count, run);
    }
    sender.flush();
    ASSERT_EQ(sender.collector.links, expected) << "round " << round;
  }
}

struct Damage {
  std::size_t at;
  int value;
  const char* field;
};

TEST(NetworkPage, WhatDoesNotFitIsRefusedByName) {
  const Damage damages[] = {{3, '2', "page marker"},
                            {4, 0x30, "page size"},
                            {24, 0, "end of the runs"},
                            {24, 2, "run header"},
                            {32, 4, "link"},
                            {34, 2, "kind of a run"},
                            {34, 0x80, "chunks of a run that goes on"},
                            {36, 0, "number of chunks"},
                            {37, 1, "number of chunks"},
                            {36, 4, "chunks"},
                            {44, 9, "chunks"},
                            {34, 1, "chunks"}};
  for (const Damage& damage : damages) {
    auto page = example();
    page[damage.at] = static_cast<std::byte>(damage.value);
    NetworkPageReader reader(4, 4096);
    const auto header = reader.read(page);
    ASSERT_FALSE(header.has_value()) << damage.field;
    EXPECT_STREQ(header.error().field, damage.field);
    EXPECT_TRUE(reader.runs().empty());
  }
  NetworkPageReader small(4, 40);
  EXPECT_STREQ(small.read(example()).error().field, "page");
  EXPECT_STREQ(small.read(std::span<const std::byte>{}).error().field, "page header");
}

TEST(NetworkPage, EmptyChunksAreNoMoreThanBytes) {
  const std::byte nothing{};
  Sender sender(4096);
  sender.send(2, 0, {.data = &nothing, .count = 1000});
  sender.flush();
  EXPECT_EQ(sender.collector.links[2].size(), 1000U);
  EXPECT_GE(sender.bytes, 1000U);
  auto page = example();
  page[36] = std::byte{25};  // the run has only 24 bytes
  page[44] = std::byte{0};
  page[4] = std::byte{48};
  page.resize(48);
  NetworkPageReader reader(4, 4096);
  EXPECT_STREQ(reader.read(page).error().field, "number of chunks");
}

TEST(NetworkPage, ATableOfSizesAddsUp) {
  const std::vector<std::byte> data(64, std::byte{9});
  const std::vector<ChunkEntry> entries{{0, 5, 1}, {8, 7, 0}};
  std::vector<std::byte> memory(256);
  NetworkPageWriter writer(memory);
  RunPlace from;
  ASSERT_TRUE(writer.append(0, 0, {.data = data.data(), .entries = entries.data(), .count = 2}, from));
  const auto sent = writer.finish(0, 0);
  NetworkPageReader reader(1, 256);
  ASSERT_TRUE(reader.read(sent).has_value());
  for (const auto& [at, value] : {std::pair{48, 6}, {52, 6}, {50, 0xff}, {44, 11}, {44, 13}, {44, 40}, {35, 1}}) {
    std::vector<std::byte> page(sent.begin(), sent.end());
    page[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_FALSE(reader.read(page).has_value()) << at << " " << value;
  }
}

}  // namespace
