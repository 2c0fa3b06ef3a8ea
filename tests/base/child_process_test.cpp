#include "base/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/fd_socket.h"

namespace rodeo::base {
namespace {

using namespace std::chrono_literals;

/// What a program says on its stdout until all who have it are gone.
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

/// Without stdin, stdout and stderr while it lives.
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
  EXPECT_NE(::kill(pid, 0), 0) << "it was not reaped";
  auto child = ChildProcess::start({.command = {"sleep", "600"}});
  ASSERT_TRUE(child);
  child->signal(SIGTERM);
  EXPECT_EQ(child->wait(60s), 128 + SIGTERM);
  EXPECT_EQ(child->wait(), 128 + SIGTERM) << "it is known once it is known";
}

TEST(ChildProcess, ACopyOfThisProcessWorksAndEnds) {
  EXPECT_EQ(ChildProcess::fork([] {})->wait(), 0);
  EXPECT_EQ(ChildProcess::fork([] { throw SetupError({"test.failed", "no"}); })->wait(), 1);
  EXPECT_EQ(ChildProcess::fork([] { ::_exit(5); })->wait(), 5);
}

}  // namespace
}  // namespace rodeo::base
