#include "base/fd_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

namespace {

using namespace rodeo::base;
using namespace std::chrono_literals;

std::array<UniqueFd, 2> socket_pair() {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

TEST(FdSocket, DescriptorsArriveWithTheFirstByte) {
  const auto [left, right] = socket_pair();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]), writing(pipe[1]);
  const std::array<std::byte, 3> message{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::array sent{writing.get()};
  ASSERT_EQ(send_all(left.get(), message, sent, 1s).status, IoStatus::done);
  std::array<std::byte, 3> into{};
  ReceivedFds fds;
  ASSERT_EQ(receive_all(right.get(), into, fds, 1s).status, IoStatus::done);
  EXPECT_EQ(into, message);
  ASSERT_EQ(fds.fds.size(), 1U);
  EXPECT_EQ(::write(fds.fds[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 1);
  EXPECT_EQ(::fcntl(fds.fds[0].get(), F_GETFD), FD_CLOEXEC);
}

TEST(FdSocket, APeerThatSaysNothingTakesNoLongerThanThePatience) {
  const auto [left, right] = socket_pair();
  std::array<std::byte, 8> into{};
  ReceivedFds fds;
  const auto result = receive_all(left.get(), into, fds, 20ms);
  EXPECT_EQ(result.status, IoStatus::partial);
  EXPECT_EQ(result.bytes, 0U);
}

TEST(FdSocket, APeerThatIsGoneIsSeen) {
  auto [left, right] = socket_pair();
  right.reset();
  std::array<std::byte, 8> into{};
  ReceivedFds fds;
  EXPECT_EQ(receive_all(left.get(), into, fds, 1s).status, IoStatus::closed);
  EXPECT_EQ(send_all(left.get(), into, {}, 1s).status, IoStatus::closed);
}

TEST(FdSocket, MoreThanTheSocketHoldsIsSentInPieces) {
  const auto [left, right] = socket_pair();
  std::vector<std::byte> large(4 << 20, std::byte{0x77});
  std::jthread sender([&, socket = left.get()] { EXPECT_EQ(send_all(socket, large, {}, 10s).status, IoStatus::done); });
  std::vector<std::byte> into(large.size());
  ReceivedFds fds;
  EXPECT_EQ(receive_all(right.get(), into, fds, 10s).status, IoStatus::done);
  EXPECT_EQ(into, large);
}

TEST(FdSocket, WhatComesInPiecesHasOneDeadline) {
  const auto [left, right] = socket_pair();
  std::atomic<bool> stop{false};
  std::jthread drip([&, socket = right.get()] {
    while (!stop && send_some(socket, std::array{std::byte{1}}).status == IoStatus::done) std::this_thread::sleep_for(5ms);
  });
  std::array<std::byte, 1 << 16> into{};
  ReceivedFds fds;
  EXPECT_EQ(receive_all(left.get(), into, fds, 100ms).status, IoStatus::partial);
  EXPECT_FALSE(wait_for(left.get(), POLLIN, std::chrono::steady_clock::now()))
      << "the deadline has passed, whatever is there";
  stop = true;
}

TEST(FdSocket, NobodyListeningIsAnError) {
  const auto socket = connect_unix("/tmp/rodeo-there-is-nothing-here.sock");
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().code, "base.socket");
  EXPECT_FALSE(connect_unix("/tmp/" + std::string(200, 'x')).has_value());
}

}  // namespace
