// The generator with time as an argument: all expected values are exact.
#include "input/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "formats/ttc_packet.h"
#include "input/stream_reader.h"

namespace rodeo::input {
namespace {

using testing::read_all;
using testing::SeenChunk;

constexpr std::uint64_t kStart = 1'000'000'000;
constexpr std::uint64_t kMs = 1'000'000;

GeneratorSettings settings_with(std::size_t links) {
  GeneratorSettings s;
  s.links = generated_fids(links, 0, 0, false);
  s.seed = 42;
  return s;
}

std::vector<LinkIndex> first_links(std::size_t begin, std::size_t end) {
  std::vector<LinkIndex> links(end - begin);
  std::iota(links.begin(), links.end(), static_cast<LinkIndex>(begin));
  return links;
}

/// A generator with one stream of all its links; the test runs it in steps of one millisecond.
struct GeneratedRun {
  explicit GeneratedRun(GeneratorSettings given) {
    given.complete();
    generator = std::make_unique<Generator>(std::move(given));
    stream = &generator->add_stream(first_links(0, generator->settings().links.size()));
    generator->start(now);
  }

  void advance_to(std::uint64_t time) {
    for (; now < time; now += kMs) {
      while (generator->advance(now) <= now) read_all(*stream, chunks);
      read_all(*stream, chunks);
    }
  }
  void to_end() {
    while (!generator->exhausted()) advance_to(now + kMs);
    while (!generator->finish(now)) read_all(*stream, chunks);
    EXPECT_EQ(read_all(*stream, chunks), PollStatus::end);
  }
  std::uint64_t counted(GeneratorCounter counter) const { return generator->counters().read(counter); }

  std::uint64_t now = kStart;
  std::unique_ptr<Generator> generator;
  PagedStream* stream = nullptr;
  std::vector<SeenChunk> chunks;
};

bool proves(const GeneratedRun& run, const SeenChunk& chunk) {
  const GeneratorSettings& s = run.generator->settings();
  return formats::Provable(s.seed, s.crc, s.l1id_bits)
      .matches(chunk.bytes, s.links[chunk.link].default_link_id(), L1Id{chunk.l1id});
}

struct Shape {
  const char* name;
  std::size_t links;
  ChunkSizes sizes;
  std::uint32_t bytes;
  bool crc;
  std::uint32_t groups;
};

class GeneratedData : public ::testing::TestWithParam<Shape> {
 protected:
  static GeneratorSettings settings() {
    GeneratorSettings s = settings_with(GetParam().links);
    s.sizes = GetParam().sizes;
    s.chunk_bytes = GetParam().bytes;
    s.size_min = GetParam().bytes / 2;
    s.size_max = GetParam().bytes * 2;
    s.size_sigma = GetParam().bytes / 4;
    s.crc = GetParam().crc;
    s.groups = GetParam().groups;
    s.events = 500;
    s.ecr_triggers = 130;
    return s;
  }
};

TEST_P(GeneratedData, IsOneProvableChunkPerLinkAndTriggerInOrder) {
  GeneratedRun run(settings());
  run.to_end();
  const std::size_t step = run.generator->settings().stride();
  std::vector<std::vector<std::uint32_t>> ids(GetParam().links);
  for (const SeenChunk& chunk : run.chunks) {
    ASSERT_TRUE(proves(run, chunk));
    EXPECT_EQ(chunk.status, 0);
    ids[chunk.link].push_back(chunk.l1id);
  }
  for (std::size_t link = 0; link < ids.size(); ++link) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t n = static_cast<std::uint32_t>(link % step); n < 500; n += static_cast<std::uint32_t>(step)) {
      expected.push_back(L1Id::of(n / 130, n % 130).value);
    }
    EXPECT_EQ(ids[link], expected) << "link " << link;
  }
  EXPECT_EQ(run.generator->chunks_sent(), run.chunks.size());
  EXPECT_EQ(run.counted(GeneratorCounter::triggers), 500U);
  EXPECT_EQ(run.counted(GeneratorCounter::vetoed), 0U);
}

TEST_P(GeneratedData, RepeatsItselfWithTheSameSeed) {
  GeneratedRun one(settings());
  GeneratedRun other(settings());
  one.to_end();
  other.advance_to(kStart + 3 * kMs);
  other.to_end();
  ASSERT_EQ(one.chunks.size(), other.chunks.size());
  for (std::size_t i = 0; i < one.chunks.size(); ++i) ASSERT_EQ(one.chunks[i].bytes, other.chunks[i].bytes) << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GeneratedData,
                         ::testing::Values(Shape{"gbt", 192, ChunkSizes::fixed, 40, false, 0},
                                           Shape{"one", 1, ChunkSizes::fixed, 40, false, 0},
                                           Shape{"odd", 7, ChunkSizes::fixed, 43, false, 0},
                                           Shape{"crc", 24, ChunkSizes::fixed, 40, true, 0},
                                           Shape{"uniform", 24, ChunkSizes::uniform, 64, false, 0},
                                           Shape{"normal", 24, ChunkSizes::normal, 64, true, 0},
                                           Shape{"full", 12, ChunkSizes::fixed, 5000, false, 0},
                                           Shape{"groups", 24, ChunkSizes::fixed, 5000, false, 2},
                                           Shape{"group_of_normal", 24, ChunkSizes::normal, 500, false, 1}),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST(Generator, SendsRunsOfABlockWithLinksOutOfPhase) {
  GeneratedRun run(settings_with(192));
  for (std::uint64_t t = kStart; t < kStart + 5 * kMs; t += kMs / 5) {
    run.generator->advance(t);
  }
  std::map<std::uint32_t, int> lengths;
  std::set<std::uint32_t> ends;
  Page* page = nullptr;
  while (run.stream->poll(page) == PollStatus::page) {
    for (const ChunkRun& chunk_run : page->runs) {
      ++lengths[chunk_run.count];
      std::uint32_t l1id;
      std::memcpy(&l1id, chunk_run.chunk(chunk_run.count - 1).data(), 4);
      if (chunk_run.count == 24) ends.insert(l1id % 24);
    }
    page->drop();
  }
  int whole = lengths[24], all = 0;
  for (const auto& [length, n] : lengths) all += n;
  EXPECT_GT(whole, all * 2 / 3) << "most runs are 24 chunks long";
  EXPECT_GT(ends.size(), 20U) << "the others have any length";
}

TEST(Generator, DrawsSizesWithinTheirLimits) {
  GeneratorSettings s = settings_with(24);
  s.sizes = ChunkSizes::normal;
  s.chunk_bytes = 100;
  s.size_min = 70;
  s.size_max = 130;
  s.size_sigma = 20;
  s.events = 1000;
  GeneratedRun run(s);
  run.to_end();
  std::map<std::size_t, int> seen;
  double sum = 0;
  for (const SeenChunk& chunk : run.chunks) {
    ++seen[chunk.bytes.size()];
    sum += static_cast<double>(chunk.bytes.size());
  }
  EXPECT_EQ(seen.begin()->first, 70U);
  EXPECT_EQ(seen.rbegin()->first, 130U);
  EXPECT_EQ(seen.size(), 61U);
  EXPECT_NEAR(sum / static_cast<double>(run.chunks.size()), 100, 1);
}

TEST(Generator, KeepsToItsRate) {
  for (const bool random : {false, true}) {
    GeneratorSettings s = settings_with(8);
    s.random = random;
    GeneratedRun run(s);
    run.advance_to(kStart + 200 * kMs);
    const auto triggers = static_cast<double>(run.counted(GeneratorCounter::triggers));
    EXPECT_NEAR(triggers, 20000, random ? 600 : 101) << (random ? "random" : "periodic");
  }
}

TEST(Generator, SendsALowRateWithinTheFlushDelay) {
  GeneratorSettings s = settings_with(16);
  s.rate_hz = 100;
  GeneratedRun run(s);
  run.advance_to(kStart + 1 * kMs);
  EXPECT_LT(run.chunks.size(), 16U) << "most wait for their run to fill";
  run.advance_to(kStart + 3 * kMs);
  EXPECT_EQ(run.chunks.size(), 16U) << "the first trigger, on every link";
}

TEST(Generator, NeverLetsTheClockRunAheadOfTheData) {
  GeneratorSettings s = settings_with(32);
  s.rate_hz = 10e3;  // trigger n is due at start + n * 100 us
  GeneratedRun run(s);
  std::vector<std::uint64_t> sent(32, 0);
  std::uint64_t last = 0;
  const auto check = [&](DataStream& stream) {
    Page* page = nullptr;
    for (;;) {
      const PollStatus status = stream.poll(page);
      EXPECT_GE(stream.clock_ns(), last);
      last = stream.clock_ns();
      if (status == PollStatus::page) {
        for (const ChunkRun& chunk_run : page->runs) sent[chunk_run.link] += chunk_run.count;
        page->drop();
      }
      if (last >= kStart) {
        const std::uint64_t complete = (last - kStart) / 100'000 + 1;
        for (const std::uint64_t n : sent) ASSERT_GE(n, complete) << "at " << last - kStart;
      }
      if (status != PollStatus::page) return;
    }
  };
  const std::uint64_t steps[] = {10'000, 250'000, 1 * kMs, 1 * kMs, 40 * kMs, 3 * kMs, 100'000, 700 * kMs};
  std::uint64_t now = kStart;
  for (const std::uint64_t step : steps) {
    now += step;
    while (run.generator->advance(now) <= now) check(*run.stream);
    check(*run.stream);
    EXPECT_GE(last + 2 * kMs, now) << "it is not far behind when all is read";
  }
}

TEST(Generator, CatchesUpAfterAPauseWithPagesThatKeepTheirOwnTime) {
  GeneratorSettings s = settings_with(192);
  GeneratedRun run(s);
  run.generator->advance(kStart + 60 * kMs);
  std::uint64_t now = kStart + 60 * kMs;
  while (run.generator->advance(now) <= now) {
  }
  EXPECT_EQ(run.counted(GeneratorCounter::triggers), 6001U);
  Page* page = nullptr;
  std::uint64_t last = kStart - 1;  // nothing has been sent at the start
  while (run.stream->poll(page) == PollStatus::page) {
    EXPECT_LT(run.stream->clock_ns() - last, 2 * kMs) << "an event time-out of some milliseconds never sees a jump";
    last = run.stream->clock_ns();
    page->drop();
  }
}

TEST(Generator, SaysThatItsPagesAreOutUntilTheyComeBack) {
  GeneratorSettings s = settings_with(192);
  s.memory_bytes = 16U << 20;
  GeneratedRun run(s);
  std::vector<Page*> kept;
  const auto keep = [&] {
    Page* page = nullptr;
    const PollStatus status = run.stream->poll(page);
    if (status == PollStatus::page) kept.push_back(page);
    return status;
  };
  std::uint64_t now = kStart;
  const auto advance = [&] {
    for (std::uint64_t end = now + 2000 * kMs; now < end; now += kMs) {
      run.generator->advance(now);
      while (keep() == PollStatus::page) {
      }
    }
  };
  EXPECT_EQ(keep(), PollStatus::empty);
  advance();
  EXPECT_EQ(keep(), PollStatus::full);
  const std::size_t pages = kept.size();
  for (Page* const page : kept) page->drop();
  EXPECT_EQ(keep(), PollStatus::empty);
  advance();
  EXPECT_GT(kept.size(), pages);
  EXPECT_EQ(keep(), PollStatus::full);
  for (std::size_t i = pages; i < kept.size(); ++i) kept[i]->drop();
}

TEST(Generator, VetoesTriggersWhileMemoryIsFullAndLosesNothing) {
  GeneratorSettings s = settings_with(192);
  s.memory_bytes = 16U << 20;
  GeneratedRun run(s);
  std::uint64_t now = kStart;
  std::vector<SeenChunk> read;
  for (int i = 0; i < 200; ++i, now += kMs) {
    while (run.generator->advance(now) <= now) {
    }
  }
  const std::uint64_t accepted = run.counted(GeneratorCounter::triggers);
  EXPECT_LT(accepted * 192 * 40, 16U << 20) << "accepted triggers fit";
  EXPECT_GT(accepted * 192 * 40, 8U << 20) << "they use most of the memory";
  EXPECT_EQ(accepted + run.counted(GeneratorCounter::vetoed), 19901U) << "every offered trigger is accepted or vetoed";
  read_all(*run.stream, read);
  while (run.generator->advance(now) <= now) {
  }
  EXPECT_GT(run.counted(GeneratorCounter::triggers), accepted) << "memory came back";
  while (!run.generator->finish(now)) read_all(*run.stream, read);
  read_all(*run.stream, read);
  EXPECT_EQ(read.size(), run.counted(GeneratorCounter::triggers) * 192);
  std::set<std::uint32_t> ids;
  for (const SeenChunk& chunk : read) ids.insert(chunk.l1id);
  EXPECT_EQ(*ids.rbegin() + 1, ids.size()) << "accepted triggers have consecutive ids";
}

TEST(Generator, AStallOfItsOwnIsNoDeadTime) {
  GeneratorSettings s = settings_with(24);
  s.memory_bytes = 4U << 20;
  GeneratedRun run(s);
  const auto let_go = [&] {
    Page* page = nullptr;
    while (run.stream->poll(page) == PollStatus::page) page->drop();
  };
  run.generator->advance(kStart + 5 * kMs);
  let_go();
  // The generator does not run for half a second: 50000 triggers become due, ten times as many as fit.
  std::uint64_t now = kStart + 505 * kMs;
  for (; now < kStart + 800 * kMs; now += kMs) {
    run.generator->advance(now);
    let_go();
  }
  while (run.generator->advance(now) <= now) let_go();
  EXPECT_EQ(run.counted(GeneratorCounter::vetoed), 0U);
  EXPECT_EQ(run.counted(GeneratorCounter::triggers), 80'001U) << "it caught up";
}

TEST(Generator, WhatItDidNotComeToBeforeTheEndIsDeadTimeAndNamed) {
  GeneratorSettings s = settings_with(24);
  s.rate_hz = 2e3;
  GeneratedRun run(s);
  run.generator->advance(kStart);
  // The machine is busy: the generator runs again only at the end.
  EXPECT_TRUE(run.generator->behind(kStart + 1000 * kMs));
  run.generator->end_offering(kStart + 1000 * kMs);
  EXPECT_FALSE(run.generator->behind(kStart + 1000 * kMs));
  EXPECT_EQ(run.counted(GeneratorCounter::triggers), 1U);
  EXPECT_EQ(run.counted(GeneratorCounter::overdue), 2000U);
  EXPECT_EQ(run.counted(GeneratorCounter::vetoed), 2000U);
  while (!run.generator->finish(kStart + 1000 * kMs)) read_all(*run.stream, run.chunks);
  read_all(*run.stream, run.chunks);
  EXPECT_EQ(run.chunks.size(), 24U) << "accepted triggers are sent";
}

TEST(Generator, WithoutARateIsLimitedByMemoryAlone) {
  GeneratorSettings s = settings_with(24);
  s.rate_hz = GeneratorSettings::kUnlimited;
  GeneratedRun run(s);
  int calls = 0;
  while (run.generator->advance(kStart) <= kStart) ++calls;
  EXPECT_GT(run.counted(GeneratorCounter::triggers), 10000U);
  EXPECT_EQ(run.counted(GeneratorCounter::vetoed), 0U) << "no trigger was due, so none is refused";
  run.generator->advance(kStart + 5 * kMs);
  const std::uint64_t sent = run.generator->chunks_sent();
  EXPECT_EQ(sent, run.counted(GeneratorCounter::triggers) * 24) << "incomplete runs are flushed while busy";
}

TEST(Generator, ServesSeveralStreamsWithTheSameTriggers) {
  GeneratorSettings s = settings_with(30);
  s.events = 300;
  s.complete();
  Generator generator(s);
  PagedStream* streams[] = {&generator.add_stream(first_links(0, 10)), &generator.add_stream(first_links(10, 11)),
                            &generator.add_stream(first_links(11, 30))};
  generator.start(kStart);
  for (std::uint64_t now = kStart; !generator.exhausted(); now += kMs) generator.advance(now);
  ASSERT_TRUE(generator.finish(kStart + 10 * kMs));
  const std::size_t links[] = {10, 1, 19};
  const std::size_t first[] = {0, 10, 11};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<SeenChunk> chunks;
    EXPECT_EQ(read_all(*streams[i], chunks), PollStatus::end);
    EXPECT_EQ(chunks.size(), 300 * links[i]);
    for (const SeenChunk& chunk : chunks) {
      ASSERT_TRUE(
          formats::Provable(42).matches(chunk.bytes, s.links[first[i] + chunk.link].default_link_id(), L1Id{chunk.l1id}));
    }
    EXPECT_EQ(streams[i]->counters().chunks, chunks.size());
  }
}

TEST(Generator, RestartsL1IdsAtEachEventCounterReset) {
  GeneratorSettings s = settings_with(1);
  s.ecr_period = std::chrono::milliseconds{10};
  s.events = 3000;
  GeneratedRun run(s);
  run.to_end();
  std::map<std::uint32_t, std::uint32_t> per_ecr;
  for (const SeenChunk& chunk : run.chunks) {
    const L1Id id{chunk.l1id};
    EXPECT_EQ(id.l1(), per_ecr[id.ecr()]++);
  }
  EXPECT_EQ(per_ecr.size(), 3U);
  EXPECT_EQ(per_ecr[1], 1000U);
}

TEST(Generator, SendsNarrowIds) {
  GeneratorSettings s = settings_with(3);
  s.l1id_bits = 8;
  s.events = 600;
  GeneratedRun run(s);
  run.to_end();
  std::vector<std::uint32_t> next(3, 0);
  const formats::Provable provable(42, false, 8);
  for (const SeenChunk& chunk : run.chunks) {
    const std::uint32_t n = next[chunk.link]++;
    ASSERT_EQ(chunk.l1id, n & 0xffU);
    ASSERT_TRUE(provable.matches(chunk.bytes, run.generator->settings().links[chunk.link].default_link_id(), L1Id{n}));
  }
}

TEST(Generator, GivesALinkDataForItsShareOfTheTriggers) {
  GeneratorSettings s = settings_with(24);
  s.occupancy = 0.25;
  s.events = 2000;
  GeneratedRun run(s);
  run.to_end();
  EXPECT_NEAR(static_cast<double>(run.chunks.size()), 12000, 400);
  EXPECT_EQ(run.chunks.size() + run.counted(GeneratorCounter::not_occupied), 48000U);
}

TEST(Generator, SixtyFiveThousandLinksFit) {
  GeneratorSettings s = settings_with(65535);
  s.events = 3;
  s.rate_hz = 100;
  s.run_length = 2;
  GeneratedRun run(s);
  run.to_end();
  EXPECT_EQ(run.chunks.size(), 3U * 65535);
}

TEST(TriggerListOfTheGenerator, NamesEachTriggerBeforeItsData) {
  GeneratorSettings s = settings_with(16);
  s.events = 5000;
  s.ecr_triggers = 1100;
  s.complete();
  Generator generator(s);
  PagedStream& stream = generator.add_stream(first_links(0, 16));
  PagedStream* lists[] = {&generator.add_trigger_list(), &generator.add_trigger_list()};
  generator.start(kStart);
  std::vector<SeenChunk> packets[2];
  std::vector<SeenChunk> data;
  for (std::uint64_t now = kStart; !generator.exhausted(); now += 300'000) {
    generator.advance(now);
    read_all(stream, data);
    read_all(*lists[0], packets[0]);
    std::set<std::uint32_t> known;
    for (const SeenChunk& packet : packets[0]) known.insert(formats::TtcPacket::read(packet.bytes)->l1id.value);
    for (const SeenChunk& chunk : data) ASSERT_TRUE(known.contains(chunk.l1id));
    data.clear();
  }
  ASSERT_TRUE(generator.finish(kStart + 100 * kMs));
  read_all(*lists[1], packets[1]);
  for (const auto& list : packets) {
    ASSERT_EQ(list.size(), 5000U);
    for (std::uint32_t n = 0; n < 5000; ++n) {
      const auto packet = formats::TtcPacket::read(list[n].bytes);
      ASSERT_TRUE(packet.has_value());
      ASSERT_EQ(packet->l1id, L1Id::of(n / 1100, n % 1100));
      ASSERT_EQ(packet->bcid, formats::Provable(42).trigger(packet->l1id).bcid);
      ASSERT_EQ(list[n].bytes.size(), formats::TtcPacket::kFormat2Bytes);
    }
  }
}

TEST(GeneratorSettings, RefusesWhatCannotWork) {
  const auto why = [](auto&& change) {
    GeneratorSettings s = settings_with(24);
    change(s);
    try {
      s.complete();
      Generator generator(s);
      generator.add_stream(first_links(0, s.links.size()));
    } catch (const SetupError& refused) {
      return refused.error().what;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(why([](auto&) {}), "accepted");
  EXPECT_EQ(why([](auto& s) { s.links.clear(); }), "the generator has no links");
  EXPECT_EQ(why([](auto& s) { s.links.push_back(s.links.front()); }), "link 0x1000000000000000 is given twice");
  EXPECT_EQ(why([](auto& s) { s.groups = 5; }), "24 links cannot be divided into 5 equal groups");
  EXPECT_EQ(why([](auto& s) { s.chunk_bytes = 4; }), "chunks of 4 bytes are too short: their header takes 8");
  EXPECT_EQ(why([](auto& s) { s.l1id_bits = 12; }), "l1id_bits is 12");
  EXPECT_EQ(why([](auto& s) { s.l1id_counter = 32; }), "accepted");
  EXPECT_EQ(why([](auto& s) { s.l1id_counter = 16; }), "l1id_counter is 16 with l1id_bits = 32");
  EXPECT_EQ(why([](auto& s) { s.l1id_counter = 32, s.ecr_triggers = 1000; }),
            "a counter of 32 bits has no event counter resets");
  EXPECT_EQ(why([](auto& s) { s.faults.missing = s.faults.late = 0.6; }),
            "the chances of all faults add up to 1.2, more than 1");
  EXPECT_EQ(why([](auto& s) { s.faults.silent_link = 24; }), "silent_link is 24, but there are 24 links, counted from 0");
  EXPECT_EQ(why([](auto& s) { s.memory_bytes = 100'000; }),
            "100 kB of memory is too little for 24 links with runs of 24 chunks");
}

}  // namespace
}  // namespace rodeo::input
