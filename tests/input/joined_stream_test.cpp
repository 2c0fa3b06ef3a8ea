// Chunks in parts, from pages that a test writes: the stream returns whole chunks, in order, with bounded memory.
#include "input/joined_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace rodeo::input {
namespace {

struct Piece {
  LinkIndex link = 0;
  std::vector<std::byte> bytes;
  bool more = false;
  std::uint8_t status = 0;
  std::uint32_t count = 1;  // number of equal, successive chunks
};

std::vector<std::byte> numbered(std::size_t size, std::size_t first = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((first + i) * 7 + (first + i) / 251);
  return bytes;
}

/// Delivers the pushed pages of any number of sources; a link belongs to source link % sources.
class PagesInParts final : public DataStream {
 public:
  explicit PagesInParts(std::uint32_t sources = 1) : queues_(sources), held_(sources) {}

  void push(std::vector<Piece> pieces) {
    auto page = std::make_unique<OwnPage>();
    page->stream = this;
    for (Piece& piece : pieces) {
      chunks_ += piece.more ? 0 : piece.count;
      const auto size = static_cast<std::uint32_t>(piece.bytes.size() / piece.count);
      page->memory.push_back(std::move(piece.bytes));
      page->list.push_back({.data = page->memory.back().data(),
                            .size = size,
                            .stride = size,
                            .count = piece.count,
                            .link = piece.link,
                            .status = piece.status,
                            .more_follows = piece.more});
    }
    page->runs = page->list;
    queues_[source_of(page->list.front().link)].push_back(std::move(page));
  }
  void end() { ended_ = true; }
  std::size_t out() const { return out_.size(); }
  const Page* next() const { return queues_[0].front().get(); }

  PollStatus poll(Page*& page) override {
    bool held = false;
    for (std::size_t source = 0; source < queues_.size(); ++source) {
      held = held || held_[source];
      if (held_[source] || queues_[source].empty()) continue;
      auto own = std::move(queues_[source].front());
      queues_[source].pop_front();
      page = own.get();
      page->references.store(1);
      out_[page] = std::move(own);
      ++clock_;
      return PollStatus::page;
    }
    return ended_ && !held ? PollStatus::end : PollStatus::empty;
  }
  void release(Page& page) noexcept override { out_.erase(&page); }
  std::uint64_t clock_ns() const override { return clock_; }
  StreamCounters counters() const override { return {.chunks = chunks_}; }
  std::uint32_t sources() const override { return static_cast<std::uint32_t>(queues_.size()); }
  std::uint32_t source_of(LinkIndex link) const override { return link % static_cast<std::uint32_t>(queues_.size()); }
  bool source_ended(std::uint32_t source) const override { return ended_ && queues_[source].empty(); }
  void hold(std::uint32_t source, bool held) override { held_[source] = held; }

 private:
  struct OwnPage : Page {
    std::deque<std::vector<std::byte>> memory;
    std::vector<ChunkRun> list;
  };
  std::vector<std::deque<std::unique_ptr<OwnPage>>> queues_;
  std::vector<bool> held_;
  std::map<Page*, std::unique_ptr<OwnPage>> out_;
  std::uint64_t chunks_ = 0;
  std::uint64_t clock_ = 0;
  bool ended_ = false;
};

struct Came {
  LinkIndex link = 0;
  std::vector<std::byte> bytes;
  std::uint8_t status = 0;
  bool operator==(const Came&) const = default;
};

class JoinedChunks : public ::testing::Test {
 protected:
  static constexpr std::size_t kLinks = 4;

  void make(JoinedStream::Settings settings = {.max_chunk_bytes = 1000, .memory_bytes = 4000, .pages = 8},
            std::uint32_t sources = 1) {
    auto parts = std::make_unique<PagesInParts>(sources);
    input = parts.get();
    stream = std::make_unique<JoinedStream>(std::move(parts), kLinks, settings);
  }
  /// Reads everything that is available, and returns the pages at once.
  std::vector<Came> read() {
    std::vector<Came> all;
    Page* page = nullptr;
    while ((status = stream->poll(page)) == PollStatus::page) {
      add(*page, all);
      page->drop();
    }
    return all;
  }
  static void add(const Page& page, std::vector<Came>& all) {
    for (const ChunkRun& run : page.runs) {
      EXPECT_FALSE(run.more_follows);
      for (std::uint32_t i = 0; i < run.count; ++i)
        all.push_back({run.link, {run.chunk(i).begin(), run.chunk(i).end()}, run.chunk_status(i)});
    }
  }

  PagesInParts* input = nullptr;
  std::unique_ptr<JoinedStream> stream;
  PollStatus status = PollStatus::empty;
};

TEST_F(JoinedChunks, APageWithoutPartsPassesAsItIs) {
  make();
  input->push({{.bytes = numbered(40)}, {.link = 1, .bytes = numbered(80), .count = 2}});
  const Page* const of_input = input->next();
  Page* page = nullptr;
  ASSERT_EQ(stream->poll(page), PollStatus::page);
  EXPECT_EQ(page, of_input);
  page->drop();
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, AChunkOfAnySizeIsWholeAroundTheSizeOfItsParts) {
  make();
  for (std::size_t size = 1; size <= 1000; size = size < 98 || (size > 195 && size < 205) ? size + 1 : size + 97) {
    for (const std::size_t part : {std::size_t{1}, std::size_t{99}, std::size_t{100}, std::size_t{101}, size}) {
      const std::vector<std::byte> whole = numbered(size, part);
      for (std::size_t at = 0; at < size; at += part) {
        const std::size_t bytes = std::min(part, size - at);
        const auto from = whole.begin() + static_cast<std::ptrdiff_t>(at);
        input->push({{.link = 2, .bytes = {from, from + static_cast<std::ptrdiff_t>(bytes)}, .more = at + bytes < size}});
      }
      ASSERT_EQ(read(), (std::vector<Came>{{2, whole, 0}})) << size << " in parts of " << part;
    }
  }
  EXPECT_EQ(stream->counts().cut_chunks.get(), 0);
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, ChunksOfALinkKeepTheirOrder) {
  make();
  input->push({{.bytes = numbered(10, 1)},
               {.bytes = numbered(20, 2), .more = true},
               {.link = 1, .bytes = numbered(30, 3)},
               {.bytes = numbered(5, 22)},
               {.bytes = numbered(40, 4)},
               {.bytes = numbered(50, 5), .more = true}});
  input->push({{.link = 1, .bytes = numbered(60, 6)}, {.bytes = numbered(7, 55)}, {.bytes = numbered(70, 7)}});
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(10, 1), 0},
                                       {1, numbered(30, 3), 0},
                                       {0, numbered(25, 2), 0},
                                       {0, numbered(40, 4), 0},
                                       {1, numbered(60, 6), 0},
                                       {0, numbered(57, 5), 0},
                                       {0, numbered(70, 7), 0}}));
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, PartsOfSeveralLinksMayComeInTurn) {
  make();
  for (std::size_t part = 0; part < 5; ++part) {
    input->push({{.link = 0, .bytes = numbered(100, part * 100), .more = part < 4},
                 {.link = 1, .bytes = numbered(50, part * 50), .more = part < 4},
                 {.link = 3, .bytes = numbered(9, part)}});
  }
  std::vector<Came> all = read();
  std::erase_if(all, [](const Came& came) { return came.link == 3; });
  EXPECT_EQ(all, (std::vector<Came>{{0, numbered(500), 0}, {1, numbered(250), 0}}));
}

TEST_F(JoinedChunks, TheRunThatEndsAChunkMayHaveMore) {
  make();
  std::vector<std::byte> run = numbered(20, 100);
  const std::vector<std::byte> whole = numbered(10, 500);
  run.insert(run.end(), whole.begin(), whole.end());
  run.resize(40);
  input->push({{.bytes = numbered(100), .more = true}});
  input->push({{.bytes = run, .count = 2}, {.bytes = numbered(3)}});
  const std::vector<std::byte> second(run.begin() + 20, run.end());
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(120), 0}, {0, second, 0}, {0, numbered(3), 0}}));
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, StatusesOfAllPartsAreTheChunks) {
  make();
  input->push({{.bytes = numbered(10), .more = true, .status = chunk_status::kBusy}});
  input->push({{.bytes = numbered(10, 10), .status = chunk_status::kTimeout}});
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(20), chunk_status::kBusy | chunk_status::kTimeout}}));
}

TEST_F(JoinedChunks, TheLongestIsWholeAndOneByteMoreIsCutMarkedAndCounted) {
  make();
  input->push({{.bytes = numbered(999), .more = true}, {.bytes = numbered(1, 999)}});
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(1000), 0}}));
  EXPECT_EQ(stream->counts().cut_chunks.get(), 0);
  input->push({{.bytes = numbered(999), .more = true}, {.bytes = numbered(2, 999)}});
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(1000), chunk_status::kSoftwareTruncated}}));
  EXPECT_EQ(stream->counts().cut_chunks.get(), 1);
  EXPECT_EQ(stream->counts().cut_bytes.get(), 1);
  for (int i = 0; i < 30; ++i) input->push({{.bytes = numbered(100, static_cast<std::size_t>(i) * 100), .more = i < 29}});
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(1000), chunk_status::kSoftwareTruncated}}));
  EXPECT_EQ(stream->counts().cut_chunks.get(), 2);
  EXPECT_EQ(stream->counts().cut_bytes.get(), 2001);
}

TEST_F(JoinedChunks, AChunkWithoutAnEndIsMarkedAndCounted) {
  make();
  input->push({{.bytes = numbered(100), .more = true}, {.link = 1, .bytes = numbered(7), .more = true}});
  EXPECT_EQ(read(), std::vector<Came>{});
  EXPECT_EQ(status, PollStatus::empty);
  input->end();
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(100), chunk_status::kSoftwareTruncated},
                                       {1, numbered(7), chunk_status::kSoftwareTruncated}}));
  EXPECT_EQ(status, PollStatus::end);
  EXPECT_EQ(stream->counts().cut_chunks.get(), 2);
  EXPECT_EQ(stream->counters().chunks, 2) << "the input counts a chunk with its last part";
}

TEST_F(JoinedChunks, GivenUpItHandsOutWhatHasComeOfOpenChunksAndEnds) {
  make({.max_chunk_bytes = 1000, .memory_bytes = 4000, .pages = 8}, 2);
  input->push({{.bytes = numbered(100), .more = true}, {.link = 2, .bytes = numbered(7)}});
  input->push({{.link = 1, .bytes = numbered(50), .more = true}});
  EXPECT_EQ(read(), (std::vector<Came>{{2, numbered(7), 0}}));
  EXPECT_EQ(status, PollStatus::empty);
  stream->hold(0, true);
  input->push({{.link = 1, .bytes = numbered(5)}});  // the stream has ended, and does not read this page
  EXPECT_TRUE(stream->give_up());
  EXPECT_FALSE(stream->give_up());
  EXPECT_EQ(read(), (std::vector<Came>{{0, numbered(100), chunk_status::kSoftwareTruncated},
                                       {1, numbered(50), chunk_status::kSoftwareTruncated}}));
  EXPECT_EQ(status, PollStatus::end);
  EXPECT_EQ(stream->counts().cut_chunks.get(), 2);
}

TEST_F(JoinedChunks, GivenUpItHandsOutTheRestOfAPageThatWaitedForMemory) {
  make({.max_chunk_bytes = 1000, .memory_bytes = 1000, .pages = 8});
  input->push({{.bytes = numbered(10), .more = true}});
  input->push({{.bytes = numbered(20, 10)}, {.link = 1, .bytes = numbered(7), .more = true}});
  Page* kept = nullptr;
  ASSERT_EQ(stream->poll(kept), PollStatus::page);
  EXPECT_EQ(read(), std::vector<Came>{});
  EXPECT_EQ(status, PollStatus::full) << "one chunk is in use, and there is no memory for another";
  EXPECT_TRUE(stream->give_up());
  EXPECT_EQ(read(), std::vector<Came>{});
  EXPECT_EQ(status, PollStatus::full);
  kept->drop();
  EXPECT_EQ(read(), (std::vector<Came>{{1, numbered(7), chunk_status::kSoftwareTruncated}}));
  EXPECT_EQ(status, PollStatus::end);
}

TEST_F(JoinedChunks, MemoryThatIsHandedOutIsBounded) {
  make();
  std::vector<Page*> out;
  Page* page = nullptr;
  for (int i = 0; i < 20; ++i) input->push({{.bytes = numbered(600), .more = true}, {.bytes = numbered(400, 600)}});
  while ((status = stream->poll(page)) == PollStatus::page) out.push_back(page);
  EXPECT_EQ(status, PollStatus::full);
  EXPECT_EQ(out.size(), 4);
  EXPECT_EQ(stream->memory_fill(), 1);
  EXPECT_EQ(input->out(), 1);
  const std::uint64_t clock = stream->clock_ns();
  out.back()->drop();
  out.pop_back();
  ASSERT_EQ(stream->poll(page), PollStatus::page) << "returned memory is reused";
  EXPECT_GE(stream->clock_ns(), clock);
  page->drop();
  for (Page* const held : out) held->drop();
  EXPECT_EQ(read().size(), 15);
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, OneChunkAlwaysHasRoom) {
  make({.max_chunk_bytes = 1000, .memory_bytes = 10, .pages = 8});
  for (int i = 0; i < 3; ++i) input->push({{.bytes = numbered(600), .more = true}, {.bytes = numbered(400, 600)}});
  EXPECT_EQ(read().size(), 3);
}

TEST_F(JoinedChunks, WhatIsHandedOutStaysAsItIsWhileOthersAreJoined) {
  make();
  input->push({{.bytes = numbered(300, 1), .more = true}, {.bytes = numbered(1, 301)}, {.link = 1, .bytes = numbered(40)}});
  Page* joined = nullptr;
  Page* stretch = nullptr;
  ASSERT_EQ(stream->poll(joined), PollStatus::page);
  ASSERT_EQ(stream->poll(stretch), PollStatus::page);
  for (int i = 0; i < 50; ++i) input->push({{.bytes = numbered(500, 3), .more = true}, {.bytes = numbered(1)}});
  EXPECT_EQ(read().size(), 50);
  std::vector<Came> kept;
  add(*joined, kept);
  add(*stretch, kept);
  EXPECT_EQ(kept, (std::vector<Came>{{0, numbered(301, 1), 0}, {1, numbered(40), 0}}));
  joined->drop();
  EXPECT_EQ(input->out(), 1);
  stretch->drop();
  EXPECT_EQ(input->out(), 0);
}

TEST_F(JoinedChunks, ASourceThatIsHeldWaitsInTheMiddleOfItsPage) {
  make({.max_chunk_bytes = 1000, .memory_bytes = 4000, .pages = 8}, 2);
  input->push({{.link = 0, .bytes = numbered(10), .more = true},
               {.link = 0, .bytes = numbered(1, 10)},
               {.link = 2, .bytes = numbered(5)}});
  input->push({{.link = 1, .bytes = numbered(20)}});
  Page* page = nullptr;
  ASSERT_EQ(stream->poll(page), PollStatus::page);
  page->drop();
  stream->hold(0, true);
  input->end();
  EXPECT_EQ(read(), (std::vector<Came>{{1, numbered(20), 0}}));
  EXPECT_EQ(status, PollStatus::empty);
  EXPECT_FALSE(stream->source_ended(0));
  EXPECT_TRUE(stream->source_ended(1));
  stream->hold(0, false);
  EXPECT_EQ(read(), (std::vector<Came>{{2, numbered(5), 0}}));
  EXPECT_EQ(status, PollStatus::end);
}

TEST_F(JoinedChunks, Of64MiBIsWhole) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  make(JoinedStream::settings(kSize, kLinks));
  const std::vector<std::byte> whole = numbered(kSize);
  constexpr std::size_t kPart = 1U << 20;
  for (std::size_t at = 0; at < kSize; at += kPart) {
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(at);
    input->push({{.bytes = {from, from + kPart}, .more = at + kPart < kSize}});
  }
  const std::vector<Came> all = read();
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].bytes == whole);
  EXPECT_EQ(all[0].status, 0);
}

}  // namespace
}  // namespace rodeo::input
