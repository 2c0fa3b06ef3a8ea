// The generator and the GBT builder together, with faults: every chunk sent is in one fragment or in one counter.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "formats/provable.h"
#include "input/generator_input.h"
#include "readout/builder/gbt_builder.h"
#include "readout/extractor/field_extractor.h"

namespace rodeo::readout {
namespace {

/// Checks the bytes of chunks and releases the fragments.
class ProvingConsumer final : public FragmentConsumer {
 public:
  explicit ProvingConsumer(const input::GeneratorSettings& s) : provable_(s.seed, s.crc, s.l1id_bits) {}

  void insert(FragmentPtr fragment) override {
    const std::lock_guard lock(mutex_);
    ++fragments;
    complete += fragment->complete();
    fragment->for_each_chunk([&](const ChunkHeader& header, std::span<std::byte> bytes) {
      ++chunks;
      proven += provable_.matches(bytes, header.link_id, fragment->l1id);
    });
  }
  Status status() const override { return {}; }

  std::uint64_t fragments = 0;
  std::uint64_t complete = 0;
  std::uint64_t chunks = 0;
  std::uint64_t proven = 0;

 private:
  formats::Provable provable_;
  std::mutex mutex_;
};

struct Chain {
  Chain(input::GeneratorSettings settings, std::uint32_t workers, bool trigger_list) : consumer(settings) {
    settings.complete();
    input = std::make_unique<input::InternalDataGenerator>(settings);
    for (const Fid fid : input->links()) links.push_back({.fid = fid, .link_id = fid.default_link_id(), .group = 0});
    BuilderContext context;
    context.source_id = SourceId{0x610001};
    context.links = links;
    context.input = input.get();
    context.consumer = &consumer;
    context.make_extractor = [bits = settings.l1id_bits] { return make_field_extractor({.l1id_bits = bits}); };
    GbtSettings how;
    how.workers = workers;
    how.trigger_list = trigger_list;
    GbtBuilder builder(how, context);
    builder.start();
    input->start();
    builder.join();
    status = builder.status();
    for (const NamedCounter& counter : input->counters()) sent[counter.name] = counter.value;
  }

  std::uint64_t lost() const {
    std::uint64_t sum = 0;
    for (const NamedCounter& counter : status.lost) sum += counter.value;
    return sum;
  }
  std::uint64_t incomplete(std::string_view reason) const {
    for (const NamedCounter& counter : status.incomplete_by_reason) {
      if (counter.name == reason) return counter.value;
    }
    return 0;
  }

  ProvingConsumer consumer;
  std::unique_ptr<input::InternalDataGenerator> input;
  std::vector<BuilderLink> links;
  FragmentBuilder::Status status;
  std::map<std::string, std::uint64_t> sent;
};

input::GeneratorSettings settings_with(std::size_t links, std::uint64_t events) {
  input::GeneratorSettings s;
  s.links = input::generated_fids(links, 0, 0, false);
  s.seed = 17;
  s.events = events;
  s.rate_hz = 20e3;
  return s;
}

class GeneratorToBuilder : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(GeneratorToBuilder, WithoutFaultsEveryEventIsCompleteAtAnyRate) {
  for (const double rate : {input::GeneratorSettings::kUnlimited, 20e3, 500.0}) {
    input::GeneratorSettings s = settings_with(24, rate == 500.0 ? 100 : 4000);
    s.rate_hz = rate;
    s.ecr_triggers = 700;
    const Chain chain(s, GetParam(), false);
    EXPECT_EQ(chain.consumer.fragments, s.events) << rate;
    EXPECT_EQ(chain.consumer.complete, s.events) << rate;
    EXPECT_EQ(chain.consumer.proven, s.events * 24) << rate;
    EXPECT_EQ(chain.lost(), 0U);
  }
}

TEST_P(GeneratorToBuilder, NarrowCountersAreProvenOverWrapsAndResets) {
  struct Case {
    std::uint32_t bits;
    std::uint64_t events;
    std::uint64_t ecr_triggers;
    bool trigger_list;
  };
  for (const Case& one : {Case{8, 1000, 0, false}, Case{8, 20'000, 300, true}, Case{16, 70'000, 0, false},
                          Case{16, 3000, 700, false}, Case{16, 90'000, 40'000, false}, Case{24, 3000, 700, false}}) {
    input::GeneratorSettings s = settings_with(4, one.events);
    s.rate_hz = input::GeneratorSettings::kUnlimited;
    s.l1id_bits = one.bits;
    s.ecr_triggers = one.ecr_triggers;
    const Chain chain(s, GetParam(), one.trigger_list);
    const auto what = ::testing::Message() << one.bits << " bits, resets every " << one.ecr_triggers;
    EXPECT_EQ(chain.consumer.complete, s.events) << what;
    EXPECT_EQ(chain.consumer.proven, s.events * 4) << what;
    EXPECT_EQ(chain.lost(), 0U) << what;
  }
}

TEST_P(GeneratorToBuilder, WithAllFaultsEveryChunkIsBuiltOrCounted) {
  input::GeneratorSettings s = settings_with(24, 6000);
  constexpr double kRate = 1e-3;
  s.ecr_triggers = 2500;
  s.faults = {.missing = kRate,
              .duplicate = kRate,
              .late = kRate,
              .corrupt = kRate,
              .l1id = kRate,
              .truncated = kRate,
              .jump = kRate,
              .out_of_sequence = kRate,
              .bcid = kRate};
  s.faults.silent_link = 4;
  s.faults.silent_from = 2000;
  s.faults.silent_for = 500;
  Chain chain(s, GetParam(), false);
  EXPECT_EQ(chain.status.chunks_received, chain.sent["sent"]);
  EXPECT_EQ(chain.sent["sent"], chain.status.chunks_built + chain.lost());
  EXPECT_EQ(chain.consumer.chunks, chain.status.chunks_built);
  EXPECT_EQ(chain.sent["sent"],
            24U * 6000 + chain.sent["fault_duplicate"] - chain.sent["fault_missing"] - chain.sent["fault_silent"]);
  EXPECT_LE(chain.consumer.chunks - chain.consumer.proven,
            chain.sent["fault_corrupt"] + chain.sent["fault_bcid"] + chain.sent["fault_l1id"])
      << "all other chunks have the right bytes";
}

TEST_P(GeneratorToBuilder, ASilentLinkTimesOutWhileTheOthersFlow) {
  for (const bool trigger_list : {false, true}) {
    input::GeneratorSettings s = settings_with(12, 600);
    s.rate_hz = 2e3;
    s.faults.silent_link = 3;
    s.faults.silent_from = 100;
    const Chain chain(s, GetParam(), trigger_list);
    EXPECT_EQ(chain.consumer.fragments, 600U);
    EXPECT_EQ(chain.consumer.complete, 100U);
    EXPECT_GT(chain.incomplete("timeout"), 0U) << "500 events in 250 ms at a time-out of 10 ms";
    EXPECT_EQ(chain.lost(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, GeneratorToBuilder, ::testing::Values(1U, 2U));

}  // namespace
}  // namespace rodeo::readout
