#include "formats/trigger_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace rodeo::formats {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kStart = 1'000'000;

std::vector<std::uint32_t> accept_one_by_one(TriggerPlan& plan, std::size_t count) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(plan.accept(plan.due_ns()).value);
  return ids;
}

TEST(TriggerPlan, EvenSpacingHasNoDriftHoweverOddThePeriod) {
  TriggerPlan plan({.rate_hz = 3e5});
  plan.start(kStart);
  EXPECT_EQ(plan.due_ns(), kStart);
  (void)accept_one_by_one(plan, 300'000);
  EXPECT_EQ(plan.due_ns(), kStart + 1'000'000'000);
}

TEST(TriggerPlan, IsAFunctionOfItsSeedWhetherTriggersAreAcceptedOrRefused) {
  const TriggerPlanSettings settings{.rate_hz = 1e5, .random = true, .seed = 5};
  TriggerPlan one(settings);
  TriggerPlan two(settings);
  TriggerPlan other({.rate_hz = 1e5, .random = true, .seed = 6});
  for (TriggerPlan* plan : {&one, &two, &other}) plan->start(kStart);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    (void)one.accept(one.due_ns());
    two.refuse();
    other.refuse();
    ASSERT_EQ(one.due_ns(), two.due_ns());
    differs = differs || one.due_ns() != other.due_ns();
  }
  EXPECT_TRUE(differs);
  EXPECT_NEAR(static_cast<double>(one.due_ns() - kStart), 1000 * 1e4, 2e6) << "a thousand intervals of 10 us";
  EXPECT_EQ(two.accepted(), 0U);
}

TEST(TriggerPlan, RefusesWhatWasDueUpToATime) {
  TriggerPlan plan({.rate_hz = 1e6});
  plan.start(kStart);
  EXPECT_EQ(plan.refuse_until(kStart + 9'999), 10U);
  EXPECT_EQ(plan.due_ns(), kStart + 10'000);
  EXPECT_EQ(plan.accept(plan.due_ns()).value, 0U) << "only accepted triggers get ids";
}

TEST(TriggerPlan, GoesOnFromWhereItIsResumed) {
  TriggerPlan plan({.rate_hz = 1e6, .ecr_period = 5us});
  plan.start(kStart);
  (void)accept_one_by_one(plan, 3);
  plan.resume(kStart + 1'000'000);
  EXPECT_EQ(plan.due_ns(), kStart + 1'001'000) << "a period later; the triggers due in between did not occur";
  EXPECT_EQ(accept_one_by_one(plan, 5), (std::vector<std::uint32_t>{3, 4, 5, 6, 0x01000000})) << "nor did the resets";
  plan.resume(kStart);
  EXPECT_EQ(plan.due_ns(), kStart + 1'006'000) << "nothing was left out";
}

TEST(TriggerPlan, ResetsByCountByTimeAndBeforeTheIdsRunOut) {
  TriggerPlan by_count({.rate_hz = 1e6, .ecr_triggers = 3});
  by_count.start(kStart);
  EXPECT_EQ(accept_one_by_one(by_count, 7),
            (std::vector<std::uint32_t>{0, 1, 2, 0x01000000, 0x01000001, 0x01000002, 0x02000000}));
  EXPECT_EQ(by_count.ecrs(), 2U);
  TriggerPlan by_time({.rate_hz = 1e6, .ecr_period = 2500ns});
  by_time.start(kStart);
  EXPECT_EQ(accept_one_by_one(by_time, 6), (std::vector<std::uint32_t>{0, 1, 2, 0x01000000, 0x01000001, 0x02000000}));
  TriggerPlan never({});
  never.start(kStart);
  EXPECT_EQ(never.accept(1U << 24, kStart).count, 1U << 24);
  EXPECT_EQ(never.accept(1, kStart).first.value, 0x01000000U);
}

TEST(TriggerPlan, WithoutARateManyAreAcceptedAtOnceUpToTheNextReset) {
  TriggerPlan plan({.limit = 10, .ecr_triggers = 4});
  plan.start(kStart);
  EXPECT_FALSE(plan.paced());
  EXPECT_EQ(plan.accept(3, kStart).count, 3U);
  EXPECT_EQ(plan.accept(3, kStart).count, 1U) << "the reset comes in between";
  const auto next = plan.accept(3, kStart);
  EXPECT_EQ(next.first.value, 0x01000000U);
  EXPECT_EQ(next.count, 3U);
  EXPECT_EQ(plan.left(), 3U);
  EXPECT_FALSE(plan.exhausted());
}

TEST(TriggerPlan, TheCounterOfResetsGoesRoundInTheIdAlone) {
  TriggerPlan plan({.ecr_triggers = 1});
  plan.start(kStart);
  (void)accept_one_by_one(plan, 256);
  EXPECT_EQ(plan.accept(kStart).value, 0U);
  EXPECT_EQ(plan.ecrs(), 256U);
}

}  // namespace
}  // namespace rodeo::formats
