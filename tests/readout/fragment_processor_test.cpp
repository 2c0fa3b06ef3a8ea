#include "readout/consumer/fragment_processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>

#include "base/named_counters.h"
#include "base/registry.h"
#include "readout/collecting_consumer.h"
#include "readout/consumer/first_wrong.h"
#include "readout/consumer/register.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using test::CollectingConsumer;
using test::counter_of;
using test::FragmentPool;

struct WorkTraits {
  bool contiguous = false;
  bool read_only = false;
};

/// A user's work that calls a function.
class FunctionWork final : public FragmentWork {
 public:
  using Function = std::function<void(Fragment&, const std::function<bool(std::size_t)>& resize)>;
  FunctionWork(WorkTraits traits, Function function) : traits_(traits), function_(std::move(function)) {}
  bool wants_contiguous() const override { return traits_.contiguous; }
  bool read_only() const override { return traits_.read_only; }
  void process(Fragment& fragment) override {
    ++seen_;
    function_(fragment, [&](std::size_t bytes) { return resize(fragment, bytes); });
  }
  std::vector<NamedCounter> counters() const override { return {{"seen", seen_.load()}}; }

 private:
  WorkTraits traits_;
  Function function_;
  std::atomic<std::uint64_t> seen_{0};
};

class Processor : public testing::Test {
 protected:
  ~Processor() override {
    end_.clear();
    processor_.reset();
    EXPECT_EQ(pool_.out(), 0u) << "every reference returned";
  }
  FragmentProcessor& make(WorkTraits traits, const FunctionWork::Function& function,
                          const ProcessorSettings& settings = {}) {
    processor_ =
        std::make_unique<FragmentProcessor>(settings, [=] { return std::make_unique<FunctionWork>(traits, function); });
    processor_->link(&end_);
    processor_->start();
    return *processor_;
  }
  std::uint64_t count(std::string_view name) const { return counter_of(processor_->status().counters, name); }

  FragmentPool pool_{{.links = 4, .links_per_part = 2}};
  CollectingConsumer end_;
  std::unique_ptr<FragmentProcessor> processor_;
};

/// A work that reports the given place as its first wrong one; nullopt: nothing is wrong.
class WrongWork final : public FragmentWork {
 public:
  explicit WrongWork(std::optional<std::pair<std::uint32_t, std::uint32_t>> first) {
    Fragment fragment;
    if (first) fragment.l1id = L1Id{first->first};
    if (first) first_wrong_.set(fragment, first->second);
  }
  bool read_only() const override { return true; }
  void process(Fragment&) override {}
  std::vector<NamedCounter> counters() const override {
    std::vector<NamedCounter> out{{"mismatches", 1}};
    first_wrong_.add_to(out);
    return out;
  }

 private:
  FirstWrong first_wrong_;
};

TEST_F(Processor, WhatWasWrongFirstIsAnEventAndTheLinkOfThisEvent) {
  using First = std::optional<std::pair<std::uint32_t, std::uint32_t>>;
  const auto said = [](const std::vector<First>& first) {
    auto next = first.begin();
    const FragmentProcessor processor({.queue = {.threads = static_cast<unsigned>(first.size())}},
                                      [&] { return std::make_unique<WrongWork>(*next++); });
    const std::vector<NamedCounter> counters = processor.status().counters;
    EXPECT_EQ(counter_of(counters, "mismatches"), first.size());
    const NamedCounter* const l1id = base::find_counter(counters, "first_wrong_l1id");
    const NamedCounter* const link_id = base::find_counter(counters, "first_wrong_link_id");
    return l1id == nullptr || link_id == nullptr ? First{} : First{{l1id->value, link_id->value}};
  };
  EXPECT_EQ(said({First{}, First{}}), First{});
  EXPECT_EQ(said({First{}, First{{9, 7}}}), (First{{9, 7}}));
  EXPECT_EQ(said({First{{5, 0}}, First{{9, 7}}}), (First{{5, 0}})) << "the first was a whole event";
  EXPECT_EQ(said({First{{0, 3}}, First{{9, 7}}}), (First{{0, 3}})) << "the first was event 0";
}

TEST_F(Processor, ChangesWritableFragmentsInPlace) {
  FragmentPtr fragment = pool_.make(3);
  const std::byte* const memory = fragment->parts[0].data;
  auto& processor = make({}, [](Fragment& f, const auto&) { f.parts[0].data[8] = std::byte{0x55}; });
  processor.insert(std::move(fragment));
  processor.stop();
  ASSERT_EQ(end_.size(), 1u);
  EXPECT_EQ(end_[0].parts[0].data, memory);
  EXPECT_EQ(memory[8], std::byte{0x55});
  EXPECT_EQ(count("seen"), 1u);
}

TEST_F(Processor, CopiesFragmentsThatMustNotBeWrittenAndLetsTheOriginalGo) {
  FragmentPtr fragment = pool_.make(3);
  fragment->writable = false;
  const FragmentPtr watched = fragment;
  auto& processor = make({}, [](Fragment& f, const auto&) { f.parts[0].data[8] ^= std::byte{0xff}; });
  processor.insert(std::move(fragment));
  processor.stop();
  ASSERT_EQ(end_.size(), 1u);
  EXPECT_NE(end_[0].parts[0].data, watched->parts[0].data);
  EXPECT_EQ(end_[0].payload_bytes(), watched->payload_bytes());
  EXPECT_EQ(end_[0].parts[0].data[8], watched->parts[0].data[8] ^ std::byte{0xff});
  EXPECT_EQ(end_[0].bcid, watched->bcid);
  EXPECT_EQ(watched->references, 1u);
}

TEST_F(Processor, LeavesFragmentsThatMustNotBeWrittenAloneIfTheWorkOnlyReads) {
  FragmentPtr fragment = pool_.make(3);
  fragment->writable = false;
  const Fragment* const same = fragment.get();
  auto& processor = make({.read_only = true}, [](Fragment&, const auto&) {});
  processor.insert(std::move(fragment));
  processor.stop();
  EXPECT_EQ(&end_[0], same);
}

TEST_F(Processor, GivesOnePieceToWorksThatWantIt) {
  std::vector<std::byte> seen;
  auto& processor = make({.contiguous = true, .read_only = true}, [&](Fragment& f, const auto&) {
    ASSERT_EQ(f.part_count, 1u);
    seen.assign(f.parts[0].data, f.parts[0].data + f.parts[0].size);
    f.status |= fragment_status::kBcidMismatch;
  });
  const FragmentPtr expected = pool_.make(9);
  processor.insert(pool_.make(9));
  processor.stop();
  std::vector<std::byte> bytes(expected->payload_bytes());
  expected->copy_to(bytes.data());
  EXPECT_EQ(seen, bytes);
  EXPECT_EQ(end_[0].part_count, 2u) << "the fragment itself is passed on";
  EXPECT_EQ(end_[0].status, fragment_status::kBcidMismatch) << "with the status that the work has set";
}

TEST_F(Processor, LetsAWorkResizeThePayloadWithinItsLimit) {
  bool beyond = true;
  bool uneven = true;
  auto& processor = make({.contiguous = true},
                         [&](Fragment& f, const auto& resize) {
                           beyond = resize(1024 + 4);
                           uneven = resize(10);
                           if (f.sequence == 0) {
                             EXPECT_TRUE(resize(48));
                             f.chunks = 1;
                           } else {
                             const std::size_t before = f.parts[0].size;
                             EXPECT_TRUE(resize(1024));
                             std::memset(f.parts[0].data + before, 0, 1024 - before);
                           }
                         },
                         {.max_payload_bytes = 1024});
  processor.insert(pool_.make(0));
  processor.insert(pool_.make(1));
  processor.stop();
  EXPECT_FALSE(beyond);
  EXPECT_FALSE(uneven);
  EXPECT_EQ(end_[0].payload_bytes(), 48u);
  EXPECT_EQ(end_[1].payload_bytes(), 1024u);
}

TEST_F(Processor, FlagsAndCountsAFragmentWhoseWorkThrowsAndPassesItOn) {
  auto& processor = make({}, [](Fragment& f, const auto&) {
    if (f.sequence == 1) throw std::runtime_error("bad day");
    if (f.sequence == 2) throw 42;
  });
  for (Sequence i = 0; i < 4; ++i) processor.insert(pool_.make(i));
  processor.stop();
  ASSERT_EQ(end_.size(), 4u);
  EXPECT_EQ(end_[0].status, 0u);
  EXPECT_EQ(end_[1].status, fragment_status::kDataCorruption);
  EXPECT_EQ(end_[2].status, fragment_status::kDataCorruption);
  EXPECT_EQ(count("work_threw"), 2u);
}

TEST_F(Processor, PassesOnUnworkedWhatIsTooLargeToCopy) {
  auto& processor = make({.contiguous = true}, [](Fragment& f, const auto&) { f.parts[0].data[8] ^= std::byte{1}; },
                         {.max_payload_bytes = 64});
  const FragmentPtr expected = pool_.make(0);
  processor.insert(pool_.make(0));
  processor.stop();
  EXPECT_EQ(end_[0].status, fragment_status::kOverflow);
  EXPECT_EQ(std::memcmp(end_[0].parts[0].data, expected->parts[0].data, expected->parts[0].size), 0);
  EXPECT_EQ(count("too_large_for_work"), 1u);
}

TEST_F(Processor, WaitsForACopyToComeBackRatherThanLoseAFragment) {
  auto& processor = make({.contiguous = true}, [](Fragment&, const auto&) {}, {.queue = {.capacity = 64}, .copies = 2});
  for (Sequence i = 0; i < 6; ++i) processor.insert(pool_.make(i));
  while (count("waited_for_copy") == 0) std::this_thread::yield();
  EXPECT_EQ(end_.size(), 2u);
  while (processor.status().consumed < 6) {
    end_.clear();
    std::this_thread::yield();
  }
  processor.stop();
  EXPECT_EQ(processor.status().consumed, 6u);
}

TEST_F(Processor, AddsUpTheCountersOfItsWorks) {
  auto& processor = make({.read_only = true}, [](Fragment&, const auto&) {}, {.queue = {.threads = 3}});
  for (Sequence i = 0; i < 100; ++i) processor.insert(pool_.make(i));
  processor.stop();
  EXPECT_EQ(count("seen"), 100u);
}

TEST(ProcessorByName, RunsTheWorkThatItsTableNames) {
  FragmentPool pool;
  base::ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", [](Registry& r) {
    register_consumers(r);
    register_works(r);
  }));
  Parameters parameters;
  parameters.set("threads", std::int64_t{1});
  parameters.set("queue", std::int64_t{64});
  parameters.set("idle", std::string("sleep"));
  parameters.set("first_cpu", std::int64_t{-1});
  parameters.set("max_payload", std::int64_t{4096});
  parameters.set("copies", std::int64_t{4});
  parameters.set("work", std::string("read"));
  auto processor = registry.make_consumer("processor", parameters);
  ASSERT_TRUE(processor) << processor.error().message();
  (*processor)->start();
  (*processor)->insert(pool.make(1));
  (*processor)->stop();
  EXPECT_EQ(counter_of((*processor)->status().counters, "read_bytes"), 4u * 48);

  parameters.set("work", std::string("reed"));
  const auto unknown = registry.make_consumer("processor", parameters);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("read"), std::string::npos) << unknown.error().message();
}

}  // namespace
}  // namespace rodeo::readout
