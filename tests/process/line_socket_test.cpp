// The control socket: permission to listen, bad clients, and remains of a crash.
#include "process/line_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/fd_socket.h"

namespace rodeo::process {
namespace {

using std::chrono::milliseconds;

class LineSocketTest : public ::testing::Test {
 protected:
  LineSocketTest() {
    char name[] = "/tmp/rodeo-socket-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~LineSocketTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path path() const { return directory_ / "test.control"; }

  /// Serves on this thread until `client` has returned.
  template <typename Client>
  static void serve_while(LineServer& server, Client client) {
    std::atomic<bool> done{false};
    std::thread thread([&] {
      client();
      done = true;
    });
    while (!done) server.serve(milliseconds(5), [](const std::string& line) { return "<" + line + ">"; });
    thread.join();
  }

  int connected() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  std::filesystem::path directory_;
};

TEST_F(LineSocketTest, ARequestIsAnswered) {
  LineServer server(path());
  serve_while(server, [&] { EXPECT_EQ(ask(path(), "hello", milliseconds(5000)).value(), "<hello>"); });
}

TEST_F(LineSocketTest, NobodyListeningIsUnreachable) {
  EXPECT_EQ(ask(path(), "hello", milliseconds(100)).error().code, "process.unreachable");
}

TEST_F(LineSocketTest, AServerThatDoesNotAnswerIsUnreachable) {
  const LineServer server(path());
  EXPECT_EQ(ask(path(), "hello", milliseconds(50)).error().code, "process.unreachable");
}

TEST_F(LineSocketTest, AProcessThatIsStoppedIsNamedWithWhatLetsItGoOn) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 8) == 0)
      ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const Error error = ask(path(), "hello", milliseconds(50)).error();
  EXPECT_EQ(error.code, "process.unreachable");
  const std::string number = std::to_string(child);
  EXPECT_NE(error.what.find("process " + number + " is there, but a signal has stopped it (state T)"), std::string::npos)
      << error.what;
  EXPECT_EQ(error.next, "kill -CONT " + number + " lets it go on");
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST_F(LineSocketTest, WhoListensIsFoundAndWhatTheDeadLeftIsRemoved) {
  const std::filesystem::path lock = path().native() + ".lock";
  {
    const LineServer server(path());
    EXPECT_TRUE(is_listening(path()));
    EXPECT_TRUE(std::filesystem::exists(path()) && std::filesystem::exists(lock));
  }
  const auto leave_behind = [&] {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
    std::ofstream(lock).put(' ');
  };
  leave_behind();
  {
    const int holder = ::open(lock.c_str(), O_RDWR);
    ASSERT_EQ(::flock(holder, LOCK_EX), 0);
    EXPECT_FALSE(is_listening(path()));
    EXPECT_TRUE(std::filesystem::exists(path())) << "the holder of the lock is about to listen";
    ::close(holder);
  }
  EXPECT_FALSE(is_listening(path()));
  EXPECT_FALSE(std::filesystem::exists(path()) || std::filesystem::exists(lock));
  EXPECT_FALSE(is_listening(path())) << "there is no socket";
}

TEST_F(LineSocketTest, ASecondServerOfTheSameNameIsRefused) {
  const LineServer server(path());
  try {
    const LineServer second(path());
    FAIL() << "two servers listen";
  } catch (const SetupError& error) {
    EXPECT_EQ(error.error().code, "process.name_taken");
  }
}

TEST_F(LineSocketTest, WhatADeadServerLeftIsReplaced) {
  std::ofstream(path().native() + ".lock").put('x');
  std::ofstream(path()).put('x');
  LineServer server(path());
  serve_while(server, [&] { EXPECT_TRUE(ask(path(), "hello", milliseconds(5000))); });
}

TEST_F(LineSocketTest, AServerLeavesNothingBehind) {
  {
    const LineServer server(path());
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(LineSocketTest, TheSocketIsForItsUserAlone) {
  const LineServer server(path());
  const auto mode = std::filesystem::status(path()).permissions();
  EXPECT_EQ(mode & std::filesystem::perms(077), std::filesystem::perms::none);
}

TEST_F(LineSocketTest, ALineWithoutEndIsDroppedAndOthersAreServed) {
  LineServer server(path());
  const int endless = connected();
  serve_while(server, [&] {
    const std::string much(100'000, 'x');
    (void)::send(endless, much.data(), much.size(), MSG_NOSIGNAL);
    EXPECT_EQ(ask(path(), "hello", milliseconds(5000)).value(), "<hello>");
    char byte = 0;
    while (::recv(endless, &byte, 1, 0) > 0) {
    }
  });
  ::close(endless);
}

TEST_F(LineSocketTest, AnAnswerThatThrowsEndsItsConnectionAndNothingElse) {
  LineServer server(path());
  std::atomic<bool> done{false};
  std::thread client([&] {
    EXPECT_EQ(ask(path(), "throw", milliseconds(5000)).error().code, "process.unreachable");
    EXPECT_EQ(ask(path(), "hello", milliseconds(5000)).value(), "hello");
    done = true;
  });
  while (!done) {
    server.serve(milliseconds(5), [](const std::string& line) {
      if (line == "throw") throw std::runtime_error("an answer failed");
      return line;
    });
  }
  client.join();
}

TEST_F(LineSocketTest, AClientThatReadsNoAnswersIsGivenNoMoreUntilItDoes) {
  LineServer server(path());
  const base::UniqueFd client(connected());
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += "x\n";
  ASSERT_EQ(::send(client.get(), requests.data(), requests.size(), MSG_NOSIGNAL), static_cast<ssize_t>(requests.size()));
  std::size_t answered = 0;
  const auto answer = [&](const std::string&) {
    ++answered;
    return std::string(100'000, 'y');
  };
  for (int i = 0; i < 20; ++i) server.serve(milliseconds(5), answer);
  EXPECT_LT(answered, 50U);
  std::ptrdiff_t lines = 0;
  std::vector<char> buffer(1 << 16);
  while (lines < 100) {
    server.serve(milliseconds(5), answer);
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(client.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      lines += std::count(buffer.begin(), buffer.begin() + std::max<ssize_t>(got, 0), '\n');
    }
  }
  EXPECT_EQ(answered, 100U);
}

TEST_F(LineSocketTest, ASilentClientHoldsNobodyUp) {
  LineServer server(path());
  const int silent = connected();
  serve_while(server, [&] { EXPECT_EQ(ask(path(), "hello", milliseconds(5000)).value(), "<hello>"); });
  ::close(silent);
}

TEST_F(LineSocketTest, AnAnswerThatComesByteByByteIsNotWaitedForLongerThanAnother) {
  const auto listener = base::listen_unix(path());
  ASSERT_TRUE(listener);
  std::atomic<bool> done{false};
  std::thread server([&] {
    base::UniqueFd client;
    while (!client) client.reset(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    while (!done && base::send_some(client.get(), std::array{std::byte{'x'}}).status == base::IoStatus::done)
      std::this_thread::sleep_for(milliseconds(10));
  });
  EXPECT_EQ(ask(path(), "hello", milliseconds(200)).error().code, "process.unreachable");
  done = true;
  server.join();
}

TEST_F(LineSocketTest, ManySilentClientsKeepNobodyOut) {
  LineServer server(path());
  std::vector<base::UniqueFd> silent(20);
  for (base::UniqueFd& one : silent) {
    one.reset(connected());
    server.serve(milliseconds(0), [](const std::string& line) { return line; });
  }
  serve_while(server, [&] { EXPECT_EQ(ask(path(), "hello", milliseconds(5000)).value(), "<hello>"); });
}

TEST_F(LineSocketTest, APathThatNoSocketCanHaveIsRefused) {
  EXPECT_THROW(LineServer(directory_ / std::string(120, 'x')), SetupError);
  EXPECT_EQ(ask(directory_ / std::string(120, 'x'), "hello", milliseconds(10)).error().code, "process.unreachable");
}

}  // namespace
}  // namespace rodeo::process
