// The sending end of a connection, compared with traces calculated by hand. The unit of time is a millisecond.
#include "network/simulator/tcp_sender.h"

#include <gtest/gtest.h>

namespace rodeo::network {
namespace {

constexpr Picoseconds kMs = 1'000'000'000;

TcpParameters parameters(CongestionControl control = CongestionControl::reno) {
  TcpSettings settings;
  settings.control = control;
  settings.hystart = false;
  return TcpParameters(settings, 1448);
}

class Sender : public testing::Test {
 protected:
  void start(std::uint32_t window = 10) { sender_.start(tcp_, window); }
  void write(Picoseconds ms, std::uint32_t segments) { sender_.write(tcp_, ms * kMs, segments, runs_); }
  void acknowledge(Picoseconds ms, std::uint32_t cumulative, const std::vector<SegmentBlock>& blocks = {},
                   bool duplicate = false) {
    Acknowledgement ack;
    ack.cumulative = cumulative;
    ack.duplicate = duplicate;
    for (const SegmentBlock& block : blocks) ack.block[ack.blocks++] = block;
    sender_.acknowledge(tcp_, ms * kMs, ack, runs_);
  }
  void expire() { sender_.expire(tcp_, sender_.deadline(), runs_); }
  Picoseconds deadline_ms() const { return sender_.deadline() / kMs; }
  /// The segments sent since the last call: "0-9 12*"; a star marks retransmissions.
  std::string sent() {
    std::string text;
    for (const SegmentRun& run : runs_) {
      if (!text.empty()) text += ' ';
      text += std::to_string(run.first);
      if (run.count > 1) text += '-' + std::to_string(run.first + run.count - 1);
      if (run.retransmission) text += '*';
    }
    runs_.clear();
    return text;
  }

  TcpParameters tcp_ = parameters();
  TcpSender sender_;
  SegmentRuns runs_;
};

TEST_F(Sender, SlowStartDoublesTheWindowEachRoundTrip) {
  start();
  write(0, 100);
  EXPECT_EQ(sent(), "0-9");
  for (std::uint32_t acked = 2; acked <= 10; acked += 2) acknowledge(10, acked);
  EXPECT_EQ(sender_.window(), 20u);
  EXPECT_EQ(sent(), "10-13 14-17 18-21 22-25 26-29");
  for (std::uint32_t acked = 12; acked <= 30; acked += 2) acknowledge(20, acked);
  EXPECT_EQ(sender_.window(), 40u);
  EXPECT_EQ(sender_.next(), 70u);
}

TEST_F(Sender, AWindowThatIsNotUsedDoesNotGrow) {
  start(100);
  for (Picoseconds event = 0; event < 5; ++event) {
    write(10 * event, 20);
    for (std::uint32_t acked = 2; acked <= 20; acked += 2)
      acknowledge(10 * event + 5, static_cast<std::uint32_t>(20 * event) + acked);
  }
  EXPECT_EQ(sender_.window(), 100u);
}

TEST_F(Sender, ASingleLossIsRepairedInOneRoundTripAndHalvesTheWindow) {
  start(20);
  write(0, 20);
  EXPECT_EQ(sent(), "0-19");
  acknowledge(10, 5);  // 5 is lost; every further segment is reported
  acknowledge(10, 5, {{6, 7}});
  acknowledge(10, 5, {{6, 8}});
  EXPECT_EQ(sent(), "");  // the segments may still be reordered
  acknowledge(10, 5, {{6, 9}});
  EXPECT_EQ(sent(), "5*");
  EXPECT_EQ(sender_.state(), TcpSender::State::recovery);
  EXPECT_EQ(sender_.threshold(), 12u);  // half of 25, the window that slow start has reached from 20
  for (std::uint32_t end = 10; end <= 20; ++end) acknowledge(10, 5, {{6, end}});
  EXPECT_EQ(sent(), "");  // nothing else is lost
  acknowledge(20, 20);
  EXPECT_EQ(sender_.state(), TcpSender::State::open);
  EXPECT_EQ(sender_.window(), 12u);
  EXPECT_EQ(sender_.counts().retransmits, 1u);
  EXPECT_EQ(sender_.counts().recoveries, 1u);
  EXPECT_EQ(sender_.deadline(), kNever);
}

TEST_F(Sender, RecoveryLetsOutAShareOfWhatArrives) {
  start(20);
  write(0, 100);
  sent();
  acknowledge(10, 0, {{1, 4}});  // 0 is lost
  // Proportional rate reduction: 16 in flight above a threshold of 10. Two of three segments ... 10 * 3 / 20 rounded up.
  EXPECT_EQ(sent(), "0* 20");
  acknowledge(10, 0, {{1, 6}});
  EXPECT_EQ(sent(), "21");  // 10 * 5 / 20 rounded up is 3 in all
  acknowledge(10, 0, {{1, 8}});
  EXPECT_EQ(sent(), "22");
}

TEST_F(Sender, ALostRetransmissionIsSentAgainWhenALaterOneArrives) {
  start(20);
  write(0, 20);
  sent();
  acknowledge(10, 0, {{2, 20}});  // 0 and 1 are lost
  EXPECT_EQ(sent(), "0-1*");
  acknowledge(20, 0, {{1, 20}});  // of the two retransmissions, only 1 has arrived
  EXPECT_EQ(sent(), "0*");
  acknowledge(30, 20);
  EXPECT_EQ(sender_.state(), TcpSender::State::open);
}

TEST_F(Sender, TheTailIsProbedAfterTwoRoundTrips) {
  start();
  write(0, 4);
  acknowledge(10, 2);  // 2 and 3 are lost; the smoothed round trip is 10 ms
  sent();
  EXPECT_EQ(deadline_ms(), 10u + 2 * 10 + 2);
  expire();
  EXPECT_EQ(sent(), "3*");
  EXPECT_EQ(sender_.counts().probes, 1u);
  acknowledge(42, 2, {{3, 4}});  // the probe has arrived: 2 must be lost, after a quarter of a round trip for reordering
  EXPECT_EQ(sent(), "2*");
  acknowledge(52, 4);
  EXPECT_EQ(sender_.counts().timeouts, 0u);
  EXPECT_EQ(sender_.state(), TcpSender::State::open);
}

TEST_F(Sender, ALoneSegmentIsProbedWhereTheTimeOutWouldBe) {
  start();
  write(0, 2);
  acknowledge(10, 1);
  sent();
  EXPECT_EQ(deadline_ms(), 10u + 10 + 200);  // the deadline of the time-out, which is before that of a probe, 2 x 10 + 200
  expire();
  EXPECT_EQ(sent(), "1*");
  EXPECT_EQ(sender_.counts().probes, 1u);
  EXPECT_EQ(sender_.counts().timeouts, 0u);
  EXPECT_EQ(sender_.window(), 10u) << "a probe alone does not show congestion";
  expire();
  EXPECT_EQ(sender_.counts().probes, 1u) << "one probe, then the time-out";
  EXPECT_EQ(sender_.counts().timeouts, 1u);
}

TEST_F(Sender, TheHandshakeTellsTheRoundTrip) {
  sender_.start(tcp_, 10, 1'000'000'000);
  write(0, 4);
  sent();
  EXPECT_EQ(deadline_ms(), 2u * 1 + 2);  // a probe after two round trips and 2 ms
  expire();
  EXPECT_EQ(sent(), "3*");
  acknowledge(6, 0, {{3, 4}});  // not sooner than the handshake: the probe has arrived, so the others are lost
  EXPECT_EQ(sent(), "0*");
  acknowledge(7, 1, {{3, 4}});
  EXPECT_EQ(sent(), "1-2*");
  EXPECT_EQ(sender_.counts().timeouts, 0u);
}

TEST_F(Sender, AProbeSendsNewDataIfThereIsSome) {
  start(4);
  write(0, 10);
  EXPECT_EQ(sent(), "0-3");
  expire();  // the round trip is unknown, so the first time-out comes after a second
  EXPECT_EQ(sender_.counts().timeouts + sender_.counts().probes, 1u);
}

TEST_F(Sender, TimeOutsDoubleFromTheirMinimum) {
  tcp_.tail_loss_probe = false;
  start();
  write(0, 1);
  acknowledge(10, 1);
  write(1000, 5);
  sent();
  // Smoothed round trip 10 ms, variation at least 200 ms.
  EXPECT_EQ(deadline_ms(), 1000u + 210);
  expire();
  EXPECT_EQ(sent(), "1*");
  EXPECT_EQ(sender_.window(), 1u);
  EXPECT_EQ(sender_.state(), TcpSender::State::loss);
  EXPECT_EQ(deadline_ms(), 1210u + 420);
  expire();
  EXPECT_EQ(sent(), "1*");
  EXPECT_EQ(deadline_ms(), 1630u + 840);
  EXPECT_EQ(sender_.counts().timeouts, 2u);
  acknowledge(1640, 2);
  EXPECT_EQ(sent(), "2-3*");  // the sender is in slow start again
  EXPECT_EQ(deadline_ms(), 1640u + 210);
}

TEST_F(Sender, TheFirstTimeOutIsTheInitialOne) {
  tcp_.tail_loss_probe = false;
  start();
  write(7, 1);
  EXPECT_EQ(deadline_ms(), 1007u);
}

TEST_F(Sender, AnIdleTimeOutShrinksTheWindow) {
  start(10);
  write(0, 10);
  sent();
  for (std::uint32_t acked = 1; acked <= 10; ++acked) acknowledge(10, acked);
  write(10, 10);
  const std::uint32_t used = sender_.window();
  EXPECT_EQ(used, 20u);
  for (std::uint32_t acked = 11; acked <= 20; ++acked) acknowledge(20, acked);
  sent();
  write(10 + 5 * 211, 100);
  EXPECT_EQ(sent(), "20-29");
  EXPECT_EQ(sender_.window(), 10u);
  tcp_.slow_start_after_idle = false;
  TcpSender other;
  other.start(tcp_, 50);
  other.write(tcp_, 0, 1, runs_);
  Acknowledgement ack;
  ack.cumulative = 1;
  other.acknowledge(tcp_, 10 * kMs, ack, runs_);
  other.write(tcp_, 100'000 * kMs, 1, runs_);
  EXPECT_EQ(other.window(), 50u);
}

TEST_F(Sender, AnAcknowledgementOfWhatWasNeverSentIsIgnored) {
  start();
  write(0, 5);
  acknowledge(10, 6);
  EXPECT_EQ(sender_.unacknowledged(), 0u);
}

TEST(CubeRoot, IsTheLargestThatDoesNotExceed) {
  for (const std::uint64_t root : {0ull, 1ull, 2ull, 3ull, 1000ull, 123'456ull, 2'642'245ull}) {
    EXPECT_EQ(cube_root(root * root * root), root);
    if (root > 1) {
      EXPECT_EQ(cube_root(root * root * root - 1), root - 1);
    }
  }
  EXPECT_EQ(cube_root(UINT64_MAX), 2'642'245u);
}

TEST(Cubic, ReturnsToItsPlateauAfterTheTimeOfRfc9438) {
  TcpParameters tcp = parameters(CongestionControl::cubic);
  Congestion cubic;
  cubic.window = 1000;
  cubic.threshold = 1;
  cubic.threshold = cubic.threshold_after_loss(tcp);
  EXPECT_EQ(cubic.threshold, 700u);  // beta 0.7
  cubic.window = cubic.threshold;
  cubic.clear_count();
  // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s; a round trip of 100 ms is long enough that Reno is not faster.
  const Picoseconds rtt = 100 * kMs;
  std::uint32_t at_half = 0;
  std::uint32_t at_k = 0;
  std::uint32_t later = 0;
  for (Picoseconds now = rtt; now <= 14'000 * kMs; now += rtt) {
    cubic.on_acknowledged(tcp, now, cubic.window, 0, 0);
    if (now == 4500 * kMs) at_half = cubic.window;
    if (now == 9100 * kMs) at_k = cubic.window;
    if (now == 14'000 * kMs) later = cubic.window;
  }
  EXPECT_NEAR(at_half, 1000 - 0.4 * 4.59 * 4.59 * 4.59, 12);  // 961
  EXPECT_NEAR(at_k, 1000, 5);
  EXPECT_NEAR(later, 1000 + 0.4 * 4.8 * 4.8 * 4.8, 12);  // 1044
}

TEST(Cubic, MakesRoomWhenItLosesBelowItsPlateau) {
  TcpParameters tcp = parameters(CongestionControl::cubic);
  Congestion cubic;
  cubic.window = 1000;
  cubic.threshold_after_loss(tcp);
  cubic.window = 800;
  EXPECT_EQ(cubic.threshold_after_loss(tcp), 560u);
}

TEST(Reno, GrowsByOneSegmentARoundTrip) {
  const TcpParameters tcp = parameters();
  Congestion reno;
  reno.window = reno.threshold = 10;
  for (int round = 0; round < 20; ++round) reno.on_acknowledged(tcp, 0, reno.window, 0, 0);
  EXPECT_EQ(reno.window, 30u);
}

}  // namespace
}  // namespace rodeo::network
