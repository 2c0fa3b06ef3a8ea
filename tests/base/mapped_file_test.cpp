// Files read in place: refusals, and a reader whose file is truncated.
#include "base/mapped_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

using rodeo::base::MappedFile;
namespace fs = std::filesystem;

namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    std::string name = (fs::temp_directory_path() / "rodeo-mapped-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~MappedFileTest() override { fs::remove_all(directory_); }

  std::string file(std::size_t bytes, char fill) {
    const std::string path = directory_ / ("file-" + std::to_string(fill));
    std::ofstream(path, std::ios::binary) << std::string(bytes, fill);
    return path;
  }

  fs::path directory_;
};

std::size_t count_of(const MappedFile& file, char wanted) {
  std::size_t count = 0;
  for (const std::byte byte : file.bytes()) count += static_cast<char>(byte) == wanted;
  return count;
}

}  // namespace

TEST_F(MappedFileTest, AWholeFileIsReadAndStaysWhole) {
  const auto mapped = MappedFile::open(file(100'000, 'a'));
  ASSERT_TRUE(mapped.has_value());
  EXPECT_EQ(count_of(*mapped, 'a'), 100'000U);
  EXPECT_TRUE(mapped->check().has_value());
}

TEST_F(MappedFileTest, AFileCutShortGivesZerosAndSaysSo) {
  const std::string path = file(1 << 20, 'a');
  const auto mapped = MappedFile::open(path);
  const auto other = MappedFile::open(file(1 << 20, 'b'));
  ASSERT_TRUE(mapped.has_value() && other.has_value());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(count_of(*mapped, 'a'), 4096U);
  EXPECT_EQ(count_of(*mapped, '\0'), (1U << 20) - 4096U);
  const auto check = mapped->check();
  ASSERT_FALSE(check.has_value());
  EXPECT_EQ(check.error().code, "file.shrunk");
  EXPECT_EQ(check.error().where, path);
  EXPECT_EQ(count_of(*other, 'b'), 1U << 20);
  EXPECT_TRUE(other->check().has_value());
}

TEST_F(MappedFileTest, AFileOpenedAfterACutOneIsWholeAgain) {
  const std::string path = file(1 << 16, 'a');
  {
    const auto mapped = MappedFile::open(path);
    ASSERT_TRUE(mapped.has_value());
    ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    EXPECT_EQ(count_of(*mapped, 'a'), 0U);
    EXPECT_FALSE(mapped->check().has_value());
  }
  const auto next = MappedFile::open(file(1 << 16, 'c'));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(count_of(*next, 'c'), 1U << 16);
  EXPECT_TRUE(next->check().has_value());
}

TEST_F(MappedFileTest, APipeIsRefusedWithoutWaitingForItsWriter) {
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto mapped = MappedFile::open(path);
  ASSERT_FALSE(mapped.has_value());
  EXPECT_EQ(mapped.error().code, "file.not_regular");
}
