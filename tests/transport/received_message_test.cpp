#include "transport/received_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

using namespace rodeo::transport;

namespace {

struct Pages final : PageHome {
  void give_back(std::uint32_t slot) noexcept override { back.push_back(slot); }

  std::vector<std::uint32_t> back;
  std::array<std::byte, 12> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}};
  std::span<const std::byte> piece(std::size_t first, std::size_t count) const {
    return std::span(bytes).subspan(first, count);
  }
};

class ReceivedMessageTest : public testing::Test {
 protected:
  /// Two pieces in two pages, and a page without a piece of the message.
  ReceivedMessage in_pages() {
    ReceivedMessage message(pages_);
    message.add(4, pages_->piece(0, 2));
    message.add(9, pages_->piece(8, 0));
    message.add(7, pages_->piece(2, 4));
    return message;
  }

  const std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::byte> scratch_;
  const std::vector<std::byte> all_{pages_->bytes.begin(), pages_->bytes.begin() + 6};
};

TEST_F(ReceivedMessageTest, HasItsPagesUntilItGoes) {
  {
    const ReceivedMessage message = in_pages();
    EXPECT_EQ(message.bytes(), 6u);
    EXPECT_EQ(message.pieces().size(), 2u);
    const auto whole = message.in_one_piece(scratch_);
    EXPECT_TRUE(std::ranges::equal(whole, all_));
    EXPECT_TRUE(pages_->back.empty());
  }
  EXPECT_EQ(pages_->back, (std::vector<std::uint32_t>{4, 9, 7}));
}

TEST_F(ReceivedMessageTest, OnePieceIsReadWhereItLies) {
  ReceivedMessage message(pages_);
  message.add(1, pages_->piece(0, 6));
  EXPECT_EQ(message.in_one_piece(scratch_).data(), pages_->bytes.data());
}

TEST_F(ReceivedMessageTest, WhatMovesGivesBackOnce) {
  {
    ReceivedMessage first = in_pages();
    ReceivedMessage second = std::move(first);
    ReceivedMessage third(pages_);
    third.add(3, pages_->piece(6, 1));
    third = std::move(second);
    EXPECT_EQ(third.bytes(), 6u);
  }
  std::ranges::sort(pages_->back);
  EXPECT_EQ(pages_->back, (std::vector<std::uint32_t>{3, 4, 7, 9}));
}

TEST_F(ReceivedMessageTest, OneThatLeavesItsPagesIsWholeAndGoesOn) {
  ReceivedMessage message = in_pages();
  message.leave_pages();
  EXPECT_EQ(pages_->back, (std::vector<std::uint32_t>{4, 9, 7}));
  pages_->bytes.fill(std::byte{0xee});
  message.add_copy(std::array{std::byte{7}});
  std::vector<std::byte> expected = all_;
  expected.push_back(std::byte{7});
  EXPECT_EQ(message.pieces().size(), 1u);
  EXPECT_TRUE(std::ranges::equal(message.in_one_piece(scratch_), expected));
}

TEST_F(ReceivedMessageTest, NothingHasNoPieces) {
  ReceivedMessage message(pages_);
  message.leave_pages();
  EXPECT_TRUE(message.pieces().empty());
  EXPECT_TRUE(message.in_one_piece(scratch_).empty());
}

TEST_F(ReceivedMessageTest, MayOutliveWhoeverReceivedIt) {
  std::weak_ptr<Pages> home;
  {
    auto pages = std::make_shared<Pages>();
    home = pages;
    ReceivedMessage message(pages);
    message.add(1, pages->piece(0, 3));
    pages.reset();
    EXPECT_EQ(message.bytes(), 3u);
    EXPECT_FALSE(home.expired());
  }
  EXPECT_TRUE(home.expired());
}

}  // namespace
