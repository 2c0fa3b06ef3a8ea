#include "card/dma/span_reader.h"

#include <gtest/gtest.h>

#include "scripted_cards.h"

namespace rodeo::card {
namespace {

using doubles::ScriptedCrorc;
using doubles::ScriptedCru;
using doubles::ScriptedFelix;

constexpr std::uint32_t kSize = 32 << 10;

TEST(SpanReader, HandsOutACrusSuperpagesInOrderAndGivesThemBack) {
  ScriptedCru cru;
  DmaMemory memory = DmaMemory::create(8 * kSize).value();
  auto channel = DmaChannel::open(*cru.card, 0, memory.shared()).value();
  auto reader = SpanReader::create(*channel, kSize).value();
  ASSERT_TRUE(reader.start());
  EXPECT_EQ(cru.queue[0].size(), 8u);
  EXPECT_FALSE(reader.next().value());
  cru.complete(0, kSize, 1);
  cru.complete(0, 1024, 2);
  for (std::uint64_t number : {0U, 1U}) {
    const auto span = reader.next().value();
    ASSERT_TRUE(span);
    EXPECT_EQ(span->superpage, number);
    EXPECT_TRUE(span->last);
    EXPECT_EQ(span->bytes.size(), number == 0 ? kSize : 1024u);
    EXPECT_EQ(static_cast<std::uint64_t>(span->bytes[0]), number + 1);
  }
  EXPECT_EQ(reader.held(), 2u);
  ASSERT_TRUE(reader.release_before(1));
  ASSERT_FALSE(reader.next().value());
  EXPECT_EQ(cru.queue[0].size(), 7u) << "the second is still held";
  ASSERT_TRUE(reader.release_before(2));
  ASSERT_FALSE(reader.next().value());
  EXPECT_EQ(cru.queue[0].size(), 8u);
}

TEST(SpanReader, AnUnusedSuperpageOfAStopIsNoSpan) {
  ScriptedCru cru;
  DmaMemory memory = DmaMemory::create(4 * kSize).value();
  auto channel = DmaChannel::open(*cru.card, 0, memory.shared()).value();
  auto reader = SpanReader::create(*channel, kSize).value();
  ASSERT_TRUE(reader.start());
  cru.complete(0, kSize);
  cru.flush = {{0, 64}};
  ASSERT_TRUE(reader.stop());
  EXPECT_EQ(reader.next().value()->bytes.size(), kSize);
  EXPECT_EQ(reader.next().value()->bytes.size(), 64u);
  EXPECT_FALSE(reader.next().value());
  ASSERT_TRUE(reader.release_before(2));
  ASSERT_TRUE(reader.start()) << "the reader has all superpages again";
  EXPECT_EQ(cru.queue[0].size(), 4u);
}

TEST(SpanReader, GivesAShortQueueMoreThanItHolds) {
  ScriptedCrorc crorc;
  DmaMemory memory = DmaMemory::create(200 * kSize).value();
  auto channel = DmaChannel::open(*crorc.card, 0, memory.shared()).value();
  auto reader = SpanReader::create(*channel, kSize).value();
  ASSERT_TRUE(reader.start());
  for (std::uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(crorc.queue.size(), 1u) << i;
    crorc.complete(kSize);
    const auto span = reader.next().value();
    ASSERT_TRUE(span) << i;
    EXPECT_EQ(span->superpage, i);
    EXPECT_EQ(span->bytes.data(), memory.bytes().data() + i % 200 * kSize);
    ASSERT_TRUE(reader.release_before(i + 1));
    (void)reader.next();
  }
}

TEST(SpanReader, HandsOutAFelixRingWhileItGrows) {
  ScriptedFelix felix;
  DmaMemory memory = DmaMemory::create(4 * kSize).value();
  auto channel = DmaChannel::open(*felix.card, 0, memory.shared()).value();
  auto reader = SpanReader::create(*channel, kSize).value();
  ASSERT_TRUE(reader.start());
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(1 + i * 7 % 40) * 1024;
    felix.advance(bytes);
    written += bytes;
    while (const auto span = reader.next().value()) {
      ASSERT_EQ(span->bytes.data(), memory.bytes().data() + read % memory.bytes().size());
      ASSERT_EQ(span->superpage, read / kSize);
      read += span->bytes.size();
      ASSERT_EQ(span->last, read % kSize == 0);
      if (!span->last) continue;
      ASSERT_TRUE(reader.release_before(span->superpage + 1));
    }
    ASSERT_EQ(read, written) << "data do not wait for a full superpage";
  }
}

TEST(SpanReader, RefusesSizesThatTheCardDoesNotTake) {
  ScriptedFelix felix;
  DmaMemory memory = DmaMemory::create(5 * kSize).value();
  auto channel = DmaChannel::open(*felix.card, 0, memory.shared()).value();
  EXPECT_FALSE(SpanReader::create(*channel, 1000));
  EXPECT_FALSE(SpanReader::create(*channel, 0));
  EXPECT_FALSE(SpanReader::create(*channel, 2 * kSize)) << "the ring has five";
  EXPECT_FALSE(SpanReader::create(*channel, 5 * kSize)) << "fewer than two";
  EXPECT_TRUE(SpanReader::create(*channel, kSize));
}

}  // namespace
}  // namespace rodeo::card
