// A publisher and a network stream over real providers, each in its own thread.
#include "input/network_stream.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/named_counters.h"
#include "formats/front_end_link.h"
#include "input/joined_stream.h"
#include "input/network_input.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
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

/// A publisher in a thread: it sends numbered chunks in runs of different lengths, link by link.
class Source {
 public:
  Source(PublisherSettings settings, std::uint32_t chunks, std::uint32_t chunk_bytes = kChunk)
      : publisher(std::move(settings), fids(kLinks)),
        chunks_(chunks),
        chunk_bytes_(chunk_bytes),
        thread_([this] { run(); }) {}
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
    while (!stop_ && !publisher.all_links_subscribed()) move_on();
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
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class NetworkStreams : public testing::TestWithParam<const char*> {
 protected:
  NetworkStreams() { std::filesystem::create_directories(bus_); }
  ~NetworkStreams() override { std::filesystem::remove_all(bus_); }

  PublisherSettings publisher() const {
    return {.name = "test.0", .bus = bus_, .providers = {GetParam()}, .page_bytes = 8192, .pages = 16};
  }
  transport::SubscriberSettings subscriber(const char* name = "reader") const {
    return {.name = name, .bus = bus_, .provider = GetParam(), .pages = 16};
  }

  /// Counts received chunks by link, and checks their content and order.
  struct Reader {
    NetworkStream stream;
    std::vector<std::uint32_t> next = std::vector<std::uint32_t>(kLinks);
    std::uint64_t skipped = 0;
    std::uint64_t chunks = 0;
    std::uint32_t part_bytes = 0;

    Reader(const transport::SubscriberSettings& settings, const std::vector<NetworkStream::Publisher>& of)
        : stream(settings, of, 10'000'000'000) {}

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

  /// Polls for a while.
  static void read_for(Reader& reader, std::chrono::milliseconds time) {
    const std::uint64_t begin = base::steady_now_ns();
    while (base::steady_now_ns() - begin < static_cast<std::uint64_t>(time.count()) * 1'000'000) reader.poll();
  }
  template <typename Condition>
  static bool until(Condition&& condition, Reader* reader = nullptr) {
    const std::uint64_t begin = base::steady_now_ns();
    while (!condition()) {
      if (base::steady_now_ns() - begin > 20'000'000'000) return false;
      if (reader != nullptr) reader->poll();
      if (reader == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
  }
  transport::BusEntry entry() const { return transport::read_bus(bus_)->entries.at(0); }

  /// Ends every connection of this process to a port, as a broken network does.
  static void cut_connections_to(std::uint16_t port) {
    for (int fd = 3; fd < 1024; ++fd) {
      sockaddr_in peer{};
      socklen_t bytes = sizeof peer;
      if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0 && peer.sin_family == AF_INET &&
          ntohs(peer.sin_port) == port)
        ::shutdown(fd, SHUT_RDWR);
    }
  }

  static std::uint64_t counter(const Publisher& publisher, std::string_view name) {
    return base::counter_value(publisher.counters(), name);
  }

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

TEST_P(NetworkStreams, ChunksLargerThanPagesArriveWhole) {
  constexpr std::uint32_t kChunks = 100;
  Source source(publisher(), kChunks, 20'000);
  Reader reader(subscriber(), all_links());
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
  EXPECT_EQ(reader.stream.counts().lost_chunks.get(), 0);
  EXPECT_EQ(reader.stream.counts().cut_chunks.get(), 0);
}

TEST_P(NetworkStreams, ChunksAroundTheSizeOfPagesAreJoinedWhole) {
  constexpr std::uint32_t kRoom = 8192 - formats::kNetworkPageHeaderBytes - formats::kNetworkRunHeaderBytes;
  for (const std::uint32_t size : {kRoom - 1, kRoom, kRoom + 1, 8192U, 2 * kRoom, 2 * kRoom + 1, 1U << 20}) {
    const std::uint32_t chunks = size > 100'000 ? 3 : 20;
    Source source(publisher(), chunks, size);
    JoinedStream stream(std::make_unique<NetworkStream>(subscriber(), all_links(), 10'000'000'000, size), kLinks,
                        JoinedStream::settings(size, kLinks));
    std::vector<std::uint32_t> next(kLinks);
    const std::uint64_t begin = base::steady_now_ns();
    for (PollStatus status = PollStatus::empty; status != PollStatus::end;) {
      ASSERT_LT(base::steady_now_ns() - begin, 100'000'000'000) << "it does not end";
      Page* page = nullptr;
      status = stream.poll(page);
      if (status != PollStatus::page) continue;
      for (const ChunkRun& run : page->runs) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const std::span<const std::byte> chunk = run.chunk(i);
          ASSERT_EQ(chunk.size(), size);
          ASSERT_EQ(run.chunk_status(i), 0);
          std::uint32_t number = 0;
          std::memcpy(&number, chunk.data() + 4, 4);
          ASSERT_EQ(number, next[run.link]++);
          ASSERT_TRUE(
              std::ranges::all_of(chunk.subspan(8), [&](std::byte b) { return b == static_cast<std::byte>(number % 256); }));
        }
      }
      page->drop();
    }
    EXPECT_EQ(next, std::vector<std::uint32_t>(kLinks, chunks)) << size;
    EXPECT_EQ(stream.counts().cut_chunks.get(), 0);
    EXPECT_EQ(stream.counters().bytes, std::uint64_t{size} * chunks * kLinks);
  }
}

TEST_P(NetworkStreams, ASubscriberOfDataThatStandsStillHoldsThePublisher) {
  constexpr std::uint32_t kChunks = 30'000;
  Source source(publisher(), kChunks);
  Reader reader(subscriber(), all_links());
  ASSERT_TRUE(until([&] { return reader.chunks > 0; }, &reader));
  std::uint64_t sent = 0;
  ASSERT_TRUE(until([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    return std::exchange(sent, counter(source.publisher, "chunks_wanted")) == sent;
  })) << "it continues without the subscriber";
  EXPECT_LT(sent, kChunks * kLinks);
  EXPECT_GT(counter(source.publisher, "waits"), 0);
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
  EXPECT_EQ(reader.skipped, 0);
}

TEST_P(NetworkStreams, AHeldSourceIsNotDeliveredAndHoldsThePublisher) {
  constexpr std::uint32_t kChunks = 30'000;
  Source source(publisher(), kChunks);
  Reader reader(subscriber(), all_links());
  ASSERT_TRUE(until([&] { return reader.chunks > 0; }, &reader));
  reader.stream.hold(0, true);
  const std::uint64_t chunks = reader.chunks;
  read_for(reader, std::chrono::milliseconds{100});
  EXPECT_EQ(reader.chunks, chunks);
  EXPECT_GT(counter(source.publisher, "waits"), 0);
  reader.stream.hold(0, false);
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
}

TEST_P(NetworkStreams, AStreamWhosePagesAreAllOutSaysSo) {
  Source source(publisher(), 30'000);
  NetworkStream stream(subscriber(), all_links(), 10'000'000'000);
  std::vector<Page*> out;
  ASSERT_TRUE(until([&] {
    Page* page = nullptr;
    const PollStatus status = stream.poll(page);
    if (status == PollStatus::page) out.push_back(page);
    return status == PollStatus::full;
  }));
  EXPECT_EQ(out.size(), 16);
  EXPECT_EQ(stream.memory_fill(), 1.0);
  for (Page* page : out) page->drop();
  Page* page = nullptr;
  ASSERT_TRUE(until([&] { return stream.poll(page) == PollStatus::page; }));
  page->drop();
  // Reads to the end, because libfabric crashes if shared memory breaks with both ends in one process.
  EXPECT_TRUE(until([&] {
    PollStatus status = PollStatus::page;
    while ((status = stream.poll(page)) == PollStatus::page) page->drop();
    return status == PollStatus::end;
  }));
}

TEST_P(NetworkStreams, AMonitorLosesAndKnowsHowMuch) {
  constexpr std::uint32_t kChunks = 30'000;
  auto settings = subscriber("monitor");
  settings.monitor = true;
  Source source(publisher(), kChunks);
  Reader monitor(settings, all_links());
  ASSERT_TRUE(until([&] { return monitor.stream.counts().connections.get() == 1; }, &monitor));
  Reader reader(subscriber(), all_links());
  ASSERT_TRUE(
      until([&] { return reader.poll() == PollStatus::end || counter(source.publisher, "monitor_chunks_dropped") > 1000; }));
  read_for(monitor, std::chrono::milliseconds{20});
  while (reader.poll() != PollStatus::end) monitor.poll();
  monitor.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
  EXPECT_GT(monitor.chunks, 0);
  EXPECT_LT(monitor.chunks, reader.chunks);
  EXPECT_EQ(monitor.skipped, monitor.stream.counts().lost_chunks.get());
  EXPECT_EQ(counter(source.publisher, "undelivered"), 0);
}

TEST_P(NetworkStreams, ALinkMayHaveSeveralSubscribers) {
  constexpr std::uint32_t kChunks = 10'000;
  Source source(publisher(), kChunks);
  Reader some(subscriber("some"), {{{fids(kLinks)[4], fids(kLinks)[1]}, {4, 1}}});
  ASSERT_TRUE(until([&] { return some.stream.counts().connections.get() == 1; }, &some));
  Reader all(subscriber("all"), all_links());
  std::jthread other([&] { some.read_to_end(); });
  all.read_to_end();
  other.join();
  EXPECT_EQ(counter(source.publisher, "chunks_wanted"), kChunks * kLinks);
  EXPECT_EQ(all.chunks, kChunks * kLinks);
  EXPECT_EQ(some.chunks, kChunks * 2);
  EXPECT_EQ(some.stream.counts().lost_chunks.get(), 0);
  EXPECT_EQ(some.next[0], 0) << "a link without subscription";
}

// The shared memory of libfabric 1.17 does not support a broken connection with both ends in one process.
class BrokenStreams : public NetworkStreams {};

TEST_P(BrokenStreams, ABrokenConnectionIsMadeAgainAndNothingIsLost) {
  constexpr std::uint32_t kChunks = 60'000;
  Source source(publisher(), kChunks);
  Reader reader(subscriber(), all_links());
  for (std::uint64_t cuts = 1; cuts <= 3; ++cuts) {
    ASSERT_TRUE(until([&] { return reader.chunks > cuts * kChunks; }, &reader));
    cut_connections_to(entry().port);
    ASSERT_TRUE(until([&] { return reader.stream.counts().connections.get() == cuts + 1; }, &reader));
  }
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
  EXPECT_EQ(reader.skipped + reader.stream.counts().lost_chunks.get() + reader.stream.counts().repeated_pages.get(), 0);
  EXPECT_EQ(counter(source.publisher, "no_subscriber"), 0) << "the publisher has waited";
}

TEST_P(BrokenStreams, APublisherThatDiesAndComesBackIsFoundAgain) {
  constexpr std::uint32_t kChunks = 20'000;
  Reader reader(subscriber(), all_links());
  {
    Source first(publisher(), kChunks);
    ASSERT_TRUE(until([&] { return reader.chunks > 1000; }, &reader));
  }
  std::ranges::fill(reader.next, 0);
  // Data in flight may still come.
  read_for(reader, std::chrono::milliseconds{50});
  std::ranges::fill(reader.next, 0);
  const std::uint64_t chunks = reader.chunks;
  Source second(publisher(), kChunks);
  reader.read_to_end();
  EXPECT_EQ(reader.chunks - chunks, kChunks * kLinks);
  EXPECT_EQ(reader.stream.counts().connections.get(), 2);
  EXPECT_EQ(reader.stream.counts().cut_off.get(), 1);
}

TEST_P(BrokenStreams, ASubscriberThatDoesNotComeBackIsCounted) {
  constexpr std::uint32_t kChunks = 20'000;
  auto settings = publisher();
  settings.grace = std::chrono::milliseconds{100};
  Source source(settings, kChunks);
  std::uint64_t came = 0;
  {
    Reader reader(subscriber(), all_links());
    ASSERT_TRUE(until([&] { return reader.chunks > 5000; }, &reader));
    came = reader.chunks;
  }
  ASSERT_TRUE(until([&] { return source.done.load(); }));
  const std::uint64_t wanted = counter(source.publisher, "chunks_wanted");
  EXPECT_EQ(wanted + counter(source.publisher, "no_subscriber"), kChunks * kLinks);
  EXPECT_GE(wanted, came + counter(source.publisher, "undelivered"));
}

TEST_P(NetworkStreams, StrangersHarmNobody) {
  constexpr std::uint32_t kChunks = 20'000;
  Source source(publisher(), kChunks);
  Reader reader(subscriber(), all_links());
  ASSERT_TRUE(until([&] { return reader.chunks > 0; }, &reader));
  std::vector<transport::ControlSocket> strangers;
  for (int i = 0; i < 10; ++i) {
    auto stranger = transport::ControlSocket::call("127.0.0.1", entry().port);
    ASSERT_TRUE(stranger);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    stranger->say(std::vector<std::byte>(static_cast<std::size_t>(9 + 100 * i), std::byte{0xa5}));
    strangers.push_back(std::move(*stranger));
  }
  ASSERT_TRUE(until([&] { return counter(source.publisher, "refused_peers") == 10; }));
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, kChunks * kLinks);
}

TEST_P(BrokenStreams, WhoDoesNotKnowTheSecretGetsNothing) {
  auto settings = publisher();
  settings.secret = "correct horse";
  Source source(settings, 1000);
  for (const char* wrong : {"", "battery staple"}) {
    auto other = subscriber();
    other.secret = wrong;
    const std::uint64_t refused = counter(source.publisher, "refused_peers");
    Reader reader(other, all_links());
    ASSERT_TRUE(until([&] { return counter(source.publisher, "refused_peers") > refused; }, &reader)) << wrong;
    EXPECT_EQ(reader.chunks, 0);
    EXPECT_EQ(reader.stream.counts().connections.get(), 0);
  }
  auto right = subscriber();
  right.secret = "correct horse";
  Reader reader(right, all_links());
  reader.read_to_end();
  EXPECT_EQ(reader.chunks, 1000 * kLinks);
}

TEST_P(BrokenStreams, TheClockGoesOnWithoutDataAndStandsStillWithoutThePublisher) {
  Reader reader(subscriber(), all_links());
  {
    Source source(publisher(), 10);
    ASSERT_TRUE(until([&] { return reader.chunks > 0; }, &reader));
    // The publisher now waits for the end of its subscriber, without data.
  }
  // Data in flight may still come.
  read_for(reader, std::chrono::milliseconds{50});
  const std::uint64_t clock = reader.stream.clock_ns();
  read_for(reader, std::chrono::milliseconds{50});
  EXPECT_LE(reader.stream.clock_ns() - clock, 2'000'000);
}

INSTANTIATE_TEST_SUITE_P(Provider, NetworkStreams, testing::Values("tcp", "shm"),
                         [](const auto& of) { return std::string(of.param); });

INSTANTIATE_TEST_SUITE_P(Provider, BrokenStreams, testing::Values("tcp"),
                         [](const auto& of) { return std::string(of.param); });

TEST(NetworkInput, RefusesALinkThatGoesToAFrontEnd) {
  NetworkInputSettings settings;
  settings.bus = "/nowhere";
  settings.links = {formats::to_front_end(Fid::of(1, 0, 0, 0))};
  try {
    const NetworkInput input(settings);
    ADD_FAILURE() << "it was accepted";
  } catch (const SetupError& error) {
    EXPECT_EQ(error.error().code, "readout.unknown_link");
  }
}

}  // namespace
}  // namespace rodeo::input
