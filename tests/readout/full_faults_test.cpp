// Generator, FULL-mode builder and verifying work together: how they count chunks with a wrong id or BCID.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "input/generator_input.h"
#include "readout/builder/full_builder.h"
#include "readout/consumer/works.h"
#include "readout/extractor/field_extractor.h"
#include "readout/readout_status.h"

namespace rodeo::readout {
namespace {

class VerifyingConsumer final : public FragmentConsumer {
 public:
  explicit VerifyingConsumer(const input::GeneratorSettings& s) : work_({.seed = s.seed, .crc = s.crc}) {}
  void insert(FragmentPtr fragment) override {
    const std::lock_guard lock(mutex_);
    work_.process(*fragment);
  }
  Status status() const override { return {}; }
  std::uint64_t count(std::string_view name) const { return counter_value(work_.counters(), name); }

 private:
  VerifyWork work_;
  std::mutex mutex_;
};

struct Outcome {
  FragmentBuilder::Status builder;
  std::vector<NamedCounter> sent;
  std::uint64_t verified = 0;
  std::uint64_t flagged = 0;
  std::uint64_t mismatches = 0;
};

Outcome run(input::FaultSettings faults, bool trigger_list, bool crc) {
  input::GeneratorSettings s;
  s.links = input::generated_fids(4, 0, 0, false);
  s.groups = 2;
  s.seed = 17;
  s.crc = crc;
  s.chunk_bytes = 1024;
  s.events = 20'000;
  s.rate_hz = input::GeneratorSettings::kUnlimited;
  s.faults = faults;
  s.complete();
  input::InternalDataGenerator input(s);
  std::vector<BuilderLink> links;
  for (std::size_t i = 0; i < input.links().size(); ++i)
    links.push_back({input.links()[i], input.links()[i].default_link_id(), static_cast<std::uint32_t>(i / 2)});
  VerifyingConsumer consumer(s);
  BuilderContext context;
  context.source_id = SourceId{0x610001};
  context.links = links;
  context.input = &input;
  context.consumer = &consumer;
  context.make_extractor = [] { return make_field_extractor({}); };
  if (crc) context.make_checker = [] { return make_crc32_checker(); };
  FullBuilder builder({.trigger_list = trigger_list}, context);
  builder.start();
  input.start();
  builder.join();
  return {builder.status(), input.counters(), consumer.count("verified_chunks"), consumer.count("flagged_chunks"),
          consumer.count("mismatches")};
}

std::uint64_t lost(const Outcome& outcome) {
  std::uint64_t sum = 0;
  for (const NamedCounter& counter : outcome.builder.lost) sum += counter.value;
  return sum;
}

TEST(FullFaults, AWrongBcidIsFlaggedOnceTheTriggersListTellsTheTrueOne) {
  for (const bool crc : {false, true}) {
    const Outcome outcome = run({.bcid = 1e-3}, true, crc);
    const std::uint64_t sent = counter_value(outcome.sent, "fault_bcid");
    EXPECT_GT(sent, 0U);
    EXPECT_EQ(counter_value(outcome.builder.incomplete_by_reason, "bcid_mismatch"), sent);
    EXPECT_EQ(outcome.flagged, sent);
    EXPECT_EQ(outcome.mismatches, 0U);
    EXPECT_EQ(lost(outcome), 0U);
  }
}

TEST(FullFaults, AWrongL1IdIsLostAndCountedButNeverPassesForAnother) {
  for (const bool trigger_list : {false, true}) {
    const Outcome outcome = run({.l1id = 1e-3}, trigger_list, false);
    const std::uint64_t sent = counter_value(outcome.sent, "fault_l1id");
    EXPECT_GT(sent, 0U);
    EXPECT_EQ(outcome.mismatches, 0U) << trigger_list;
    EXPECT_EQ(outcome.verified + outcome.flagged, outcome.builder.chunks_built);
    EXPECT_EQ(lost(outcome) + outcome.flagged, sent) << trigger_list;
  }
}

}  // namespace
}  // namespace rodeo::readout
