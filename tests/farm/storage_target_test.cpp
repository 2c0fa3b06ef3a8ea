// Moving closed files to their destination: a file is removed only after its copy is verified, and a restart continues.
#include "farm/recorder/storage_target.h"

#include <gtest/gtest.h>

#include <thread>

#include "farm/farm_event.h"
#include "farm/recorder/run_recording.h"
#include "formats/temporary_directory.h"

namespace {

using namespace rodeo::farm;
using rodeo::test::FarmEvent;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;
using rodeo::test::write_file;

const std::string kName = "rodeo.00000007.physics_Main.daq.RAW._lb0001._recorder._0001.data";

RunFiles run_in(const TemporaryDirectory& directory) { return {directory.path(), "rodeo", "recorder", 7}; }

/// Leaves one closed file with the id 5.
void record_one(const TemporaryDirectory& directory) {
  FileSettings keys;
  keys.directory = directory.path();
  keys.min_free_bytes = 0;
  RunRecording recording(keys, "recorder", 7, [](const std::string&) {});
  const auto request = FarmEvent{.id = 5}.request();
  const std::span<const std::byte> piece(request);
  ASSERT_TRUE(recording.offer({}, {&piece, 1}, request.size(), 1));
  recording.end();
  std::vector<RunRecording::Answer> answers;
  while (!recording.ended()) recording.poll(1, answers);
}

StorageTarget::Status stored(const TargetSettings& keys, const TemporaryDirectory& directory) {
  StorageTarget target(keys, run_in(directory));
  target.end();
  while (!target.ended()) std::this_thread::yield();
  return target.status();
}

TEST(StorageTarget, AFileIsCopiedComparedAndThenRemovedAndItsIdsAreStillKnown) {
  const TemporaryDirectory directory;
  const TemporaryDirectory there;
  record_one(directory);
  const auto bytes = read_file(directory.file(kName));
  const auto status = stored({.directory = there.file("a/b")}, directory);
  EXPECT_EQ(status.stored_files, 1U);
  EXPECT_EQ(status.stored_bytes, bytes.size());
  EXPECT_EQ(status.files_left, 0U);
  EXPECT_EQ(read_file(there.file("a/b/" + kName)), bytes);
  EXPECT_FALSE(std::filesystem::exists(directory.file(kName)));
  FileSettings keys;
  keys.directory = directory.path();
  EXPECT_TRUE(RunRecording(keys, "recorder", 7, [](const std::string&) {}).has(5));
  EXPECT_EQ(next_file_number(directory.path(), kName.substr(0, kName.find("._0001"))), 2U);
}

TEST(StorageTarget, WhatAKilledRecorderLeftOfACopyIsMadeAnew) {
  const TemporaryDirectory directory;
  const TemporaryDirectory there;
  record_one(directory);
  const auto bytes = read_file(directory.file(kName));
  for (const std::size_t part : {std::size_t{0}, std::size_t{100}, bytes.size()}) {
    write_file(there.file("." + kName + ".part"), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part)});
    EXPECT_EQ(stored({.directory = there.path(), .remove = false}, directory).stored_files, 1U) << part;
    EXPECT_EQ(read_file(there.file(kName)), bytes);
    EXPECT_TRUE(std::filesystem::exists(directory.file(kName)));
    std::filesystem::remove(there.file(kName));
  }
  // The recorder was killed after the copy had its name and before the file was removed.
  write_file(there.file(kName), bytes);
  EXPECT_EQ(stored({.directory = there.path()}, directory).stored_files, 1U);
  EXPECT_FALSE(std::filesystem::exists(directory.file(kName)));
}

TEST(StorageTarget, AnotherFileOfThisNameIsNotWrittenOverAndNothingIsRemoved) {
  const TemporaryDirectory directory;
  const TemporaryDirectory there;
  record_one(directory);
  write_file(there.file(kName), {std::byte{1}});
  const auto status = stored({.directory = there.path(), .linger = std::chrono::nanoseconds{0}}, directory);
  EXPECT_GE(status.failures, 1U);
  EXPECT_EQ(status.files_left, 1U);
  EXPECT_NE(status.trouble.find("SHA-256"), std::string::npos) << status.trouble;
  EXPECT_EQ(read_file(there.file(kName)).size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(directory.file(kName)));
}

TEST(StorageTarget, ADirectoryThatCannotBeReadIsNotOneThatHasNothingLeft) {
  const TemporaryDirectory directory;
  const TemporaryDirectory there;
  record_one(directory);
  const std::string away = directory.path() + ".away";
  std::filesystem::rename(directory.path(), away);
  write_file(directory.path(), {std::byte{1}});
  EXPECT_FALSE(files_of_run(run_in(directory), ".data"));
  StorageTarget target({.directory = there.path(), .retry_interval = std::chrono::milliseconds{1}}, run_in(directory));
  target.end();
  while (target.status().trouble.empty()) std::this_thread::yield();
  EXPECT_FALSE(target.ended());
  std::filesystem::remove(directory.path());
  std::filesystem::rename(away, directory.path());
  while (!target.ended()) std::this_thread::yield();
  EXPECT_EQ(target.status().stored_files, 1U);
  EXPECT_EQ(target.status().trouble, "");
  EXPECT_EQ(target.status().failures, 0U);
}

TEST(StorageTarget, AProgramCopiesAndItsChecksumIsCompared) {
  const TemporaryDirectory directory;
  const TemporaryDirectory there;
  record_one(directory);
  TargetSettings keys{.copy_command = {"cp", "{file}", there.path() + "/{name}"},
                      .checksum_command = {"sha256sum", there.path() + "/{name}"},
                      .linger = std::chrono::nanoseconds{0}};
  auto lies = keys;
  lies.checksum_command = {"echo", "0123"};
  EXPECT_GE(stored(lies, directory).failures, 1U);
  EXPECT_TRUE(std::filesystem::exists(directory.file(kName)));
  auto fails = keys;
  fails.copy_command = {"false"};
  EXPECT_NE(stored(fails, directory).trouble.find("status 1"), std::string::npos);
  auto is_not_there = keys;
  is_not_there.copy_command = {"no-such-program"};
  EXPECT_GE(stored(is_not_there, directory).failures, 1U);
  EXPECT_TRUE(std::filesystem::exists(directory.file(kName)));
  EXPECT_EQ(stored(keys, directory).stored_files, 1U);
  EXPECT_FALSE(std::filesystem::exists(directory.file(kName)));
  EXPECT_TRUE(std::filesystem::exists(there.file(kName)));
}

}  // namespace
