// After start no data path allocates: every operator new of the process is counted while events flow from input to consumer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/registry.h"
#include "readout/bench/build_bench.h"
#include "readout/bench/prepared_input.h"
#include "readout/defaults.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace rodeo::test {
namespace {

struct Flow {
  const char* name;
  const char* builder;
  std::uint32_t workers;
  bool blocks;
  unsigned consumer_threads;
  const char* work;
};

class Allocation : public ::testing::TestWithParam<Flow> {};

TEST_P(Allocation, NoneAfterStart) {
  const Flow& flow = GetParam();
  const bool full = std::string(flow.builder) == "full";
  base::ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", readout::register_defaults).has_value());
  readout::PreparedInput input({.links = 24,
                                .groups = full ? 4U : 0U,
                                .chunk_bytes = full ? 500U : 40U,
                                .run_length = full ? 1U : 24U,
                                .blocks = flow.blocks,
                                .least_bytes = 1 << 20});
  const auto parameters = [&](base::ComponentKind kind, const char* name) {
    return readout::parameters_of((*registry.find(kind, name))->info);
  };
  Parameters of_consumer = parameters(base::ComponentKind::consumer, "processor");
  of_consumer.set("threads", static_cast<std::int64_t>(flow.consumer_threads));
  of_consumer.set("work", std::string(flow.work));
  const Parameters of_work = parameters(base::ComponentKind::work, flow.work);
  for (const char* key : {"seed", "l1id_bits"}) {
    if (of_work.has(key)) of_consumer.set(key, of_work.integer(key));
  }
  for (const char* key : {"crc", "check_trigger"}) {
    if (of_work.has(key)) of_consumer.set(key, of_work.boolean(key));
  }
  if (of_work.has("chunk_bytes")) of_consumer.set("chunk_bytes", static_cast<std::int64_t>(of_work.bytes("chunk_bytes")));
  auto consumer = std::move(*registry.make_consumer("processor", of_consumer));
  std::vector<BuilderLink> links;
  for (std::size_t i = 0; i < input.links().size(); ++i)
    links.push_back({input.links()[i], input.links()[i].default_link_id(), input.group_of(i)});
  Parameters of_extractor = parameters(base::ComponentKind::extractor, "rodeo");
  of_extractor.set("l1id_bits", static_cast<std::int64_t>(input.l1id_bits()));
  Parameters of_builder = parameters(base::ComponentKind::builder, flow.builder);
  of_builder.set("workers", static_cast<std::int64_t>(flow.workers));
  of_builder.set("window", std::int64_t{1024});
  const BuilderContext context{.source_id = SourceId{0x610001},
                               .links = links,
                               .input = &input,
                               .consumer = consumer.get(),
                               .make_extractor = [&] { return std::move(*registry.make_extractor("rodeo", of_extractor)); },
                               .make_checker = {}};
  auto builder = std::move(*registry.make_builder(flow.builder, of_builder, context));
  consumer->start();
  builder->start();
  const auto wait_for = [&](std::uint64_t more) {
    const std::uint64_t goal = builder->status().fragments + more;
    while (builder->status().fragments < goal) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  wait_for(5000);
  // status() allocates, so the flow is left alone while it is counted.
  const std::uint64_t before = builder->status().fragments;
  counting.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  counting.store(false);
  EXPECT_GT(builder->status().fragments, before) << "nothing flowed";
  EXPECT_EQ(allocations.exchange(0), 0U);
  input.stop();
  builder->join();
  consumer->stop();
}

INSTANTIATE_TEST_SUITE_P(Flows, Allocation,
                         ::testing::Values(Flow{"gbt", "gbt", 1, false, 0, "release"},
                                           Flow{"gbt_two_workers", "gbt", 2, false, 1, "release"},
                                           Flow{"gbt_blocks", "gbt", 1, true, 1, "read"},
                                           Flow{"gbt_verified", "gbt", 1, false, 1, "verify"},
                                           Flow{"full", "full", 2, false, 1, "read"}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace rodeo::test
