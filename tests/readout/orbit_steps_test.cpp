// Ids with steps, as orbits of triggered data have them: all links skip the same numbers, and nothing is lost or in doubt.
#include <gtest/gtest.h>

#include "readout/full_fixture.h"
#include "readout/gbt_fixture.h"
#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

constexpr std::uint32_t kFrames = 2000;
constexpr std::uint8_t kOrbitBits = 24;

/// Orbits with steps of 11, or with random steps of 1 to 100.
std::vector<std::uint32_t> orbits(bool random) {
  std::vector<std::uint32_t> all;
  std::uint32_t orbit = 0xffc000;  // wraps
  std::uint32_t state = 1;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    state = state * 1664525U + 1013904223U;
    all.push_back((orbit += random ? 1 + (state >> 8) % 100 : 11) & 0xffffffU);
  }
  return all;
}

class OrbitSteps : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, OrbitSteps, ::testing::Bool(),
                         [](const auto& random) { return random.param ? "AtRandom" : "OfEleven"; });

void expect_nothing_lost(const FragmentBuilder& builder, std::uint64_t chunks) {
  const FragmentBuilder::Status status = builder.status();
  for (const NamedCounter& counter : status.lost) EXPECT_EQ(counter.value, 0U) << counter.name;
  EXPECT_EQ(status.chunks_built, chunks);
}

void expect_no_doubt(FragmentCollector& collector, std::size_t chunks_each, std::size_t fragments) {
  std::size_t whole = 0;
  for (const SeenFragment& fragment : collector.fragments()) {
    EXPECT_EQ(fragment.status & fragment_status::kL1IdMismatch, 0U);
    if (fragment.chunks == 0) continue;
    ++whole;
    EXPECT_EQ(fragment.chunks, chunks_each);
    EXPECT_EQ(fragment.status, 0U);
  }
  EXPECT_EQ(whole, fragments);
}

TEST_P(OrbitSteps, GbtLosesNothing) {
  GbtFixture fixture(4, {}, kOrbitBits);
  fixture.start();
  for (const std::uint32_t orbit : orbits(GetParam())) fixture.push_all(L1Id{orbit}, 1);
  fixture.finish();
  fixture.check_invariants();
  expect_nothing_lost(*fixture.builder, std::uint64_t{4} * kFrames);
  expect_no_doubt(fixture.collector, 4, kFrames);
}

TEST_P(OrbitSteps, FullLosesNothing) {
  FullFixture fixture(3, 3, {}, kOrbitBits);
  fixture.start();
  for (const std::uint32_t orbit : orbits(GetParam())) {
    for (std::uint32_t group = 0; group < 3; ++group) fixture.input.push({fixture.event(group, L1Id{orbit}, 40)});
  }
  fixture.finish();
  expect_nothing_lost(*fixture.builder, std::uint64_t{3} * kFrames);
  expect_no_doubt(fixture.collector, 1, 3 * kFrames);
}

TEST_P(OrbitSteps, TheSequencerTakesEachFrameAtOnceOrWhenTheOtherLinksHaveComeToIt) {
  for (const bool full : {false, true}) {
    sequencing::Sequencer::Settings settings = sequencing::settings(kOrbitBits);
    settings.reach = 256;  // the reach of builders with the default window
    settings.window = 16384;
    settings.aside = 4096;
    const std::size_t links = full ? 1 : 3;
    sequencing::Rob rob(links, settings, full);
    for (const std::uint32_t orbit : orbits(GetParam())) {
      for (std::size_t link = 0; link < links; ++link) rob.offer(link, orbit);
      rob.now += sequencing::kTimeout / 4;
    }
    rob.finish();
    for (std::size_t link = 0; link < links; ++link) {
      const std::string got = rob.got(link);
      const std::size_t lost = got.find_first_of("abcdefghijklmnopqrstuvwxyz?");
      EXPECT_EQ(lost, std::string::npos) << full << got.substr(std::min(lost, got.size()), 200);
      EXPECT_EQ(std::ranges::count(got, ' ') + 1, kFrames);
    }
  }
}

}  // namespace
}  // namespace rodeo::test
