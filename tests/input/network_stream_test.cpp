// A publisher and a network stream over real providers, each in a thread of its own.
#include "input/network_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "input/network_input.h"
#include "transport/publisher.h"

namespace rodeo::input {
namespace {

using transport::Publisher;
using transport::PublisherSettings;

constexpr std::size_t kLinks = 6;
constexpr std::uint32_t kChunk = 40;

std::vector<Fid> fids(std::size_t count) {
  std::vector<Fid> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(Fid::of(1, 0, 0, i));
  return all;
}

/// A publisher in a thread: chunks with their number in them, in runs of different lengths, link by link.
class Source {
 public:
  Source(PublisherSettings settings, std::uint32_t chunks, bool waits = true, std::uint32_t chunk_bytes = kChunk)
      : publisher(std::move(settings), fids(kLinks)), chunks_(chunks), chunk_bytes_(chunk_bytes), waits_(waits), thread_([this] { run(); }) {}
  ~Source() {
    stop_ = true;
    thread_.join();
  }

  Publisher publisher;
  std::atomic<bool> done{false};

 private:
  void run() {
    std::vector<std::byte> memory(std::size_t{64} * chunk_bytes_);
    std::vector<std::uint32_t> next(kLinks);
    std::uint32_t step = 0;
    bool published = true;
    ChunkRun run;
    std::uint64_t now = base::steady_now_ns();
    const auto move_on = [&] {
      now = base::steady_now_ns();
      publisher.progress(now, now);
    };
    while (!stop_ && waits_ && !publisher.all_links_subscribed()) move_on();
    while (!stop_) {
      if (published) {
        const auto link = static_cast<LinkIndex>(step % kLinks);
        const std::uint32_t count = std::min(1 + step * 7 % 64, chunks_ - next[link]);
        ++step;
        if (std::ranges::all_of(next, [&](std::uint32_t n) { return n == chunks_; })) break;
        if (count == 0) continue;
        for (std::uint32_t i = 0; i < count; ++i) fill(memory.data() + std::size_t{i} * chunk_bytes_, link, next[link] + i);
        run = {.data = memory.data(), .size = chunk_bytes_, .stride = chunk_bytes_, .count = count, .link = link};
        next[link] += count;
      }
      published = publisher.publish({&run, 1});
      if (!published || step % 16 == 0) move_on();
    }
    publisher.end();
    while (!stop_ && !publisher.ended()) move_on();
    done = true;
    while (!stop_) std::this_thread::yield();
  }

  void fill(std::byte* chunk, std::uint32_t link, std::uint32_t number) const {
    std::memset(chunk, static_cast<int>(number % 256), chunk_bytes_);
    std::memcpy(chunk, &link, 4);
    std::memcpy(chunk + 4, &number, 4);
  }

  std::uint32_t chunks_;
  std::uint32_t chunk_bytes_;
  bool waits_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class NetworkStreams : public testing::TestWithParam<const char*> {
 protected:
  NetworkStreams() { std::filesystem::create_directories(bus_); }
  ~NetworkStreams() override { std::filesystem::remove_all(bus_); }

  PublisherSettings publisher() const { return {.name = "test.0", .bus = bus_, .page_bytes = 8192, .pages = 16}; }
  transport::SubscriberSettings subscriber(const char* name = "reader") const {
    return {.name = name, .bus = bus_, .provider = GetParam(), .pages = 16};
  }

  /// Chunks of each link that came; their content and order is checked.
  struct Reader {
    NetworkStream stream;
    std::vector<std::uint32_t> next = std::vector<std::uint32_t>(kLinks);
    std::uint64_t skipped = 0;
    std::uint64_t chunks = 0;
    std::uint32_t part_bytes = 0;

    Reader(const transport::SubscriberSettings& settings, std::vector<NetworkStream::Publisher> of)
        : stream(settings, std::move(of), 10'000'000'000) {}

    PollStatus poll() {
      Page* page = nullptr;
      const PollStatus status = stream.poll(page);
      if (status != PollStatus::page) return status;
      for (const ChunkRun& run : page->runs) take(run);
      page->drop();
      return status;
    }
    void take(const ChunkRun& run) {
      if (run.more_follows || part_bytes > 0) {
        part_bytes += static_cast<std::uint32_t>(run.chunk(0).size());
        if (run.more_follows) return;
        part_bytes = 0;
        ++chunks;
        return;
      }
      for (std::uint32_t i = 0; i < run.count; ++i) {
        std::uint32_t link = 0;
        std::uint32_t number = 0;
        std::memcpy(&link, run.chunk(i).data(), 4);
        std::memcpy(&number, run.chunk(i).data() + 4, 4);
        ASSERT_EQ(link, run.link);
        ASSERT_GE(number, next[link]);
        ASSERT_EQ(run.chunk(i).back(), static_cast<std::byte>(number % 256));
        skipped += number - next[link];
        next[link] = number + 1;
        ++chunks;
      }
    }
    void read_to_end() {
      const std::uint64_t begin = base::steady_now_ns();
      while (poll() != PollStatus::end) ASSERT_LT(base::steady_now_ns() - begin, 8'000'000'000) << "it does not end";
    }
  };

  static std::vector<NetworkStream::Publisher> all_links() { return {{fids(kLinks), {0, 1, 2, 3, 4, 5}}}; }

  std::filesystem::path bus_ = std::filesystem::temp_directory_path() / ("rodeo-bus-" + std::to_string(::getpid()));
};

TEST_P(NetworkStreams, EveryChunkArrivesInOrder) {
  constexpr std::uint32_t kChunks = 30'000;
  Source source(publisher(), kChunks);
  Reader reader(subscriber(), all_links());
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
  EXPECT_EQ(reader.skipped, 0);
  EXPECT_EQ(reader.stream.counts().lost_chunks.get(), 0);
  EXPECT_EQ(reader.stream.counts().lost_pages.get(), 0);
  EXPECT_EQ(reader.stream.counts().bad_pages.get(), 0);
}

INSTANTIATE_TEST_SUITE_P(Provider, NetworkStreams, testing::Values("tcp", "shm"), [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace rodeo::input
