#include "emulator/link_pacer.h"

#include <gtest/gtest.h>

namespace {

using rodeo::emulator::LinkPacer;

constexpr std::uint64_t kMs = 1'000'000;

TEST(LinkPacer, WithoutASpeedNothingIsOccupied) {
  const LinkPacer pacer(0, 4);
  EXPECT_FALSE(pacer.paced());
  EXPECT_TRUE(pacer.is_free(3, 0));
  EXPECT_EQ(pacer.occupied_us(), 0U);
}

TEST(LinkPacer, ALaneCarriesItsSpeedHoweverOftenItIsLookedAt) {
  // FULL mode: 9.6 Gb/s with 8b/10b.
  for (const std::uint64_t step : {1'000U, 77'777U, 9'000'000U}) {
    LinkPacer pacer(960e6, 2);
    double bytes = 0;
    constexpr double kChunk = 5000;
    const std::uint64_t start = 1000 * kMs;
    for (std::uint64_t now = start; now < start + 1000 * kMs; now += step) {
      const auto count = static_cast<double>(pacer.most(now, kChunk));
      for (std::size_t lane = 0; lane < 2; ++lane) {
        if (count > 0) pacer.carry(lane, now, count * kChunk);
      }
      bytes += count * kChunk;
    }
    EXPECT_NEAR(bytes, 960e6, 0.02 * 960e6) << "polled every " << step << " ns";
    EXPECT_LE(bytes, 960e6 + 9600e3 + kChunk) << "ten milliseconds to catch up, plus the current chunk";
    EXPECT_NEAR(static_cast<double>(pacer.occupied_us()), bytes / 960, 1);
  }
}

TEST(LinkPacer, ALargePieceGoesAloneAndIsPaidFor) {
  LinkPacer pacer(1e6, 1);
  EXPECT_GE(pacer.most(100 * kMs, 50'000), 1U);
  pacer.carry(0, 100 * kMs, 50'000);
  EXPECT_EQ(pacer.most(139 * kMs, 50'000), 0U);
  EXPECT_FALSE(pacer.is_free(0, 139 * kMs));
  EXPECT_TRUE(pacer.is_free(0, 140 * kMs));
}

TEST(LinkPacer, TheSlowestLaneDecidesWhatAllGet) {
  LinkPacer pacer(1e6, 3);
  pacer.carry(1, 100 * kMs, 30'000);
  EXPECT_EQ(pacer.most(119 * kMs, 100), 0U);
  EXPECT_TRUE(pacer.is_free(0, 105 * kMs));
  EXPECT_GT(pacer.most(121 * kMs, 100), 0U);
}

TEST(LinkPacer, WhatWasIdleDoesNotSaveUp) {
  LinkPacer pacer(1e6, 1);
  EXPECT_EQ(pacer.most(1'000'000 * kMs, 100), 101U) << "ten milliseconds at a megabyte a second, plus the current piece";
}

}  // namespace
