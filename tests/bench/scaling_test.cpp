// The paper's arithmetic of scaling, checked with the paper's own table.
#include "bench/readout/scaling.h"

#include <gtest/gtest.h>

namespace rodeo::bench {
namespace {

TEST(Scaling, AssemblyCostAndParallelFractionAreThoseOfTableTwo) {
  EXPECT_NEAR(assembly_cost(2, 1.86), 7.5, 0.05);
  EXPECT_NEAR(assembly_cost(3, 2.65), 6.6, 0.05);
  EXPECT_NEAR(parallel_fraction(assembly_cost(2, 1.86)), 0.925, 0.001);
  EXPECT_NEAR(parallel_fraction(assembly_cost(3, 2.65)), 0.934, 0.001);
}

TEST(Scaling, AssemblyThatCostsNothingScalesPerfectly) {
  EXPECT_DOUBLE_EQ(assembly_cost(4, 4), 0);
  EXPECT_DOUBLE_EQ(parallel_fraction(0), 1);
}

TEST(Scaling, TheMedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 100}), 3.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

}  // namespace
}  // namespace rodeo::bench
