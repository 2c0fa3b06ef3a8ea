// Files are grouped into writers' sequences by their records.
#include "storage/writer_files.h"

#include <gtest/gtest.h>

namespace {

using namespace rodeo::storage;

FileOrigin origin(const std::string& directory, const std::string& core, std::uint32_t number, std::uint32_t run = 1) {
  const std::string path = directory + "/" + core + "." + std::to_string(number);
  return {.path = path,
          .directory = directory,
          .core_name = core,
          .guid = "guid of " + path,
          .file_number = number,
          .run_number = run,
          .bytes = 10};
}

TEST(WriterFiles, AreInTheOrderOfTheirNumbers) {
  const auto writers = by_writer({origin("d", "a", 2), origin("d", "b", 1), origin("d", "a", 1)});
  ASSERT_TRUE(writers);
  ASSERT_EQ(writers->size(), 2u);
  EXPECT_EQ((*writers)[0].name, "a");
  EXPECT_EQ((*writers)[0].files[0].file_number, 1u);
  EXPECT_EQ((*writers)[0].bytes, 20u);
  EXPECT_TRUE((*writers)[0].absent.empty());
}

TEST(WriterFiles, OneNameInTwoDirectoriesIsTwoWriters) {
  const auto writers = by_writer({origin("d", "a", 1), origin("e", "a", 1)});
  ASSERT_TRUE(writers);
  ASSERT_EQ(writers->size(), 2u);
  EXPECT_EQ((*writers)[0].name, "d/a");
}

TEST(WriterFiles, WhatIsNotThereIsTold) {
  const auto writers = by_writer({origin("d", "a", 1), origin("d", "a", 4)});
  ASSERT_TRUE(writers);
  EXPECT_EQ((*writers)[0].absent, (std::vector<std::uint32_t>{2, 3}));
}

TEST(WriterFiles, TwoRunsAreRefused) {
  EXPECT_EQ(by_writer({origin("d", "a", 1), origin("d", "b", 1, 2)}).error().code, "data.other_run");
}

TEST(WriterFiles, TheSameFileTwiceIsRefused) {
  EXPECT_EQ(by_writer({origin("d", "a", 1), origin("d", "a", 1)}).error().code, "data.same_file");
  FileOrigin copy = origin("d", "a", 1);
  copy.path = "e/copy";
  copy.directory = "e";
  EXPECT_EQ(by_writer({origin("d", "a", 1), copy}).error().code, "data.same_file");
  FileOrigin other = origin("d", "a", 1);
  other.guid = "another";
  EXPECT_EQ(by_writer({origin("d", "a", 1), other}).error().code, "data.same_file");
}

}  // namespace
