#include "base/arena.h"

#include <gtest/gtest.h>

#include <cstring>

using rodeo::base::Arena;

TEST(Arena, GivesZeroedWritableMemoryAndSaysWhatPages) {
  auto arena = Arena::create(5 << 20);
  ASSERT_TRUE(arena.has_value());
  ASSERT_EQ(arena->size(), 5U << 20);
  for (std::size_t i = 0; i < arena->size(); i += 511) ASSERT_EQ(arena->data()[i], std::byte{0});
  std::memset(arena->data(), 0x5a, arena->size());
  EXPECT_NE(arena->description().find("5 MiB on"), std::string::npos);
}

TEST(Arena, RefusesMoreThanTheMachineHas) {
  const auto arena = Arena::create(std::size_t{1} << 50);
  ASSERT_FALSE(arena.has_value());
  EXPECT_EQ(arena.error().code, "base.memory");
  EXPECT_FALSE(arena.error().next.empty());
}

TEST(Arena, MovesLeaveTheOldOneEmpty) {
  auto first = Arena::create(4096);
  ASSERT_TRUE(first.has_value());
  std::byte* memory = first->data();
  Arena second = std::move(*first);
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(first->data(), nullptr);
}
