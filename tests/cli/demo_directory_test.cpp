#include "cli/demo_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "formats/temporary_directory.h"

namespace rodeo::cli {
namespace {

/// A demo in a separate process: it returns 0 if its directory still exists at its end.
int one_demo() {
  const DemoDirectory directory(false);
  ::usleep(2000);
  return std::filesystem::exists(directory.path() / "lock") ? 0 : 1;
}

/// The number of demos, of several started at once, that lose their directories.
int lost_of(int demos) {
  int gate[2];
  if (::pipe(gate) != 0) return demos;
  std::vector<pid_t> processes;
  for (int demo = 0; demo < demos; ++demo) {
    processes.push_back(::fork());
    if (processes.back() != 0) continue;
    ::close(gate[1]);
    char none;
    (void)!::read(gate[0], &none, 1);
    try {
      ::_exit(one_demo());
    } catch (...) {
      ::_exit(2);
    }
  }
  ::close(gate[0]);
  ::close(gate[1]);
  int lost = 0;
  for (const pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    if (status != 0) ++lost;
  }
  return lost;
}

TEST(DemoDirectory, OfDemosThatStartAtOneMomentEachKeepsItsOwn) {
  const test::TemporaryDirectory cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  for (int turn = 0; turn < 25; ++turn) EXPECT_EQ(lost_of(40), 0);
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace rodeo::cli
