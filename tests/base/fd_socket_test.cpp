#include "base/fd_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

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

/// Sends a message with `count` descriptors, and receives it with room for `room` descriptors.
ReceivedFds descriptors_of_one_message(std::size_t count, std::size_t room) {
  const auto [left, right] = socket_pair();
  const std::array message{std::byte{1}};
  const std::vector<int> sent(count, left.get());
  // Calls sendmsg() directly, because send_some() refuses messages that a receive would not accept.
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(rights), sent.data(), sizeof(int) * count);
  EXPECT_EQ(::sendmsg(left.get(), &header, 0), 1);

  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit limited{256, before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limited), 0);
  std::vector<UniqueFd> others;
  for (int fd = ::dup(left.get()); fd >= 0; fd = ::dup(left.get())) others.emplace_back(fd);
  EXPECT_GE(others.size(), room);
  others.resize(others.size() - room);
  std::array<std::byte, 1> into{};
  ReceivedFds fds;
  EXPECT_EQ(receive_now(right.get(), into, fds).status, IoStatus::done);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  return fds;
}

TEST(FdSocket, MoreDescriptorsThanAMessageMayHaveAreThePeersFault) {
  for (const std::size_t room : {kMaxFdsPerReceive, 4 * kMaxFdsPerReceive}) {
    const ReceivedFds fds = descriptors_of_one_message(kMaxFdsPerReceive + 1, room);
    EXPECT_TRUE(fds.truncated);
    EXPECT_FALSE(fds.no_room);
  }
  const ReceivedFds most = descriptors_of_one_message(kMaxFdsPerReceive, kMaxFdsPerReceive);
  EXPECT_EQ(most.fds.size(), kMaxFdsPerReceive);
  EXPECT_FALSE(most.truncated || most.no_room);
}

TEST(FdSocket, DescriptorsThatThisProcessHasNoRoomForAreOurOwn) {
  for (const std::size_t sent : {std::size_t{1}, std::size_t{5}, kMaxFdsPerReceive, kMaxFdsPerReceive + 1}) {
    for (const std::size_t room : {std::size_t{0}, sent - 1}) {
      if (room == kMaxFdsPerReceive) continue;
      const ReceivedFds fds = descriptors_of_one_message(sent, room);
      EXPECT_EQ(fds.fds.size(), room);
      EXPECT_TRUE(fds.no_room);
      EXPECT_FALSE(fds.truncated);
    }
  }
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
      << "the deadline has passed, even if data are there";
  stop = true;
}

TEST(FdSocket, NobodyListeningIsAnError) {
  const auto socket = connect_unix("/tmp/rodeo-there-is-nothing-here.sock");
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().code, "base.socket");
  EXPECT_FALSE(connect_unix("/tmp/" + std::string(200, 'x')).has_value());
}

}  // namespace
