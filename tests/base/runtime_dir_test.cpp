#include "base/runtime_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rodeo::base {
namespace {

class RuntimeDir : public testing::Test {
 protected:
  RuntimeDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rodeo-test-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("RODEO_RUNTIME_DIR");
  }
  ~RuntimeDir() override { std::filesystem::remove_all(scratch_); }
  std::filesystem::path scratch_;
};

TEST_F(RuntimeDir, IsTheUsersOwnAndMadeForTheUserAlone) {
  ::setenv("RODEO_RUNTIME_DIR", (scratch_ / "own").c_str(), 1);
  const auto directory = runtime_directory();
  ASSERT_TRUE(directory) << directory.error().message();
  EXPECT_EQ(*directory, scratch_ / "own");
  struct stat found{};
  ASSERT_EQ(::stat(directory->c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  EXPECT_TRUE(runtime_directory()) << "a second time";
}

TEST_F(RuntimeDir, LiesInTheSessionsDirectoryWhereThereIsOne) {
  ::setenv("XDG_RUNTIME_DIR", scratch_.c_str(), 1);
  EXPECT_EQ(runtime_directory_name(), scratch_ / "rodeo");
}

TEST_F(RuntimeDir, LiesBelowTmpWhereTheSessionsDirectoryIsMissingOrAnotherUsers) {
  const std::filesystem::path fallback = "/tmp/rodeo-" + std::to_string(::geteuid());
  ::setenv("XDG_RUNTIME_DIR", (scratch_ / "missing").c_str(), 1);
  EXPECT_EQ(runtime_directory_name(), fallback);
  std::ofstream(scratch_ / "file") << "not a directory";
  ::setenv("XDG_RUNTIME_DIR", (scratch_ / "file").c_str(), 1);
  EXPECT_EQ(runtime_directory_name(), fallback);
  ::setenv("XDG_RUNTIME_DIR", ::geteuid() == 0 ? scratch_.c_str() : "/", 1);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(scratch_.c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(runtime_directory_name(), fallback);
}

TEST_F(RuntimeDir, IsRefusedIfOthersMayWriteToIt) {
  ::setenv("RODEO_RUNTIME_DIR", scratch_.c_str(), 1);
  ASSERT_EQ(::chmod(scratch_.c_str(), 0777), 0);
  const auto directory = runtime_directory();
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, "base.runtime_dir");
  EXPECT_NE(directory.error().what.find("0777"), std::string::npos);
}

TEST_F(RuntimeDir, RefusesSocketNamesThatLeaveItOrDoNotFit) {
  ::setenv("RODEO_RUNTIME_DIR", scratch_.c_str(), 1);
  EXPECT_EQ(runtime_socket("readout.events"), scratch_ / "readout.events");
  EXPECT_FALSE(runtime_socket("../elsewhere"));
  EXPECT_FALSE(runtime_socket(std::string(120, 'x')));
}

}  // namespace
}  // namespace rodeo::base
