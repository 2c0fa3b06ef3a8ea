// The rules of superpages (table in README.md), with emulated cards: valid pushes, contents, and owners.
#include <gtest/gtest.h>

#include <deque>

#include "bench/card/data_check.h"
#include "emulated_card.h"

namespace rodeo::card {
namespace {

TEST_P(EmulatedCard, SuperpagesAreRefusedInTheOrderOfTheRules) {
  open();
  EXPECT_EQ(push(0, kSize), PushStatus::not_started);
  start();
  constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  EXPECT_EQ(push(kNowhere, 0), PushStatus::empty);
  EXPECT_EQ(push(kNowhere, 16 << 10), PushStatus::not_a_multiple);
  EXPECT_EQ(push(kNowhere, (32 << 10) + 4), PushStatus::not_a_multiple);
  EXPECT_EQ(push(kNowhere, 32 << 10), PushStatus::outside);
  EXPECT_EQ(push(kPieces * kSize - kSize + 4, kSize), PushStatus::outside);
  EXPECT_EQ(push(2, 32 << 10), PushStatus::misaligned);
  EXPECT_EQ(push(0, 32 << 10), PushStatus::done) << "32 KiB is the smallest";
  wait_ready(kind_.type == emulator::CardType::felix ? 0 : 1);
}

TEST_P(EmulatedCard, TheTransferQueueIsKnownBeforeTheFirstStartAndRefusesOneTooMany) {
  open();
  const std::size_t capacity = channel_->transfer_capacity();
  EXPECT_EQ(channel_->transfer_room(), capacity);
  start();
  EXPECT_EQ(channel_->transfer_capacity(), capacity);
  const std::uint32_t bytes = channel_->granule();
  for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(push(i * bytes % (kPieces * kSize), bytes), PushStatus::done) << i;
  EXPECT_EQ(push(capacity * bytes % (kPieces * kSize), bytes), PushStatus::full);
}

TEST_P(EmulatedCard, EveryByteOfManySuperpagesIsRight) {
  links_ = kind_.type == emulator::CardType::cru ? 0b111 : 0;
  open_and_start();
  auto check = bench::make_data_check(*card_, kind_.channel,
                                      {.source = DataSource::internal, .superpage_bytes = kSize, .superpages = kPieces});
  ASSERT_TRUE(check) << check.error().message();
  std::deque<std::uint64_t> mine;  // links fill at different speeds: superpages return in another order
  for (std::uint64_t i = 0; i < kPieces - 1; ++i) mine.push_back(i * kSize);
  if (kind_.type == emulator::CardType::felix) mine.push_back((kPieces - 1) * kSize);
  // More than 256 per link: counts and indices wrap.
  for (int round = 0; round < 400; ++round) {
    for (; !mine.empty(); mine.pop_front()) ASSERT_EQ(push(mine.front(), kSize), PushStatus::done);
    wait_ready(1);
    for (const Superpage& page : pop_all()) {
      ASSERT_TRUE(page.ready);
      (*check)->check(page, bytes_of(page));
      mine.push_back(page.offset);
    }
  }
  EXPECT_EQ((*check)->errors(), 0U) << ((*check)->findings().empty() ? "" : (*check)->findings().front());
  EXPECT_EQ(channel_->read(DmaCounter::index_mismatches) + channel_->read(DmaCounter::count_jumps) +
                channel_->read(DmaCounter::position_errors),
            0U);
}

TEST_P(EmulatedCard, APieceOfTheBufferIsTheUsersAgainWithItsPointer) {
  open_and_start();
  int mine = 0;
  Superpage page = piece(0);
  page.user = &mine;
  ASSERT_EQ(channel_->push(page), PushStatus::done);
  next_ = 1;
  push_some(1);
  wait_ready(1);
  const auto ready = channel_->pop();
  EXPECT_EQ(ready->user, &mine);
  EXPECT_TRUE(ready->ready);
  EXPECT_GT(ready->received, 0U);
}

}  // namespace
}  // namespace rodeo::card
