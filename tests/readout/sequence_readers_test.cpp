// The rules of a Sequencer with several readers, case by case: which reader waits for which, and which continues.
#include <vector>

#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;

TEST(Sequencer, NobodyIsFollowedAgainstLinksThatHaveNotBeenRead) {
  Started rob(4, settings(), false, 2);
  const auto last = static_cast<std::uint32_t>(600 + 2 * kReach + kStep);
  for (std::uint32_t id = 600; id <= last; ++id) {
    rob.offer(0, id);
    rob.offer(1, id);
  }
  EXPECT_EQ(rob.got(0), "");
  EXPECT_TRUE(rob.sequencer.may_be_resolved(0, 1, 2));
  EXPECT_FALSE(rob.sequencer.may_be_resolved(0, 0, 1)) << "its own reader has no more to decide it";
  EXPECT_TRUE(rob.sequencer.any_link_held_up());
  rob.sequencer.set_drained(1);
  EXPECT_FALSE(rob.sequencer.may_be_resolved(0, 1, 2));
  rob.offer(0, last + 1);
  EXPECT_EQ(rob.got(0).substr(0, 11), "600 601 602");
}

TEST(Sequencer, ALinkThatJumpsAloneIsNotFollowedOnceTheOthersAreRead) {
  Started rob(4, settings(), false, 2);
  for (std::uint32_t id = 600; id < 700; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.got(0), "");
  for (std::uint32_t id = 10; id < 60; ++id) {
    for (std::size_t link = 1; link < 4; ++link) rob.offer(link, id);
  }
  EXPECT_FALSE(rob.sequencer.may_be_resolved(0, 1, 2));
  rob.finish();
  EXPECT_EQ(rob.got(0).substr(0, 11), "out out out");
}

TEST(Sequencer, ALinkThatFillsTheWindowWaitsForThoseThatAreReadLater) {
  Started rob(2, settings(), false, 2, 1);       // one thread reads two cards with one window
  constexpr std::uint32_t kFull = 10 + kWindow;  // event 10 is the first that the other reader has not passed
  constexpr std::uint32_t kLast = kFull + 2 * kReach + kStep;
  for (std::uint32_t id = 10; id < kLast; ++id) rob.offer(0, id);
  EXPECT_EQ(rob.link(0).position(), rob.oldest + kFull);
  EXPECT_TRUE(rob.sequencer.may_be_resolved(0, 1, 2));
  EXPECT_EQ(rob.link(0).end, 0) << "it asks again";
  rob.sequencer.set_drained(1);  // the other card has no data: it paused while the first one filled the window
  rob.offer(0, kLast);
  EXPECT_EQ(rob.sequencer.waiting(0), 0U);
}

// H15, H16
TEST(Sequencer, AnIdBeyondTheReachWaitsForReadersThatMayMakeItReachable) {
  Started rob(2, settings(), false, 2);
  rob.offer(0, {24 + kReach, 0x7000});
  EXPECT_EQ(rob.got(0), "");
  EXPECT_TRUE(rob.sequencer.may_be_resolved(0, 1, 2));
  rob.sequencer.set_drained(1);
  rob.settle();
  EXPECT_EQ(rob.got(0), "out");
}

// Two readers. The first reader's links are ahead of all data that the second has read.
struct Ahead : Started {
  explicit Ahead(std::size_t readers = 2) : Started(2 * readers, settings(), false, readers, 2) {
    for (std::uint32_t id = 600; id < 700; ++id) {
      offer(0, id);
      offer(1, id);
    }
    sequencer.set_waiting(0, 0, oldest);
  }
};

TEST(Sequencer, WhoWaitsForAReaderThatWaitsForItGoesOnIfItIsBehind) {
  Ahead rob;
  EXPECT_TRUE(rob.sequencer.any_reader_proceeds());
  rob.sequencer.set_waiting(1, Sequencer::kRoom, rob.oldest + 5);
  EXPECT_FALSE(rob.sequencer.may_be_resolved(0, 1, 2));
  EXPECT_TRUE(rob.sequencer.any_reader_proceeds()) << "the first reader continues";
}

// The thread's second reader was last asked when the thread had older events open.
TEST(Sequencer, ThreadsOfSeveralReadersAreOrderedByTheirOwnOldestEvent) {
  Ahead rob(3);
  rob.sequencer.set_waiting(0, 0, rob.oldest + 5);
  for (const std::size_t reader : {1, 2}) rob.sequencer.set_waiting(reader, Sequencer::kRoom, rob.oldest + 3);
  EXPECT_TRUE(rob.sequencer.may_be_resolved(0, 1, 3));
  rob.sequencer.set_waiting(1, Sequencer::kRoom, rob.oldest + 8);
  EXPECT_FALSE(rob.sequencer.may_be_resolved(0, 1, 3)) << "the thread waits for the first thread, which is behind";
  EXPECT_TRUE(rob.sequencer.any_reader_proceeds());
}

TEST(Sequencer, AReaderThatItsConsumersHoldUpIsWaitedFor) {
  Ahead rob;
  rob.sequencer.set_waiting(1, Sequencer::kConsumers, rob.oldest + 5);
  EXPECT_TRUE(rob.sequencer.may_be_resolved(0, 1, 2));
  EXPECT_TRUE(rob.sequencer.any_reader_proceeds());
}

TEST(Sequencer, WhoHasReadEverythingMayBeWaitedForWhileItsChunksWait) {
  Ahead rob;
  std::vector<Decision> decisions;
  rob.sequencer.finish(0, rob.now, rob.oldest, decisions);
  EXPECT_TRUE(decisions.empty());
  rob.sequencer.set_waiting(1, Sequencer::kRoom, rob.oldest + 5);
  EXPECT_FALSE(rob.sequencer.any_reader_proceeds()) << "only the one that has read everything would";
  rob.sequencer.finish(0, rob.now, rob.oldest, decisions);
  EXPECT_FALSE(decisions.empty());
}

}  // namespace
}  // namespace rodeo::test
