// The generator as the application uses it: an input with its own thread.
#include "input/generator_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/registry.h"
#include "input/stream_reader.h"
#include "readout/defaults.h"

namespace rodeo::input {
namespace {

using testing::SeenChunk;

GeneratorSettings small_settings() {
  GeneratorSettings s;
  s.links = generated_fids(24, 1, 2, false);
  s.rate_hz = 50e3;
  s.events = 2000;
  s.memory_bytes = 4U << 20;
  s.complete();
  return s;
}

std::uint64_t counter(const DataInput& input, std::string_view name) {
  for (const NamedCounter& c : input.counters()) {
    if (c.name == name) return c.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

std::vector<SeenChunk> read_to_end(DataStream& stream) {
  std::vector<SeenChunk> chunks;
  while (testing::read_all(stream, chunks) != PollStatus::end) std::this_thread::sleep_for(std::chrono::microseconds{100});
  return chunks;
}

TEST(InternalDataGenerator, StoppedBeforeItsStartEndsItsStreams) {
  InternalDataGenerator input(small_settings());
  const auto data = input.open(input.links());
  const auto list = input.open_trigger_list();
  input.stop();
  input.stop();
  std::vector<SeenChunk> chunks;
  EXPECT_EQ(testing::read_all(*data, chunks), PollStatus::end);
  EXPECT_EQ(testing::read_all(*list, chunks), PollStatus::end);
  EXPECT_TRUE(chunks.empty());
}

TEST(InternalDataGenerator, DeliversAllEventsToEveryWorkerAndEnds) {
  InternalDataGenerator input(small_settings());
  const auto links = input.links();
  const auto one = input.open(links.first(5));
  const auto other = input.open(links.subspan(5));
  input.start();
  std::vector<SeenChunk> first;
  std::thread worker([&] { first = read_to_end(*one); });
  const std::vector<SeenChunk> second = read_to_end(*other);
  worker.join();
  const std::uint64_t triggers = counter(input, "triggers");
  EXPECT_EQ(triggers, 2000U);
  EXPECT_EQ(first.size(), triggers * 5);
  EXPECT_EQ(second.size(), triggers * 19);
  EXPECT_EQ(counter(input, "sent"), triggers * 24);
  for (const SeenChunk& chunk : second) {
    ASSERT_TRUE(formats::Provable(1).matches(chunk.bytes, links[5 + chunk.link].default_link_id(), L1Id{chunk.l1id}));
  }
}

TEST(InternalDataGenerator, StopsInOrderWhenAsked) {
  GeneratorSettings s = small_settings();
  s.events = 0;
  InternalDataGenerator input(s);
  const auto stream = input.open(input.links());
  input.start();
  std::vector<SeenChunk> chunks;
  while (chunks.size() < 10'000) testing::read_all(*stream, chunks);
  input.stop();
  while (testing::read_all(*stream, chunks) != PollStatus::end) std::this_thread::yield();
  EXPECT_EQ(chunks.size(), counter(input, "triggers") * 24) << "every link has sent every trigger";
}

TEST(InternalDataGenerator, TakesPagesBackInAnyOrderFromAnyThread) {
  GeneratorSettings s = small_settings();
  s.rate_hz = GeneratorSettings::kUnlimited;
  s.events = 30'000;
  InternalDataGenerator input(s);
  const auto stream = input.open(input.links());
  std::mutex mutex;
  std::vector<Page*> held;
  std::atomic<bool> done{false};
  std::thread releaser([&] {
    std::minstd_rand random(3);
    for (bool last = false; !last;) {
      last = done;
      std::vector<Page*> mine;
      {
        const std::lock_guard lock(mutex);
        mine.swap(held);
      }
      std::shuffle(mine.begin(), mine.end(), random);
      for (Page* page : mine) page->drop();
    }
  });
  input.start();
  std::uint64_t chunks = 0;
  std::uint64_t unproven = 0;
  for (;;) {
    Page* page = nullptr;
    const PollStatus status = stream->poll(page);
    if (status == PollStatus::end) break;
    if (status != PollStatus::page) {
      std::this_thread::yield();
      continue;
    }
    for (const ChunkRun& run : page->runs) {
      chunks += run.count;
      std::uint32_t l1id;
      std::memcpy(&l1id, run.data, 4);
      unproven += !formats::Provable(1).matches(run.chunk(0), input.links()[run.link].default_link_id(), L1Id{l1id});
    }
    const std::lock_guard lock(mutex);
    held.push_back(page);
  }
  done = true;
  releaser.join();
  EXPECT_EQ(chunks, 30'000U * 24);
  EXPECT_EQ(unproven, 0U) << "no page was overwritten while it was held";
}

TEST(InternalDataGenerator, EndsThoughNobodyReads) {
  GeneratorSettings s = small_settings();
  s.rate_hz = GeneratorSettings::kUnlimited;
  s.events = 0;
  InternalDataGenerator input(s);
  const auto stream = input.open(input.links());
  input.start();
  while (counter(input, "triggers") < 1000) std::this_thread::yield();
  input.stop();
  EXPECT_LE(counter(input, "sent") * 40, 5U << 20) << "memory is bounded";
}

TEST(InternalDataGenerator, RefusesLinksItDoesNotHaveAndLinksGivenTwice) {
  InternalDataGenerator input(small_settings());
  const Fid unknown = Fid::of(9, 9, 9, 9);
  const auto links = input.links();
  EXPECT_THROW(input.open(std::span(&unknown, 1)), std::runtime_error);
  EXPECT_THROW(input.open({}), std::runtime_error);
  const auto stream = input.open(links.first(2));
  EXPECT_THROW(input.open(links.subspan(1, 2)), std::runtime_error);
  const Fid twice[] = {links[3], links[3]};
  EXPECT_THROW(input.open(twice), std::runtime_error);
  EXPECT_NO_THROW(input.open(links.subspan(2)));
}

TEST(InternalDataGenerator, IsRegisteredWithADefaultForEachKeyItReads) {
  base::ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", [](Registry& r) { readout::register_defaults(r); }));
  const auto component = registry.find(base::ComponentKind::input, "generator");
  ASSERT_TRUE(component);
  for (const Key& key : (*component)->info.keys) EXPECT_FALSE(key.help.empty()) << key.name;
}

}  // namespace
}  // namespace rodeo::input
