// What BCIDs show about a link's place.
#include "readout/sequence/place_evidence.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace rodeo::test {
namespace {

using readout::PlaceEvidence;
using Proof = PlaceEvidence::Proof;

using Bcid = std::function<std::uint16_t(std::int64_t)>;

std::uint16_t random_bcid(std::int64_t event) {
  return static_cast<std::uint16_t>((static_cast<std::uint64_t>(event) * 0x9e3779b97f4a7c15U >> 40) % 3564);
}
std::uint16_t laser(std::int64_t /*event*/) { return 1234; }
// Trains of 8 bunches at the same places of each orbit.
std::uint16_t train(std::int64_t event) { return static_cast<std::uint16_t>(100 + 40 * (event / 8 % 3) + event % 8); }

/// A link is `true_offset` events from its assumed place, and its BCIDs are too large by `wrong`; places are 256 apart.
PlaceEvidence::Finding after(std::uint32_t chunks, std::int64_t true_offset, std::uint16_t wrong = 0,
                             const Bcid& of = random_bcid,
                             const std::vector<std::int64_t>& others = {-512, -256, 256, 512}) {
  PlaceEvidence evidence;
  PlaceEvidence::Finding finding;
  for (std::int64_t event = 1000; event < 1000 + chunks; ++event) {
    std::vector<PlaceEvidence::OtherPlace> places;
    for (const std::int64_t offset : others) places.push_back({offset, of(event + offset)});
    finding = evidence.weigh(static_cast<std::uint16_t>((of(event + true_offset) + wrong) % 3564), of(event), places);
  }
  return finding;
}

TEST(PlaceEvidence, EightChunksInARowThatAgreeHereAloneProveThePlace) {
  EXPECT_EQ(after(7, 0).proof, Proof::nothing);
  EXPECT_EQ(after(8, 0).proof, Proof::here);
}

TEST(PlaceEvidence, EightThatAgreeAtOneOtherPlaceAloneMoveTheLink) {
  EXPECT_EQ(after(7, 256).proof, Proof::nothing);
  for (const std::int64_t offset : {-512, -256, 256, 512}) {
    EXPECT_EQ(after(8, offset).proof, Proof::elsewhere);
    EXPECT_EQ(after(8, offset).offset, offset);
  }
}

TEST(PlaceEvidence, AConstantOffsetMovesNothingAndIsTold) {
  const auto finding = after(50, 0, 3);
  EXPECT_EQ(finding.proof, Proof::nowhere);
  EXPECT_EQ(finding.constant, 3);
}

// There are 40 other places, and the last two of them always agree with the link.
TEST(PlaceEvidence, AllPlacesThatAgreeAreCounted) {
  PlaceEvidence evidence;
  PlaceEvidence::Finding finding;
  for (std::int64_t event = 0; event < 50; ++event) {
    std::vector<PlaceEvidence::OtherPlace> places;
    for (std::int64_t i = 1; i <= 40; ++i) places.push_back({256 * i, i > 38 ? std::uint16_t{7} : random_bcid(event + i)});
    for (std::int64_t i = 1; i <= 30; ++i) places[static_cast<std::size_t>(i) - 1].bcid = event % 2 == 0 ? 7 : 8;
    finding = evidence.weigh(7, 9, places);
  }
  EXPECT_EQ(finding.proof, Proof::nowhere);
}

TEST(PlaceEvidence, APlaceThatIsNotPossibleMovesNothing) {
  const auto finding = after(50, 4096);
  EXPECT_EQ(finding.proof, Proof::nowhere);
  EXPECT_FALSE(finding.constant);
}

TEST(PlaceEvidence, ABcidThatAllPlacesShareProvesNothing) {
  EXPECT_EQ(after(1000, 0, 0, laser).proof, Proof::nothing);
  EXPECT_EQ(after(1000, 256, 0, laser).proof, Proof::nothing);
  EXPECT_EQ(after(1000, 0, 0, laser, {}).proof, Proof::nothing);
}

TEST(PlaceEvidence, BunchTrainsThatAgreeAtSeveralPlacesProveNothing) {
  // Two places have the same BCIDs if their distance is a multiple of three trains.
  EXPECT_EQ(after(200, 0, 0, train, {-240, 240}).proof, Proof::nothing);
  EXPECT_EQ(after(200, 0, 0, train, {-240, 8}).proof, Proof::nothing);
  EXPECT_EQ(after(200, 0, 0, train, {-8, 8}).proof, Proof::here);
  EXPECT_EQ(after(200, 8, 0, train, {8, 8 + 24}).proof, Proof::nowhere);
}

TEST(PlaceEvidence, WithoutOtherPlacesEightDifferentBcidsProveThePlace) {
  EXPECT_EQ(after(8, 0, 0, random_bcid, {}).proof, Proof::here);
}

TEST(PlaceEvidence, AFlippedBcidBeginsARowAnew) {
  PlaceEvidence evidence;
  std::vector<Proof> proofs;
  for (std::int64_t event = 0; event < 16; ++event) {
    const std::vector<PlaceEvidence::OtherPlace> others{{256, random_bcid(event + 256)}};
    const auto bcid = static_cast<std::uint16_t>(random_bcid(event) ^ (event == 7 ? 1 : 0));
    proofs.push_back(evidence.weigh(bcid, random_bcid(event), others).proof);
  }
  EXPECT_EQ(proofs[14], Proof::nothing);
  EXPECT_EQ(proofs[15], Proof::here);
}

TEST(PlaceEvidence, EventsWhoseBcidIsNotKnownCountNeitherWay) {
  PlaceEvidence evidence;
  Proof proof = Proof::nothing;
  for (std::int64_t event = 0; event < 16; ++event) {
    const std::optional<std::uint16_t> here = event % 2 == 0 ? std::optional(random_bcid(event)) : std::nullopt;
    proof = evidence.weigh(random_bcid(event), here, {}).proof;
    EXPECT_EQ(proof, event == 14 ? Proof::here : Proof::nothing) << event;
    if (event == 14) break;
  }
}

}  // namespace
}  // namespace rodeo::test
