// Workers read card memory; a scripted source replaces the DMA channel.
#include "input/card_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <thread>

#include "base/clock.h"
#include "formats/block_encoder.h"
#include "input/span_decoder.h"
#include "input/stream_reader.h"

namespace rodeo::input {
namespace {

using testing::SeenChunk;

constexpr std::uint64_t kMs = 1'000'000;

// Spans of test memory, with a record of returned ones. They are filled before the walk or during it.
class ScriptedSource final : public SpanSource {
 public:
  std::deque<CardSpan> filled;
  std::size_t handed = 0;
  std::size_t given_back = 0;
  bool stopped = false;
  std::optional<Error> fails;
  std::optional<Error> stop_fails;
  bool starts = true;

  Result<void> start() override { return starts ? Result<void>{} : std::unexpected(Error{"card.gone", "the card is gone"}); }
  Result<void> stop() override {
    stopped = true;
    return stop_fails ? std::unexpected(*stop_fails) : Result<void>{};
  }
  Result<std::optional<CardSpan>> next() override {
    if (fails) return std::unexpected(*fails);
    if (handed == filled.size()) return std::nullopt;
    return filled[handed++];
  }
  void give_back() override {
    ASSERT_LT(given_back, handed);
    ++given_back;
  }
  std::uint64_t memory_bytes() const override { return 1 << 20; }
};

// Numbered chunks of 40 bytes on some E-links, in blocks that the links fill in turn.
class Blocks {
 public:
  explicit Blocks(std::size_t links) {
    for (std::size_t i = 0; i < links; ++i)
      encoders_.emplace_back(formats::BlockFormat{}, static_cast<std::uint16_t>(64 * i));
    open_.resize(links, std::vector<std::byte>(1024));
  }
  void add_events(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t event = first; event < first + count; ++event) {
      for (std::size_t link = 0; link < encoders_.size(); ++link) {
        std::byte chunk[40] = {};
        std::memcpy(chunk, &event, sizeof event);
        chunk[8] = static_cast<std::byte>(link);
        encoders_[link].append(chunk, 0, [&] { return next_block(link); });
      }
    }
  }
  void flush() {
    for (std::size_t link = 0; link < encoders_.size(); ++link) {
      if (!encoders_[link].full()) encoders_[link].timeout();
      close(link);
    }
  }
  std::vector<std::byte> bytes;

 private:
  std::span<std::byte> next_block(std::size_t link) {
    close(link);
    begun_ |= 1ULL << link;
    return open_[link];
  }
  void close(std::size_t link) {
    if ((begun_ >> link & 1) != 0) bytes.insert(bytes.end(), open_[link].begin(), open_[link].end());
    begun_ &= ~(1ULL << link);
  }
  std::vector<formats::BlockEncoder> encoders_;
  std::vector<std::vector<std::byte>> open_;
  std::uint64_t begun_ = 0;
};

struct Card {
  explicit Card(std::size_t links) : links_(links), blocks(links) {}

  ScriptedSource* source = nullptr;
  std::shared_ptr<CardSpans> spans;

  void connect(bool begin = true) {
    auto own = std::make_unique<ScriptedSource>();
    source = own.get();
    spans = std::make_shared<CardSpans>(std::move(own));
    if (!begin) return;
    EXPECT_TRUE(spans->start());
  }
  // Worker `part` of `parts` reads every parts-th link.
  std::unique_ptr<CardStream> stream(std::size_t part, std::size_t parts) {
    std::vector<std::uint16_t> elinks;
    std::vector<LinkIndex> indices;
    for (std::size_t link = part; link < links_; link += parts) {
      indices.push_back(static_cast<LinkIndex>(elinks.size()));
      elinks.push_back(static_cast<std::uint16_t>(64 * link));
    }
    std::vector<CardStream::Walk> walks(1);
    walks[0].spans = spans;
    walks[0].decoder = make_block_span_decoder({}, 4096, elinks);
    walks[0].links = std::move(indices);
    return std::make_unique<CardStream>(std::move(walks));
  }
  // Cut into spans of `blocks_each` blocks.
  void fill(std::size_t blocks_each) {
    for (std::size_t at = 0; at < blocks.bytes.size(); at += blocks_each * 1024) {
      source->filled.push_back(
          {.bytes = std::span(blocks.bytes).subspan(at, std::min(blocks_each * 1024, blocks.bytes.size() - at))});
    }
  }

  std::size_t links_;
  Blocks blocks;
};

TEST(CardStream, EveryWorkerGetsAllChunksOfItsLinksInOrder) {
  for (const std::size_t workers : {1, 2, 3}) {
    Card card(6);
    card.connect();
    card.blocks.add_events(0, 500);
    card.blocks.flush();
    card.fill(7);
    std::vector<std::unique_ptr<CardStream>> streams;
    for (std::size_t w = 0; w < workers; ++w) streams.push_back(card.stream(w, workers));
    std::size_t total = 0;
    for (std::size_t w = 0; w < workers; ++w) {
      std::vector<SeenChunk> seen;
      read_all(*streams[w], seen);
      std::vector<std::uint32_t> next(6, 0);
      for (const SeenChunk& chunk : seen) {
        EXPECT_EQ(static_cast<std::size_t>(chunk.bytes[8]), chunk.link * workers + w);
        EXPECT_EQ(chunk.l1id, next[chunk.link]++);
      }
      total += seen.size();
    }
    EXPECT_EQ(total, 6u * 500u);
  }
}

TEST(CardStream, MemoryGoesBackWhenTheSlowestWorkerAndTheLastPageHaveLetGo) {
  Card card(2);
  card.connect();
  card.blocks.add_events(0, 200);
  card.blocks.flush();
  card.fill(4);
  auto fast = card.stream(0, 2);
  auto slow = card.stream(1, 2);
  std::vector<SeenChunk> seen;
  read_all(*fast, seen);
  card.spans->pump(base::steady_now_ns());
  EXPECT_EQ(card.source->given_back, 0u);
  EXPECT_GT(fast->memory_fill(), 0.0);
  Page* kept = nullptr;
  ASSERT_EQ(slow->poll(kept), PollStatus::page);
  read_all(*slow, seen);
  card.spans->pump(base::steady_now_ns());
  EXPECT_EQ(card.source->given_back, 0u) << "a page points into the first span";
  kept->drop();
  card.spans->pump(base::steady_now_ns());
  EXPECT_EQ(card.source->given_back, card.source->filled.size());
  EXPECT_EQ(fast->memory_fill(), 0.0);
}

TEST(CardStream, SaysThatAllPagesAreOutUntilOneComesBack) {
  Card card(1);
  card.connect();
  card.blocks.add_events(0, 10'000);
  card.blocks.flush();
  card.fill(1);
  auto stream = card.stream(0, 1);
  std::vector<Page*> kept(1);
  while (stream->poll(kept.back()) == PollStatus::page) kept.push_back(nullptr);
  kept.pop_back();
  Page* page = nullptr;
  EXPECT_EQ(stream->poll(page), PollStatus::full);
  kept.front()->drop();
  EXPECT_EQ(stream->poll(kept.front()), PollStatus::page);
  for (Page* const one : kept) one->drop();
}

TEST(CardStream, NobodyTouchesTheSourceBeforeItHasStarted) {
  Card card(1);
  card.connect(false);
  card.blocks.add_events(0, 10);
  card.blocks.flush();
  card.fill(100);
  auto stream = card.stream(0, 1);
  std::vector<SeenChunk> seen;
  EXPECT_EQ(read_all(*stream, seen), PollStatus::empty);
  EXPECT_EQ(card.source->handed, 0u);
  ASSERT_TRUE(card.spans->start());
  read_all(*stream, seen);
  EXPECT_EQ(seen.size(), 10u);
}

TEST(CardStream, EndsAfterACardThatDidNotStart) {
  Card card(1);
  card.connect(false);
  card.source->starts = false;
  auto stream = card.stream(0, 1);
  EXPECT_FALSE(card.spans->start());
  std::vector<SeenChunk> seen;
  EXPECT_EQ(read_all(*stream, seen), PollStatus::empty);
  card.spans->stop(50'000'000, 2'000'000'000);
  EXPECT_EQ(read_all(*stream, seen), PollStatus::end);
}

TEST(CardStream, AFullRingLeavesSpansWithTheCardUntilThereIsRoom) {
  Card card(2);
  card.connect();
  card.blocks.add_events(0, 60'000);
  card.blocks.flush();
  card.fill(1);
  ASSERT_GT(card.source->filled.size(), 4096u);
  auto fast = card.stream(0, 2);
  auto slow = card.stream(1, 2);
  std::vector<SeenChunk> seen;
  read_all(*fast, seen);
  EXPECT_EQ(card.source->handed, 4096u) << "the other worker has passed no span";
  EXPECT_EQ(card.source->given_back, 0u);
  for (int turn = 0; turn < 10; ++turn) {
    read_all(*slow, seen);
    read_all(*fast, seen);
  }
  EXPECT_EQ(card.source->handed, card.source->filled.size());
  EXPECT_EQ(seen.size(), 2u * 60'000u);
}

TEST(CardSpans, AFullRingIsNoSilenceOfTheCard) {
  Card card(2);
  card.connect();
  card.blocks.add_events(0, 60'000);
  card.blocks.flush();
  card.fill(1);
  auto fast = card.stream(0, 2);
  auto slow = card.stream(1, 2);
  std::vector<SeenChunk> seen;
  read_all(*fast, seen);
  card.spans->stop(50 * kMs, 60'000 * kMs);
  std::uint64_t now = base::steady_now_ns();
  for (int i = 0; i < 1000; ++i) card.spans->pump(now += kMs);
  EXPECT_FALSE(card.source->stopped) << "the card still has data without room";
  for (int i = 0; i < 10; ++i) {
    read_all(*slow, seen);
    read_all(*fast, seen);
  }
  EXPECT_EQ(seen.size(), 2U * 60'000U);
}

TEST(CardSpans, APauseOfTheReaderIsNoSilenceOfTheCard) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  std::uint64_t now = 1000 * kMs;
  card.spans->pump(now);
  card.spans->stop(200 * kMs, 2000 * kMs);
  for (int i = 0; i < 5; ++i) card.spans->pump(now += 300 * kMs);
  EXPECT_FALSE(card.source->stopped);
  for (int i = 0; i < 200; ++i) card.spans->pump(now += kMs);
  EXPECT_TRUE(card.source->stopped);
  card.spans->pump(now += kMs);
  EXPECT_TRUE(card.spans->ended());
  EXPECT_FALSE(card.spans->cut_off());
}

TEST(CardSpans, ACardThatDoesNotEndIsCutOffAtTheLimitAndThatIsSaid) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.blocks.add_events(0, 24);
  card.blocks.flush();
  std::uint64_t now = 1000 * kMs;
  card.spans->pump(now);
  card.spans->stop(200 * kMs, 2000 * kMs);
  for (int i = 0; i < 2001 && !card.source->stopped; ++i) {
    card.fill(1);
    card.spans->pump(now += kMs);
  }
  EXPECT_TRUE(card.source->stopped);
  while (!card.spans->ended()) card.spans->pump(now += kMs);
  EXPECT_TRUE(card.spans->cut_off());
  EXPECT_FALSE(card.spans->failure());
}

TEST(CardSpans, AStopThatFailsIsAFailure) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.source->stop_fails = Error{"card.timeout", "DMA descriptor 0 did not stop"};
  card.spans->stop(0, 0);
  for (std::uint64_t now = 1000 * kMs; !card.spans->ended() && now < 2000 * kMs; now += kMs) card.spans->pump(now);
  ASSERT_TRUE(card.spans->ended());
  ASSERT_TRUE(card.spans->failure());
  EXPECT_EQ(card.spans->failure()->code, "card.timeout");
}

TEST(CardStream, EndsWhenItWasStoppedAndAllIsRead) {
  Card card(1);
  card.connect();
  card.blocks.add_events(0, 10);
  card.blocks.flush();
  card.fill(100);
  auto stream = card.stream(0, 1);
  card.spans->stop(0, 0);
  std::vector<SeenChunk> seen;
  PollStatus status{};
  for (int i = 0; i < 1000 && (status = read_all(*stream, seen)) != PollStatus::end; ++i) std::this_thread::yield();
  EXPECT_EQ(status, PollStatus::end);
  EXPECT_TRUE(card.source->stopped);
  EXPECT_EQ(seen.size(), 10u);
}

TEST(CardStream, AChunkThatTheEndCutsIsHandedOverMarked) {
  Card card(1);
  card.connect();
  card.blocks.add_events(0, 30);  // about the 24th event lies in two blocks, and the second block never comes
  card.blocks.bytes.resize(1024);
  card.fill(1);
  auto stream = card.stream(0, 1);
  card.spans->stop(0, 0);
  std::vector<SeenChunk> seen;
  for (int i = 0; i < 1000 && read_all(*stream, seen) != PollStatus::end; ++i) std::this_thread::yield();
  ASSERT_FALSE(seen.empty());
  EXPECT_NE(seen.back().status & chunk_status::kSoftwareTruncated, 0);
}

TEST(CardStream, AFailingCardEndsTheStreamAndSaysWhy) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.source->fails = Error{"card.gone", "the card is gone"};
  std::vector<SeenChunk> seen;
  for (int i = 0; i < 10 && read_all(*stream, seen) != PollStatus::end; ++i) {
  }
  ASSERT_TRUE(card.spans->failure());
  EXPECT_EQ(card.spans->failure()->code, "card.gone");
}

TEST(CardSpans, TheClockStandsStillWhileTheWholeCardDoes) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.blocks.add_events(0, 24);
  card.blocks.flush();
  card.fill(1);
  std::uint64_t now = 1000 * kMs;
  card.spans->pump(now);
  const std::uint64_t begin = card.spans->clock_ns();
  for (int i = 0; i < 100; ++i) card.spans->pump(now += kMs);
  EXPECT_LE(card.spans->clock_ns(), begin + 6 * kMs) << "a silent card does not mean a silent link";
  for (int i = 0; i < 1000; ++i) card.spans->pump(now += kMs);
  EXPECT_GE(card.spans->clock_ns(), begin + 50 * kMs) << "time continues at last if a card stays silent";
}

TEST(CardSpans, TimeInWhichNobodyLookedIsNoSilence) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.blocks.add_events(0, 24);
  card.blocks.flush();
  card.fill(1);
  std::uint64_t now = 1000 * kMs;
  card.spans->pump(now);
  const std::uint64_t begin = card.spans->clock_ns();
  for (int i = 0; i < 8; ++i) card.spans->pump(now += 700 * kMs);  // as if a process had stopped, or the card did not answer
  for (int i = 0; i < 100; ++i) card.spans->pump(now += kMs);
  EXPECT_LE(card.spans->clock_ns(), begin + 6 * kMs);
}

// Two cards in one stream, each with its data.
struct TwoCards {
  TwoCards() {
    std::vector<CardStream::Walk> walks;
    for (Card* card : {&one, &other}) {
      card->connect();
      walks.push_back({.spans = card->spans,
                       .decoder = make_block_span_decoder({}, 4096, std::vector<std::uint16_t>{0}),
                       .links = {static_cast<LinkIndex>(walks.size())}});
    }
    stream = std::make_unique<CardStream>(std::move(walks));
  }
  static void fill(Card& card, std::uint32_t first, std::uint32_t events) {
    card.blocks.bytes.clear();
    card.blocks.add_events(first, events);
    card.blocks.flush();
    kept.push_back(card.blocks.bytes);
    for (std::size_t at = 0; at < kept.back().size(); at += 1024)
      card.source->filled.push_back({.bytes = std::span(kept.back()).subspan(at, 1024)});
  }
  static inline std::deque<std::vector<std::byte>> kept;
  Card one{1};
  Card other{1};
  std::unique_ptr<CardStream> stream;
};

TEST(CardStream, CardsAreReadInTurn) {
  TwoCards cards;
  TwoCards::fill(cards.one, 0, 2400);
  TwoCards::fill(cards.other, 0, 2400);
  EXPECT_EQ(cards.stream->sources(), 2U);
  std::vector<SeenChunk> seen;
  std::array<std::uint32_t, 2> next{};
  while (read_all(*cards.stream, seen, 1) == PollStatus::page) {
    for (const SeenChunk& chunk : seen) next[cards.stream->source_of(chunk.link)] = chunk.l1id + 1;
    EXPECT_LE(next[0] > next[1] ? next[0] - next[1] : next[1] - next[0], 64U * 25U);
    seen.clear();
  }
  EXPECT_EQ(next[0], 2400U);
  EXPECT_EQ(next[1], 2400U);
}

TEST(CardStream, ACardThatIsHeldKeepsItsDataAndNeitherEndsNorFailsUnseen) {
  TwoCards cards;
  TwoCards::fill(cards.one, 0, 240);
  TwoCards::fill(cards.other, 0, 240);
  cards.stream->hold(0, true);
  std::vector<SeenChunk> seen;
  EXPECT_EQ(read_all(*cards.stream, seen), PollStatus::empty);
  EXPECT_EQ(seen.size(), 240U);
  for (const SeenChunk& chunk : seen) EXPECT_EQ(chunk.link, 1U);
  for (Card* card : {&cards.one, &cards.other}) card->spans->stop(0, 0);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(read_all(*cards.stream, seen), PollStatus::empty);
  EXPECT_TRUE(cards.stream->source_ended(1));
  EXPECT_FALSE(cards.stream->source_ended(0));
  cards.stream->hold(0, false);
  PollStatus status{};
  for (int i = 0; i < 1000 && (status = read_all(*cards.stream, seen)) != PollStatus::end; ++i) std::this_thread::yield();
  EXPECT_EQ(status, PollStatus::end);
  EXPECT_EQ(seen.size(), 480U);
}

TEST(CardStream, WhatACardsClockGainsOnTheOthersIsNotKept) {
  TwoCards cards;
  std::vector<SeenChunk> seen;
  read_all(*cards.stream, seen);
  // This time is far in the future, so that the time added by poll() does not matter.
  std::uint64_t now = base::steady_now_ns() + 100'000 * kMs;
  const auto run = [&](Card& card, int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      now += kMs;
      TwoCards::fill(card, 0, 1);
      card.spans->pump(now);
      if (&card == &cards.one) cards.other.spans->pump(now);
    }
  };
  const std::uint64_t begin = cards.stream->clock_ns();
  run(cards.one, 100);
  read_all(*cards.stream, seen);
  EXPECT_LE(cards.stream->clock_ns(), begin + 10 * kMs) << "the other card had stopped";
  const std::uint64_t stood = cards.stream->clock_ns();
  run(cards.other, 100);
  read_all(*cards.stream, seen);
  EXPECT_LE(cards.stream->clock_ns(), stood + 10 * kMs) << "now this one has stopped: its earlier lead does not count";
}

TEST(CardSpans, TheClockNeverLeaps) {
  Card card(1);
  card.connect();
  auto stream = card.stream(0, 1);
  card.spans->pump(1000 * kMs);
  const std::uint64_t begin = card.spans->clock_ns();
  card.blocks.add_events(0, 24);
  card.blocks.flush();
  card.fill(1);
  card.spans->pump(3000 * kMs);
  EXPECT_LE(card.spans->clock_ns(), begin + kMs);
}

TEST(CardStream, WorkersInThreadsLoseNothing) {
  Card card(8);
  card.connect();
  card.blocks.add_events(0, 20'000);
  card.blocks.flush();
  card.fill(3);
  std::vector<std::unique_ptr<CardStream>> streams;
  for (std::size_t w = 0; w < 3; ++w) streams.push_back(card.stream(w, 3));
  std::vector<std::size_t> counts(3);
  card.spans->stop(0, 1);
  {
    std::vector<std::jthread> workers;
    for (std::size_t w = 0; w < 3; ++w) {
      workers.emplace_back([&, w] {
        std::vector<SeenChunk> seen;
        while (read_all(*streams[w], seen, seen.size() + 1000) != PollStatus::end) {
          counts[w] += seen.size();
          seen.clear();
        }
        counts[w] += seen.size();
      });
    }
  }
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 8u * 20'000u);
}

}  // namespace
}  // namespace rodeo::input
