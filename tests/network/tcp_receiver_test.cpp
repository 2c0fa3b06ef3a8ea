// The receiving end of a connection: times and contents of acknowledgements.
#include "network/simulator/tcp_receiver.h"

#include <gtest/gtest.h>

namespace rodeo::network {
namespace {

class Receiver : public testing::Test {
 protected:
  std::uint32_t receive(std::uint32_t first, std::uint32_t count = 1, Picoseconds now = 0) {
    return receiver_.receive(tcp_, now, first, count, ack_);
  }
  std::string blocks() const {
    std::string text;
    for (unsigned b = 0; b < ack_.blocks; ++b) {
      text += (b == 0 ? "" : " ") + std::to_string(ack_.block[b].begin) + "-" + std::to_string(ack_.block[b].end);
    }
    return text;
  }

  TcpParameters tcp_ = TcpParameters(TcpSettings{}, 1448);
  TcpReceiver receiver_;
  Acknowledgement ack_;
};

TEST_F(Receiver, AcknowledgesEverySecondSegment) {
  EXPECT_EQ(receive(0), 0u);
  EXPECT_EQ(receive(1), 1u);
  EXPECT_EQ(ack_.cumulative, 2u);
  EXPECT_EQ(receiver_.deadline(), kNever);
}

TEST_F(Receiver, DelaysTheAcknowledgementOfALoneSegment) {
  receive(0, 1, 1000);
  EXPECT_EQ(receiver_.deadline(), 1000 + 40'000'000'000u);
  EXPECT_EQ(receiver_.acknowledge().cumulative, 1u);
  EXPECT_EQ(receiver_.deadline(), kNever);
}

TEST_F(Receiver, AcknowledgesTheFirstSegmentsOfAConnectionOneByOne) {
  receiver_.start(3);
  EXPECT_EQ(receive(0), 1u);
  EXPECT_EQ(receive(1), 1u);
  EXPECT_EQ(receive(2), 1u);
  EXPECT_EQ(receive(3), 0u);
}

TEST_F(Receiver, ATrainSetsOffAsManyAsItsSegmentsWould) {
  EXPECT_EQ(receive(0, 7), 3u);
  EXPECT_EQ(ack_.cumulative, 6u);
  EXPECT_EQ(receive(7, 1), 1u);
  EXPECT_EQ(ack_.cumulative, 8u);
}

TEST_F(Receiver, ReportsWhatIsBehindAGapLatestFirst) {
  receive(0, 2);
  EXPECT_EQ(receive(3), 1u);
  EXPECT_EQ(ack_.cumulative, 2u);
  EXPECT_EQ(blocks(), "3-4");
  receive(4);
  EXPECT_EQ(blocks(), "3-5");
  receive(7);
  EXPECT_EQ(blocks(), "7-8 3-5");
  receive(10);
  receive(13);
  EXPECT_EQ(blocks(), "13-14 10-11 7-8");  // an acknowledgement has at most three blocks
  receive(5);
  EXPECT_EQ(blocks(), "3-6 13-14 10-11");
}

TEST_F(Receiver, AClosedGapIsAcknowledgedAtOnce) {
  receive(0, 2);
  receive(3, 4);
  EXPECT_EQ(receive(2), 1u);
  EXPECT_EQ(ack_.cumulative, 7u);
  EXPECT_EQ(ack_.blocks, 0u);
  EXPECT_EQ(receive(7), 0u);  // then the receiver acknowledges every second segment again
}

TEST_F(Receiver, SaysWhenSomethingComesTwice) {
  receive(0, 4);
  EXPECT_EQ(receive(2), 1u);
  EXPECT_TRUE(ack_.duplicate);
  EXPECT_EQ(ack_.cumulative, 4u);
  EXPECT_EQ(receiver_.duplicates(), 1u);
  receive(6, 2);
  EXPECT_FALSE(ack_.duplicate);
  receive(7);
  EXPECT_TRUE(ack_.duplicate);
  EXPECT_EQ(receiver_.duplicates(), 2u);
}

TEST_F(Receiver, NumbersWrap) {
  receiver_.skip(0xfffffffe);
  EXPECT_EQ(receive(0xfffffffe, 4), 2u);
  EXPECT_EQ(receiver_.next(), 2u);
  receive(4);
  receive(3);
  EXPECT_EQ(blocks(), "3-5");
}

}  // namespace
}  // namespace rodeo::network
