#include "readout/consumer/file_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "formats/checksum.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "readout/collecting_consumer.h"
#include "readout/fragment_pool.h"
#include "storage/event_file_reader.h"

namespace rodeo::readout {
namespace {

namespace fs = std::filesystem;
using test::CollectingConsumer;
using test::counter_of;
using test::FragmentPool;

struct ReadEvent {
  std::uint32_t block_number = 0;
  formats::EventFields fields;
  formats::RodHeader rod;
  std::vector<std::uint32_t> status;
  std::vector<std::byte> data;
};

struct ReadFile {
  formats::EventFileHeader header;
  std::vector<ReadEvent> events;
  formats::FileEnd end;
};

/// Reads a closed file with the decoders and checks every checksum in it; the test fails if one is wrong.
ReadFile read_closed(const fs::path& path) {
  ReadFile out;
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> bytes(chars.size());
  std::transform(chars.begin(), chars.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  auto reader = storage::EventFileReader::open(bytes);
  EXPECT_TRUE(reader) << path;
  if (!reader) return out;
  out.header = reader->header();
  std::vector<std::byte> buffer;
  for (;;) {
    const auto block = reader->next();
    EXPECT_TRUE(block) << path;
    if (!block || !*block) break;
    const auto event = formats::decode_full_event((*block)->stored);
    EXPECT_TRUE(event);
    if (!event) break;
    EXPECT_TRUE(event->checksum_holds());
    const auto robs = event->robs(buffer);
    EXPECT_TRUE(robs);
    if (!robs) break;
    const auto rob = formats::decode_rob(robs->bytes());
    EXPECT_TRUE(rob);
    if (!rob) break;
    EXPECT_TRUE(rob->checksum_holds());
    const auto rod = rob->rod();
    EXPECT_TRUE(rod);
    if (!rod) break;
    const auto data = rod->data.bytes();
    out.events.push_back({(*block)->number, *event, rod->header, rod->status.to_vector(), {data.begin(), data.end()}});
  }
  EXPECT_TRUE(reader->end()) << path;
  if (reader->end()) out.end = *reader->end();
  EXPECT_EQ(reader->position(), bytes.size()) << "no bytes after the end record";
  // The CRC of the file is that of all bytes, with zeros in place of the CRC's own digits.
  const std::string text(chars.begin(), chars.end());
  const std::size_t digits = text.find(std::string(formats::kCrcKey)) + formats::kCrcKey.size() + 1;
  const auto stored = formats::read_crc_digits(text.substr(digits, formats::kCrcDigits));
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(digits), formats::kCrcDigits, std::byte{'0'});
  EXPECT_TRUE(stored);
  EXPECT_EQ(stored.value_or(0), formats::crc32(bytes)) << path;
  return out;
}

class Writer : public testing::Test {
 protected:
  Writer() {
    std::string pattern = (fs::temp_directory_path() / "rodeo-writer-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
  }
  ~Writer() override {
    end_.clear();
    writer_.reset();
    fs::remove_all(scratch_);
    EXPECT_EQ(pool_.out(), 0u) << "every reference returned";
  }

  FileWriterSettings defaults() const {
    FileWriterSettings settings;
    settings.queue = {.name = "writer", .capacity = 64};
    settings.frame = {.run_number = 12, .run_type = 0xf, .lumi_block = 3};
    settings.files.directory = scratch_ / "data";
    settings.files.files = {
        .project = "test", .stream_type = "calibration", .stream_name = "readout", .application = "unit"};
    settings.files.files.run.run_number = 12;
    settings.files.buffer_bytes = 64 * 1024;
    return settings;
  }

  FileWriter& start(const FileWriterSettings& settings) {
    writer_ = std::make_unique<FileWriter>(settings);
    writer_->link(&end_);
    writer_->start();
    return *writer_;
  }
  void insert(Sequence first, Sequence count) {
    for (Sequence i = first; i < first + count; ++i) writer_->insert(pool_.make(i));
  }
  std::uint64_t count(std::string_view name) const { return counter_of(writer_->status().counters, name); }
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const FragmentConsumer::File& file : writer_->status().files) paths.push_back(file.path);
    return paths;
  }
  /// Returns every event of every file, and checks the order and the records of the files.
  std::vector<ReadEvent> all_events() const {
    std::vector<ReadEvent> out;
    std::uint32_t number = 0;
    const auto names = files();
    for (const std::string& name : names) {
      ReadFile file = read_closed(name);
      EXPECT_EQ(file.header.file_number, ++number);
      EXPECT_EQ(file.end.blocks_in_file, file.events.size());
      for (ReadEvent& event : file.events) {
        out.push_back(std::move(event));
        EXPECT_EQ(out.back().block_number, out.size());
      }
      EXPECT_EQ(file.end.blocks_in_sequence, out.size());
      EXPECT_EQ(file.end.last_file, number == names.size() ? 1u : 0u) << name;
    }
    return out;
  }
  std::size_t writing_files() const {
    return static_cast<std::size_t>(std::count_if(fs::directory_iterator(writer_directory_or(scratch_ / "data")),
                                                  fs::directory_iterator(),
                                                  [](const auto& entry) { return entry.path().extension() != ".data"; }));
  }
  fs::path writer_directory_or(const fs::path& other) const { return directory_.empty() ? other : directory_; }
  void expect_equal(const ReadEvent& event, const FragmentPtr& fragment) const {
    EXPECT_EQ(event.fields.l1id, fragment->l1id);
    std::vector<std::byte> data(fragment->payload_bytes());
    fragment->copy_to(data.data());
    EXPECT_EQ(event.data, data);
  }

  fs::path scratch_;
  fs::path directory_;
  FragmentPool pool_{{.links = 8, .chunk_bytes = 41, .links_per_part = 3}};
  CollectingConsumer end_;
  std::unique_ptr<FileWriter> writer_;
};

TEST_F(Writer, WritesEveryFragmentAsAFullEvent) {
  start(defaults());
  insert(0, 1000);
  writer_->stop();
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(fs::path(files()[0]).filename(), "test.00000012.calibration_readout.daq.RAW._lb0000._unit._0001.data");
  const auto events = all_events();
  ASSERT_EQ(events.size(), 1000u);
  for (Sequence i = 0; i < 1000; ++i) {
    const FragmentPtr expected = pool_.make(i);
    const ReadEvent& event = events[i];
    expect_equal(event, expected);
    EXPECT_EQ(event.fields.run_number, 12u);
    EXPECT_EQ(event.fields.lumi_block, 3u);
    EXPECT_EQ(event.fields.global_id, i);
    EXPECT_EQ(event.fields.bcid, expected->bcid);
    EXPECT_EQ(event.fields.trigger_type, expected->trigger_type);
    EXPECT_GT(event.fields.bc_time_s, 1'700'000'000u);
    EXPECT_EQ(event.rod.source_id, expected->source_id);
    EXPECT_EQ(event.status, std::vector<std::uint32_t>({0}));
  }
  EXPECT_EQ(count("events_written"), 1000u);
  EXPECT_EQ(count("bytes_written"), fs::file_size(files()[0]));
  EXPECT_EQ(end_.size(), 1000u) << "all fragments are passed on";
  EXPECT_EQ(writing_files(), 0u);
  EXPECT_EQ(writer_->status().failure, "");
}

TEST_F(Writer, TakesTheRunThatItIsToldBeforeItStarts) {
  writer_ = std::make_unique<FileWriter>(defaults());
  writer_->link(&end_);
  writer_->set_run({.run_number = 77, .run_type = 0});
  writer_->start();
  insert(0, 3);
  writer_->stop();
  ASSERT_EQ(files().size(), 1U);
  EXPECT_NE(files().front().find("00000077"), std::string::npos) << files().front();
  const ReadFile file = read_closed(files().front());
  EXPECT_EQ(file.header.run.run_number, 77U);
  ASSERT_EQ(file.events.size(), 3U);
  EXPECT_EQ(file.events.front().fields.run_number, 77U);
  EXPECT_EQ(file.events.front().fields.run_type, 0U);
}

TEST_F(Writer, ARunWhoseFilesAreThereIsRefusedAndAnotherTaken) {
  start(defaults());
  insert(0, 1);
  writer_->stop();
  FileWriterSettings next = defaults();
  next.files.files.run.run_number = 13;
  writer_ = std::make_unique<FileWriter>(next);
  writer_->link(&end_);
  EXPECT_THROW(writer_->set_run({.run_number = 12}), SetupError);
  writer_->set_run({.run_number = 14});
  writer_->start();
  insert(1, 1);
  writer_->stop();
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(read_closed(files().front()).header.run.run_number, 14U);
}

TEST_F(Writer, CompressesThePayloadIfAsked) {
  auto settings = defaults();
  settings.compression_level = 1;
  settings.frame.rob_checksum = formats::ChecksumType::adler32;
  settings.queue.threads = 2;
  start(settings);
  insert(0, 300);
  writer_->stop();
  auto events = all_events();
  ASSERT_EQ(events.size(), 300u);
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.fields.l1id < b.fields.l1id; });
  for (Sequence i = 0; i < 300; ++i) {
    EXPECT_EQ(events[i].fields.compression, formats::Compression::zlib);
    expect_equal(events[i], pool_.make(i));
  }
}

TEST_F(Writer, ListsMissingLinksInTheStatusWords) {
  start(defaults());
  writer_->insert(pool_.make(5, 6));
  writer_->stop();
  const auto events = all_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, std::vector<std::uint32_t>({fragment_status::kTimeout, 2, 1006, 1007, 1U << 6 | 1U << 7, 0}));
}

TEST_F(Writer, BeginsANewFileByNumberOfEvents) {
  auto settings = defaults();
  settings.files.files.max_blocks = 100;
  start(settings);
  insert(0, 250);
  writer_->stop();
  EXPECT_EQ(files().size(), 3u);
  EXPECT_EQ(all_events().size(), 250u);
}

TEST_F(Writer, BeginsANewFileBySizeAcrossItsBuffers) {
  const FragmentPool pool({.links = 100, .chunk_bytes = 500, .links_per_part = 50});
  auto settings = defaults();
  settings.files.files.max_bytes = 3 << 19;
  start(settings);
  for (Sequence i = 0; i < 100; ++i) writer_->insert(pool.make(i));
  writer_->stop();
  end_.clear();
  EXPECT_EQ(files().size(), 4u);
  for (const std::string& file : files()) EXPECT_LE(fs::file_size(file), 3u << 19);
  const auto events = all_events();
  ASSERT_EQ(events.size(), 100u);
  for (Sequence i = 0; i < 100; ++i) expect_equal(events[i], pool.make(i));
}

TEST_F(Writer, ClosesAFileWithoutEventsIfThereWereNone) {
  start(defaults());
  writer_->stop();
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(all_events().size(), 0u);
}

TEST_F(Writer, WritesAnEvenShareOfTheFragments) {
  auto settings = defaults();
  settings.share.fraction = 0.25;
  start(settings);
  insert(0, 1000);
  writer_->stop();
  const auto events = all_events();
  ASSERT_EQ(events.size(), 250u);
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_EQ(events[i].fields.global_id, events[i - 1].fields.global_id + 4);
  EXPECT_EQ(count("unwritten_beyond_fraction"), 750u);
  EXPECT_EQ(end_.size(), 1000u) << "the other fragments are passed on";
}

TEST_F(Writer, KeepsIncompleteFragmentsOutsideItsShare) {
  auto settings = defaults();
  settings.share.fraction = 0;
  settings.share.keep_incomplete = true;
  start(settings);
  insert(0, 50);
  writer_->insert(pool_.make(50, 7));
  writer_->stop();
  const auto events = all_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].fields.l1id.value, 50u);
}

TEST_F(Writer, StaysBelowItsLargestNumberOfBytes) {
  auto settings = defaults();
  settings.share.max_bytes = 100'000;
  start(settings);
  insert(0, 1000);
  writer_->stop();
  EXPECT_LE(fs::file_size(files().at(0)), 100'000u);
  EXPECT_GE(fs::file_size(files().at(0)), 80'000u);
  EXPECT_EQ(count("unwritten_beyond_bytes") + count("events_written"), 1000u);
}

TEST_F(Writer, StaysBelowItsLargestNumberOfBytesWithSmallBuffersAndManyFiles) {
  auto settings = defaults();
  settings.share.max_bytes = 400'000;
  settings.files.buffer_bytes = 4096;
  settings.files.files.max_bytes = 20'000;
  start(settings);
  insert(0, 5000);
  writer_->stop();
  std::uint64_t all = 0;
  for (const auto& file : files()) all += fs::file_size(file);
  EXPECT_LE(all, 400'000u);
  EXPECT_GE(all, 360'000u);
}

TEST_F(Writer, StaysBelowItsLargestRate) {
  auto settings = defaults();
  settings.share.max_rate_hz = 100;
  start(settings);
  for (Sequence i = 0; i < 5000; ++i) {
    FragmentPtr fragment = pool_.make(i);
    fragment->handed_over_ns = 1'000'000'000 + i * 1'000'000;  // the fragments come at 1 kHz for five seconds
    writer_->insert(std::move(fragment));
  }
  writer_->stop();
  EXPECT_GE(count("events_written"), 500u);
  EXPECT_LE(count("events_written"), 511u) << "including a burst of a tenth of a second at the beginning";
}

TEST_F(Writer, LeavesFragmentsOutRatherThanWaitIfAskedTo) {
  auto settings = defaults();
  settings.wait_when_full = false;
  settings.queue.capacity = 2;
  start(settings);
  insert(0, 20'000);
  writer_->stop();
  EXPECT_EQ(count("unwritten_queue_full") + count("events_written"), 20'000u);
  EXPECT_EQ(writer_->status().stalls, 0u);
  EXPECT_EQ(end_.size(), 20'000u);
}

TEST_F(Writer, EventsThatItSkipsAreNoneOfItsLargestNumberOfBytes) {
  auto settings = defaults();
  settings.wait_when_full = false;
  settings.queue.capacity = 2;
  settings.share.max_bytes = 1'000'000;
  start(settings);
  // The test offers far more than the limit, first in a burst that the queue cannot hold, until the limit is reached.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (Sequence i = 0; count("unwritten_beyond_bytes") == 0 && std::chrono::steady_clock::now() < deadline; ++i) {
    insert(i, 1);
    if (count("unwritten_queue_full") != 0) std::this_thread::yield();
  }
  writer_->stop();
  EXPECT_GT(count("unwritten_queue_full"), 0u);
  ASSERT_GT(count("unwritten_beyond_bytes"), 0u);
  EXPECT_LE(fs::file_size(files().at(0)), 1'000'000u) << "events and their header checks";
  EXPECT_GE(fs::file_size(files().at(0)), 990'000u);
}

TEST_F(Writer, StopsBeforeTheLastFreeSpaceIsUsed) {
  auto settings = defaults();
  settings.files.disk.min_free_bytes = std::uint64_t{1} << 60;
  writer_ = std::make_unique<FileWriter>(settings);
  try {
    writer_->start();
    FAIL() << "started on a disk that counts as full";
  } catch (const SetupError& error) {
    EXPECT_EQ(error.error().code, "readout.disk_full");
    EXPECT_NE(error.error().what.find("of which `min_free` keeps 1048576 TiB"), std::string::npos) << error.error().what;
  }
  EXPECT_EQ(writing_files(), 0u);
}

TEST_F(Writer, ClosesItsFileWholeAtAFileSizeLimit) {
  // The kernel refuses every byte beyond the limit, like a full disk on which no space can be reserved.
  for (const bool direct : {true, false}) {
    auto settings = defaults();
    settings.files.disk.direct = direct;
    settings.files.disk.reserve_step = 0;
    settings.files.directory = scratch_ / (direct ? "direct" : "buffered");
    start(settings);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = 300'000 + (direct ? 0 : 1);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    insert(0, 3000);
    writer_->stop();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(writer_->status().failure.find("full"), std::string::npos) << writer_->status().failure;
    const auto events = all_events();
    const std::string closed =
        fmt::format("._0001.data was closed with {} events; raise the limit (ulimit -f)", events.size());
    EXPECT_NE(writer_->status().failure.find(closed), std::string::npos) << writer_->status().failure;
    EXPECT_GT(events.size(), 450u);
    EXPECT_LE(fs::file_size(files().at(0)), 300'000u);
    for (std::size_t i = 0; i < events.size(); ++i) expect_equal(events[i], pool_.make(i));
    EXPECT_EQ(count("events_written"), events.size());
    EXPECT_EQ(count("events_written") + count("unwritten_size_limit"), 3000u) << "each fragment is in one counter";
    EXPECT_EQ(count("unwritten_disk_full"), 0u);
    EXPECT_EQ(end_.size(), 3000u);
    EXPECT_EQ(std::distance(fs::directory_iterator(settings.files.directory), fs::directory_iterator()), 1);
    end_.clear();
  }
}

TEST_F(Writer, CountsWhatADirectoryThatIsGoneCannotTakeByItsOwnName) {
  auto settings = defaults();
  settings.files.files.max_blocks = 100;
  start(settings);
  insert(0, 50);
  fs::remove_all(settings.files.directory);
  insert(50, 450);
  writer_->stop();
  EXPECT_NE(writer_->status().failure.find("the directory was removed or renamed"), std::string::npos)
      << writer_->status().failure;
  EXPECT_EQ(count("unwritten_directory_gone"), 500u);
  EXPECT_EQ(count("events_written") + count("unwritten_disk_full") + count("unwritten_write_failed"), 0u);
  EXPECT_EQ(end_.size(), 500u);
}

TEST_F(Writer, SaysAtOnceThatEachEventTakesAFileOfItsOwn) {
  auto settings = defaults();
  settings.files.files.max_bytes = 500;
  start(settings);
  testing::internal::CaptureStderr();
  insert(0, 3);
  writer_->stop();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("larger than max_file_size = 500"), std::string::npos) << said;
  EXPECT_EQ(said.find("larger than"), said.rfind("larger than")) << "once";
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(Writer, ClosesItsFileWholeOnAFullDiskAndStopsTheRun) {
  const fs::path disk = scratch_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "host: needs the right to mount a small tmpfs";
  for (const bool reserve : {true, false}) {
    auto settings = defaults();
    if (!reserve) settings.files.disk.reserve_step = 0;
    settings.files.directory = disk / "data";
    settings.files.files.max_blocks = 1500;
    start(settings);
    insert(0, 6000);
    writer_->stop();
    EXPECT_NE(writer_->status().failure, "");
    const auto events = all_events();
    EXPECT_GT(events.size(), 2900u);  // some space is reserved for the run's record
    EXPECT_EQ(count("events_written"), events.size());
    EXPECT_EQ(count("events_written") + count("unwritten_disk_full"), 6000u);
    directory_ = disk / "data";
    EXPECT_EQ(writing_files(), 0u);
    end_.clear();
    writer_.reset();
    fs::remove_all(disk / "data");
  }
  ::umount(disk.c_str());
}

TEST_F(Writer, LeavesTheSpaceFreeThatItWasTold) {
  const fs::path disk = scratch_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "host: needs the right to mount a small tmpfs";
  auto settings = defaults();
  settings.files.directory = disk / "data";
  settings.files.disk.min_free_bytes = 2 << 20;
  start(settings);
  insert(0, 8000);
  writer_->stop();
  EXPECT_NE(writer_->status().failure, "");
  EXPECT_GT(fs::file_size(files().at(0)), 1'900'000u);
  EXPECT_GE(fs::space(disk).available, 2u << 20);
  EXPECT_EQ(all_events().size(), count("events_written"));
  end_.clear();
  writer_.reset();
  ::umount(disk.c_str());
}

TEST_F(Writer, TakesWhatIsLeftOfADiskInAFewSteps) {
  const fs::path disk = scratch_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "host: needs the right to mount a small tmpfs";
  {
    auto file = storage::DirectFile::create(disk / "file", {.direct = false});
    ASSERT_TRUE(file);
    std::set<std::int64_t> steps;
    std::uint64_t bytes = storage::DirectFile::kAlign;
    for (; file->make_room(bytes) == storage::Room::reserved; bytes += storage::DirectFile::kAlign) {
      struct stat held{};
      ASSERT_EQ(::fstat(file->descriptor(), &held), 0);
      steps.insert(held.st_blocks);
    }
    EXPECT_EQ(file->make_room(bytes), storage::Room::full);
    EXPECT_GE(bytes + storage::DirectFile::kKeptForRecord, 4U << 20)
        << "to the last page, except the space for the run's record";
    EXPECT_LE(steps.size(), 20U) << "each step takes half of the remaining space, not the size of an event";
  }
  ::umount(disk.c_str());
}

TEST_F(Writer, RefusesADirectoryThatItCannotWriteTo) {
  std::ofstream(scratch_ / "file") << "no directory";
  for (const fs::path& directory : {scratch_ / "file", fs::path("/proc/rodeo"), fs::path("/proc/self")}) {
    auto settings = defaults();
    settings.files.directory = directory;
    try {
      const FileWriter writer(settings);
      FAIL() << directory << " was taken";
    } catch (const SetupError& error) {
      EXPECT_EQ(error.error().code, "readout.cannot_write");
      EXPECT_NE(error.error().where.find(directory.string()), std::string::npos) << error.what();
    }
  }
}

TEST_F(Writer, RefusesToMixTwoRunsOfOneNumber) {
  start(defaults());
  insert(0, 3);
  writer_->stop();
  EXPECT_THROW(FileWriter{defaults()}, SetupError);
}

}  // namespace
}  // namespace rodeo::readout
