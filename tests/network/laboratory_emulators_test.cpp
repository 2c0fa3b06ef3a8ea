// The emulators with each other over loopback, and with invalid input; the shared buffer's programs with single frames
// (root).
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "network/laboratory/node_emulator.h"
#include "network/laboratory/pool.h"
#include "network/laboratory/readout_emulator.h"
#include "network/laboratory/sockets.h"

namespace rodeo::network::laboratory {
namespace {

/// A readout in its own thread.
class RunningReadout {
 public:
  RunningReadout() : stop_(eventfd(0, 0)) {
    auto listener = listen_at("127.0.0.1", 0, "reno");
    EXPECT_TRUE(listener);
    endpoint_ = "127.0.0.1:" + std::to_string(port_of(listener->get()));
    readout_ = std::make_unique<ReadoutEmulator>(std::move(*listener));
    readout_->mark();
    thread_ = std::thread([this] { readout_->serve(stop_.get(), [] { return false; }); });
  }
  ReadoutEmulator& stop() {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      (void)!write(stop_.get(), &one, sizeof one);
      thread_.join();
    }
    return *readout_;
  }
  ~RunningReadout() { stop(); }
  const std::string& endpoint() const { return endpoint_; }

 private:
  base::UniqueFd stop_;
  std::string endpoint_;
  std::unique_ptr<ReadoutEmulator> readout_;
  std::thread thread_;
};

std::vector<ScheduledEvent> events(std::uint64_t count, std::uint64_t bytes) {
  std::vector<ScheduledEvent> list;
  for (std::uint64_t i = 0; i < count; ++i) list.push_back({i, static_cast<std::int64_t>(i) * 1'000'000, bytes});
  return list;
}

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Emulators, EveryEventOfTheScheduleIsBuiltWhole) {
  std::array<RunningReadout, 3> readouts;
  NodeEmulator node;
  ASSERT_TRUE(node.connect({readouts[0].endpoint(), readouts[1].endpoint(), readouts[2].endpoint()}, "reno"));
  const base::UniqueFd control(eventfd(0, 0));
  auto schedule = events(20, 3'000'001);
  schedule.insert(schedule.begin(), {1000, -5'000'000, 10});  // warm-up
  const auto result = node.run(schedule, base::steady_now_ns() + 20'000'000, kSecond, 100 * kSecond, 4, control.get());
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->scheduled, 20u);
  EXPECT_EQ(result->requested, 20u);
  EXPECT_EQ(result->completed, 20u);
  EXPECT_EQ(result->latencies_ns.size(), 20u);
  EXPECT_EQ(result->lateness_ns.size() + result->held, 20u);
  for (RunningReadout& readout : readouts) {
    EXPECT_EQ(readout.stop().counters().answers, 21u);
    EXPECT_EQ(readout.stop().counters().bad_requests, 0u);
  }
}

TEST(Emulators, ANodeHoldsEventsBackThatAreTooMany) {
  RunningReadout readout;
  NodeEmulator node;
  ASSERT_TRUE(node.connect({readout.endpoint()}, "reno"));
  const base::UniqueFd control(eventfd(0, 0));
  std::vector<ScheduledEvent> at_once;
  for (std::uint64_t i = 0; i < 10; ++i) at_once.push_back({i, 0, 20'000'000});
  const auto result = node.run(at_once, base::steady_now_ns() + 1'000'000, 100 * kSecond, kSecond, 1, control.get());
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->completed, 10u);
  EXPECT_GE(result->held, 5u);
}

TEST(Emulators, AReadoutClosesAConnectionThatSendsNonsense) {
  RunningReadout readout;
  const auto socket = connect_to(readout.endpoint(), "reno");
  ASSERT_TRUE(socket);
  const std::array<char, 24> nonsense{};
  ASSERT_EQ(send(socket->get(), nonsense.data(), nonsense.size(), 0), 24);
  std::array<char, 16> answer{};
  ssize_t n = -1;
  for (int i = 0; i < 10'000 && n < 0; ++i) {
    n = recv(socket->get(), answer.data(), answer.size(), 0);
    if (n < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(n, 0);
  EXPECT_EQ(readout.stop().counters().bad_requests, 1u);
}

TEST(Emulators, ANodeRefusesWhatItDidNotAskFor) {
  auto listener = listen_at("127.0.0.1", 0, "reno");
  ASSERT_TRUE(listener);
  NodeEmulator node;
  ASSERT_TRUE(node.connect({"127.0.0.1:" + std::to_string(port_of(listener->get()))}, "reno"));
  const base::UniqueFd accepted(accept(listener->get(), nullptr, nullptr));
  const auto wrong = encode(kReplyMagic, {.event = 12345, .bytes = 10});
  ASSERT_EQ(send(accepted.get(), wrong.data(), wrong.size(), 0), static_cast<ssize_t>(wrong.size()));
  const base::UniqueFd control(eventfd(0, 0));
  const auto result = node.run(events(1, 10), base::steady_now_ns(), kSecond, kSecond, 1, control.get());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "network.agent");
  EXPECT_THAT(result.error().what, testing::HasSubstr("readout 0"));
}

TEST(Emulators, UnknownCongestionControlIsNamed) {
  const auto listener = listen_at("127.0.0.1", 0, "nonesuch");
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, "network.unsupported");
}

class Pool : public testing::Test {
 protected:
  static SwitchBuffer shared(std::uint64_t bytes) {
    SwitchBuffer buffer;
    buffer.shared_bytes = bytes;
    return buffer;
  }
  void SetUp() override {
    auto made = SharedPool::make(2);
    if (!made) GTEST_SKIP() << "host: " << made.error().message();
    pool_.emplace(std::move(*made));
  }
  std::uint32_t admit(std::uint32_t port, std::size_t bytes) {
    return test_run(pool_->admit(port), std::vector<std::byte>(bytes)).value();
  }
  std::uint32_t release(std::uint32_t port, std::size_t bytes) {
    return test_run(pool_->release(port), std::vector<std::byte>(bytes)).value();
  }

  std::optional<SharedPool> pool_;
  static constexpr std::uint32_t kPass = 0;
  static constexpr std::uint32_t kDrop = 2;
};

TEST_F(Pool, IsSharedByPortsAndKeepsItsMaximum) {
  EXPECT_EQ(admit(0, 1000), kPass);
  EXPECT_EQ(admit(1, 500), kPass);
  EXPECT_EQ(pool_->occupancy().value(), 1500);
  EXPECT_EQ(release(0, 1000), kPass);
  EXPECT_EQ(admit(0, 100), kPass);
  EXPECT_EQ(pool_->occupancy().value(), 600);
  EXPECT_EQ(pool_->port(0)->frames, 2u);
  EXPECT_EQ(pool_->port(0)->bytes, 1100u);
  EXPECT_EQ(pool_->port(1)->max_pool_bytes, 1500u);
  ASSERT_TRUE(pool_->forget_maximum());
  EXPECT_EQ(pool_->port(1)->max_pool_bytes, 0u);
  EXPECT_EQ(pool_->port(1)->frames, 1u);
}

TEST_F(Pool, DropsWhatDoesNotFitToTheByte) {
  ASSERT_TRUE(pool_->set(shared(2500)));
  EXPECT_EQ(admit(0, 1000), kPass);
  EXPECT_EQ(admit(1, 1501), kDrop);
  EXPECT_EQ(pool_->occupancy().value(), 1000);
  EXPECT_EQ(admit(1, 1500), kPass);
  EXPECT_EQ(admit(1, 60), kDrop);
  EXPECT_EQ(pool_->port(1)->drops.total(), 2u);
  EXPECT_EQ(pool_->port(1)->dropped_bytes, 1561u);
  EXPECT_EQ(pool_->port(1)->max_pool_bytes, 2500u);
  EXPECT_EQ(pool_->port(0)->drops.total(), 0u);
}

TEST_F(Pool, CountsInCellsWithTheMetadataOfTheFirst) {
  SwitchBuffer buffer = shared(7 * 256 + 256);
  buffer.cell_bytes = 256;
  buffer.first_cell_metadata_bytes = 64;
  ASSERT_TRUE(pool_->set(buffer));
  EXPECT_EQ(admit(0, 1514), kPass);  // 1578 bytes: 7 cells
  EXPECT_EQ(admit(1, 193), kDrop);   // 257: 2 cells
  EXPECT_EQ(admit(1, 192), kPass);   // 256: the last free cell
  EXPECT_EQ(pool_->occupancy().value(), 1706);
  EXPECT_EQ(pool_->port(1)->max_pool_bytes, 1706u);
  EXPECT_EQ(pool_->port(1)->max_cell_bytes, 8u * 256);
  EXPECT_EQ(admit(0, 60), kDrop);
  EXPECT_EQ(release(1, 192), kPass);
  EXPECT_EQ(admit(0, 60), kPass);
  EXPECT_EQ(pool_->port(0)->drops.pool_full, 1u);
}

TEST_F(Pool, TheMemoryOfAPortIsItsOwn) {
  SwitchBuffer buffer = shared(1000);
  buffer.dedicated_bytes_per_port = 500;
  ASSERT_TRUE(pool_->set(buffer));
  EXPECT_EQ(admit(0, 1500), kPass);  // the port has 500 of its own, and takes all shared memory
  EXPECT_EQ(admit(0, 100), kDrop);
  EXPECT_EQ(admit(1, 500), kPass);
  EXPECT_EQ(admit(1, 100), kDrop);
  EXPECT_EQ(release(0, 1500), kPass);
  EXPECT_EQ(admit(1, 1000), kPass);
  EXPECT_EQ(admit(0, 500), kPass);
  EXPECT_EQ(admit(0, 60), kDrop);
  for (const std::size_t bytes : {500u, 1000u}) EXPECT_EQ(release(1, bytes), kPass);
  EXPECT_EQ(release(0, 500), kPass);
  EXPECT_EQ(pool_->occupancy().value(), 0);
  EXPECT_EQ(admit(1, 1500), kPass);  // the memory is as free as at the start
}

TEST_F(Pool, ADynamicThresholdLeavesRoomForOtherPorts) {
  SwitchBuffer buffer = shared(3000);
  buffer.dynamic_threshold = 0.5;
  ASSERT_TRUE(pool_->set(buffer));
  EXPECT_EQ(admit(0, 1000), kPass);  // a port may take half of the free 3000
  EXPECT_EQ(admit(0, 100), kDrop);   // 1100 would exceed half of 2000
  EXPECT_EQ(admit(1, 1000), kPass);  // half of the remaining 2000
  EXPECT_EQ(admit(1, 60), kDrop);
  EXPECT_EQ(release(0, 1000), kPass);
  EXPECT_EQ(pool_->port(0)->drops.threshold, 1u);
  EXPECT_EQ(pool_->port(1)->drops.threshold, 1u);
  EXPECT_EQ(pool_->port(1)->drops.pool_full, 0u);
}

TEST_F(Pool, ALimitOfAPortHoldsWhateverIsFree) {
  SwitchBuffer buffer = shared(10'000);
  buffer.port_limit_bytes = 1000;
  ASSERT_TRUE(pool_->set(buffer));
  EXPECT_EQ(admit(0, 1000), kPass);
  EXPECT_EQ(admit(0, 60), kDrop);
  EXPECT_EQ(admit(1, 1000), kPass);
  EXPECT_EQ(pool_->port(0)->drops.port_limit, 1u);
  EXPECT_EQ(pool_->occupancy().value(), 2000);
}

TEST_F(Pool, WhatItCannotBeIsRefused) {
  SwitchBuffer buffer;
  buffer.virtual_output_queues = true;
  EXPECT_EQ(pool_->set(buffer).error().code, "network.unsupported");
  EXPECT_EQ(pool_->set(shared(9'000'000'000)).error().code, "network.unsupported");
}

}  // namespace
}  // namespace rodeo::network::laboratory
