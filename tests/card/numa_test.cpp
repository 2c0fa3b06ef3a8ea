#include "card/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "card/dma/memory.h"
#include "memory_policy.h"

namespace rodeo::card {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const SyntheticMachine kTwoNodes{"node:2 core:4 pu:1", {0, 1, 2, 3, 4, 5, 6, 7}};

std::vector<unsigned> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(DmaMemory, LiesOnTheNodeThatIsAskedFor) {
  const auto memory = DmaMemory::create(8 << 20, 0);
  ASSERT_TRUE(memory) << memory.error().message();
  const auto nodes = memory->nodes();
  if (nodes.empty()) GTEST_SKIP() << "host: the kernel does not report the places of pages";
  EXPECT_THAT(nodes, ElementsAre(0));
  EXPECT_THAT(memory->description(), HasSubstr("of NUMA node 0"));
}

TEST(DmaMemory, PlainPagesPreferTheNodeAndAreNotBoundToIt) {
  if (!test::takes_policies()) GTEST_SKIP() << "host: the kernel takes no memory policy";
  const auto memory = DmaMemory::create(12 << 10, 0);
  ASSERT_TRUE(memory) << memory.error().message();
  ASSERT_EQ(memory->kind(), base::PageKind::transparent);
  EXPECT_EQ(test::policy_of(memory->bytes()), MPOL_PREFERRED) << "bound to a full node, the process would be killed";
  const auto anywhere = DmaMemory::create(12 << 10);
  EXPECT_EQ(test::policy_of(anywhere->bytes()), MPOL_DEFAULT);
}

TEST(DmaMemory, IsThereAlsoIfTheNodeIsNot) {
  const auto memory = DmaMemory::create(8 << 20, 900);
  ASSERT_TRUE(memory) << memory.error().message();
  std::ranges::fill(memory->bytes(), std::byte{1});
}

TEST(ReaderPlace, IsTheCardsNode) {
  const auto place = reader_place("card", 1, kTwoNodes);
  ASSERT_TRUE(place);
  EXPECT_THAT(place->cpus, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(place->description, "on NUMA node 1 (CPUs 4-7)");
}

TEST(ReaderPlace, HasOnlyCpusThatTheProcessMayUse) {
  const auto place = reader_place("card", 0, SyntheticMachine{kTwoNodes.topology, {0, 1, 3, 7}});
  ASSERT_TRUE(place);
  EXPECT_THAT(place->cpus, ElementsAre(0, 1, 3));
  EXPECT_EQ(place->description, "on NUMA node 0 (CPUs 0-1,3)");
  const auto none = reader_place("card", 1, SyntheticMachine{kTwoNodes.topology, {0}});
  ASSERT_TRUE(none);
  EXPECT_THAT(none->cpus, IsEmpty());
  EXPECT_EQ(none->description, "free: this process may use no CPU of NUMA node 1");
}

TEST(ReaderPlace, SaysWhyThereIsNothingToDo) {
  EXPECT_EQ(reader_place("card", -1, kTwoNodes)->description, "free: the card's NUMA node is not known");
  EXPECT_EQ(reader_place("card", 0, SyntheticMachine{"node:1 core:4 pu:1", {0}})->description,
            "free: this machine has one NUMA node");
  EXPECT_EQ(reader_place("card", 9, kTwoNodes)->description,
            "free: this machine has no NUMA node 9, which the card reports");
  EXPECT_EQ(reader_place("off", 1, kTwoNodes)->description, "free: as asked");
  EXPECT_THAT(reader_place("off", 1, kTwoNodes)->cpus, IsEmpty());
}

TEST(ReaderPlace, CanBeChosen) {
  EXPECT_THAT(reader_place("0", 1, kTwoNodes)->cpus, ElementsAre(0, 1, 2, 3));
  const auto absent = reader_place("2", 1, kTwoNodes);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, "card.bad_numa");
  EXPECT_THAT(absent.error().next, HasSubstr("there are: 0-1"));
  for (const char* wrong : {"", "cards", "-1", "1x"}) EXPECT_FALSE(reader_place(wrong, 1, kTwoNodes)) << wrong;
}

TEST(StayAtCard, KeepsAThreadThereAndGivesItBackItsCpus) {
  std::thread([] {
    const std::vector<unsigned> before = own_cpus();
    ASSERT_FALSE(before.empty());
    {
      const StayAtCard here({.cpus = {before.back()}});
      EXPECT_TRUE(here.stays() || before.size() == 1);
      EXPECT_THAT(own_cpus(), ElementsAre(before.back()));
    }
    EXPECT_EQ(own_cpus(), before);
    EXPECT_TRUE(stay_at_card({.cpus = {before.front()}}));
    EXPECT_THAT(own_cpus(), ElementsAre(before.front()));
  }).join();
}

TEST(StayAtCard, LeavesAThreadAloneThatIsPinnedAlready) {
  std::thread([] {
    const std::vector<unsigned> before = own_cpus();
    if (before.size() < 2) GTEST_SKIP() << "host: with one CPU, pinning has no effect";
    ASSERT_TRUE(stay_at_card({.cpus = {before[0]}}));
    EXPECT_FALSE(stay_at_card({.cpus = {before[1]}}));
    const StayAtCard here({.cpus = {before[1]}});
    EXPECT_FALSE(here.stays());
    EXPECT_THAT(own_cpus(), ElementsAre(before[0]));
  }).join();
}

TEST(StayAtCard, DoesNothingWithoutAPlace) {
  const std::vector<unsigned> before = own_cpus();
  const StayAtCard nowhere({});
  EXPECT_FALSE(nowhere.stays());
  EXPECT_EQ(own_cpus(), before);
}

}  // namespace
}  // namespace rodeo::card
