#include "base/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd_socket.h"

namespace rodeo::base {
namespace {

using namespace std::chrono_literals;

/// Reads a program's stdout until all processes that hold it have closed it.
std::string said_by(ChildProcess::Settings settings) {
  auto [from, to] = *make_pipe();
  settings.out = to.get();
  const auto child = ChildProcess::start(settings);
  EXPECT_TRUE(child) << child.error().message();
  to.reset();
  std::string text;
  std::array<char, 256> some{};
  for (ssize_t n = 0; (n = ::read(from.get(), some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(n));
  return text;
}

TEST(ChildProcess, RunsAProgramAndTellsHowItEnded) {
  EXPECT_EQ(ChildProcess::start({.command = {"true"}})->wait(), 0);
  EXPECT_EQ(ChildProcess::start({.command = {"sh", "-c", "exit 3"}})->wait(), 3);
  EXPECT_EQ(ChildProcess::start({.command = {"sh", "-c", "kill -9 $$"}})->wait(), 128 + 9);
}

TEST(ChildProcess, SaysWhyAProgramCannotBeStarted) {
  const auto child = ChildProcess::start({.command = {"rodeo-there-is-no-such-program"}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, "base.process");
  EXPECT_EQ(child.error().what, "cannot start rodeo-there-is-no-such-program: No such file or directory");
  EXPECT_FALSE(ChildProcess::start({.command = {"true"}, .first = [] { return false; }}));
}

/// While this object exists, stdin, stdout and stderr are closed.
class ClosedStreams {
 public:
  ClosedStreams() {
    for (int stream = 0; stream < 3; ++stream) {
      kept_[static_cast<std::size_t>(stream)].reset(::fcntl(stream, F_DUPFD_CLOEXEC, 10));
      ::close(stream);
    }
  }
  ~ClosedStreams() {
    for (int stream = 0; stream < 3; ++stream) ::dup2(kept_[static_cast<std::size_t>(stream)].get(), stream);
  }
  ClosedStreams(const ClosedStreams&) = delete;
  ClosedStreams& operator=(const ClosedStreams&) = delete;

 private:
  std::array<UniqueFd, 3> kept_;
};

TEST(ChildProcess, IsStartedAlsoByWhoHasNoStandardStreams) {
  std::string missing, text;
  {
    const ClosedStreams closed;
    const auto child = ChildProcess::start({.command = {"rodeo-there-is-no-such-program"}});
    if (!child) missing = child.error().what;
    text = said_by({.command = {"echo", "hello"}});
  }
  EXPECT_EQ(missing, "cannot start rodeo-there-is-no-such-program: No such file or directory");
  EXPECT_EQ(text, "hello\n");
}

TEST(ChildProcess, WhatAProgramIsGivenMayHaveTheNumberOfAClosedStandardStream) {
  const std::string file = ::testing::TempDir() + "child_process_streams_" + std::to_string(::getpid());
  int status = -1;
  {
    const ClosedStreams closed;
    const UniqueFd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    // Only descriptors 0 and 1 are open: stdout stays at 1, and stderr gets the descriptor that stdin replaces.
    auto child = ChildProcess::start({.command = {"sh", "-c", "read line; echo out; echo err >&2"},
                                      .in = nothing.get(),
                                      .out = nothing.get(),
                                      .err = log.get()});
    if (child) status = child->wait();
  }
  std::ifstream written(file);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  std::filesystem::remove(file);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text, "err\n");
}

TEST(MakePipe, AtTheLimitOfDescriptorsNoneIsLost) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> open;
  rlimit low = limit;
  low.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &low);
  while (UniqueFd one{::open("/dev/null", O_RDONLY | O_CLOEXEC)}) open.push_back(std::move(one));
  std::vector<bool> made;  // results with no, one and two free descriptors
  for (int left = 0; left < 3; ++left) {
    made.push_back(make_pipe().has_value());
    if (!open.empty()) open.pop_back();
  }
  open.clear();
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(made, (std::vector{false, false, true}));
}

TEST(ChildProcess, GivesTheProgramWhatItIsToHave) {
  EXPECT_EQ(said_by({.command = {"sh", "-c", "echo $RODEO_TEST_WORD"}, .environment = {"RODEO_TEST_WORD=hello"}}),
            "hello\n");
  EXPECT_EQ(said_by({.command = {"pwd"}, .first = [] { return ::chdir("/") == 0; }}), "/\n");
}

TEST(ChildProcess, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::start({.command = {"sleep", "600"}});
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_FALSE(child->wait(0ms));
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0) << "the child was not reaped";
  auto child = ChildProcess::start({.command = {"sleep", "600"}});
  ASSERT_TRUE(child);
  child->signal(SIGTERM);
  EXPECT_EQ(child->wait(60s), 128 + SIGTERM);
  EXPECT_EQ(child->wait(), 128 + SIGTERM) << "the status stays known";
}

TEST(ChildProcess, ACopyOfThisProcessWorksAndEnds) {
  EXPECT_EQ(ChildProcess::fork([] {})->wait(), 0);
  EXPECT_EQ(ChildProcess::fork([] { throw SetupError({"test.failed", "no"}); })->wait(), 1);
  EXPECT_EQ(ChildProcess::fork([] { ::_exit(5); })->wait(), 5);
}

}  // namespace
}  // namespace rodeo::base
