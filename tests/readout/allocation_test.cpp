// After start no data path allocates: the test counts all heap allocations while events flow from input to consumer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <thread>

#include "base/registry.h"
#include "bench/readout/build_bench.h"
#include "bench/readout/prepared_input.h"
#include "input/block_recorder.h"
#include "readout/application.h"
#include "readout/defaults.h"

// The names of glibc's own functions. Memory of any of these functions can be freed by the others.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT
}

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// These replace all allocation functions, also those under operator new and in libraries, which find these first.
extern "C" {
void* malloc(std::size_t size) noexcept {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) noexcept {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  count();
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? 12 : 0;
}
}

namespace rodeo::test {
namespace {

namespace fs = std::filesystem;

template <typename T>
void keep(T* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

TEST(AllocationCount, SeesEveryWayToMemory) {
  struct alignas(256) Wide {
    char bytes[256];
  };
  const auto counted = [](auto&& work) {
    counting.store(true);
    work();
    counting.store(false);
    return allocations.exchange(0);
  };
  EXPECT_EQ(counted([] {}), 0U);
  EXPECT_EQ(counted([] {
              int* one = new int(1);
              keep(one);
              delete one;
            }),
            1U);
  EXPECT_EQ(counted([] {
              Wide* one = new Wide;
              keep(one);
              delete one;
            }),
            1U);
  EXPECT_EQ(counted([] {
              void* one = std::malloc(10);
              keep(one);
              std::free(one);
            }),
            1U);
  EXPECT_GT(counted([] { keep(std::string(100, 'x').data()); }), 0U);
}

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
  bench::PreparedInput input({.links = 24,
                              .groups = full ? 4U : 0U,
                              .chunk_bytes = full ? 500U : 40U,
                              .run_length = full ? 1U : 24U,
                              .blocks = flow.blocks,
                              .least_bytes = 1 << 20});
  const auto parameters = [&](base::ComponentKind kind, const char* name) {
    return bench::parameters_of((*registry.find(kind, name))->info);
  };
  Parameters of_consumer = parameters(base::ComponentKind::consumer, "processor");
  of_consumer.set("threads", static_cast<std::int64_t>(flow.consumer_threads));
  of_consumer.set("work", std::string(flow.work));
  const Parameters of_work = parameters(base::ComponentKind::work, flow.work);
  for (const char* key : {"seed", "l1id_bits", "l1id_counter"}) {
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
  // status() allocates, so it is not called while allocations are counted.
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

/// A whole readout: a real input, processor, sampler and writer.
class WholeReadout : public ::testing::TestWithParam<const char*> {
 protected:
  WholeReadout() {
    std::string name = (fs::temp_directory_path() / "rodeo-allocation-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    ::setenv("RODEO_RUNTIME_DIR", directory_.c_str(), 1);
    EXPECT_TRUE(registry_.add_library("built in", readout::register_defaults).has_value());
  }
  ~WholeReadout() override {
    ::unsetenv("RODEO_RUNTIME_DIR");
    fs::remove_all(directory_);
  }

  readout::ComponentSettings component(base::ComponentKind kind, const char* type) const {
    return {
        .type = type, .name = type, .parameters = bench::parameters_of((*registry_.find(kind, type))->info), .where = {}};
  }

  readout::ComponentSettings generator(std::int64_t events) const {
    readout::ComponentSettings input = component(base::ComponentKind::input, "generator");
    input.parameters.set("links", std::int64_t{24});
    input.parameters.set("rate", events > 0 ? 0.0 : 20e3);
    input.parameters.set("events", events);
    return input;
  }

  readout::ComponentSettings input(const std::string& type) const {
    if (type == "generator") return generator(0);
    const std::string recording = directory_ / "recording";
    const auto made = registry_.make_input("generator", generator(2000).parameters);
    EXPECT_TRUE(input::record_blocks(**made, recording, {}, [] { return false; }).has_value());
    readout::ComponentSettings file = component(base::ComponentKind::input, "file");
    file.parameters.set("file", recording);
    file.parameters.set("rate", 20e3);
    file.parameters.set("loop", true);
    file.parameters.set("restamp", std::string("provable"));
    return file;
  }

  fs::path directory_;
  base::ComponentRegistry registry_;
};

TEST_P(WholeReadout, AllocatesNothingWhileItRuns) {
  readout::ReadoutSettings settings;
  settings.name = "allocation";
  settings.run.readout_name = settings.name;
  settings.input = input(GetParam());
  settings.builder = component(base::ComponentKind::builder, "gbt");
  settings.extractor = component(base::ComponentKind::extractor, "rodeo");
  settings.robs.resize(1);
  settings.robs[0].source_id = SourceId{0x610001};
  for (const char* type : {"processor", "event_sampler", "file_writer"})
    settings.consumers.push_back(component(base::ComponentKind::consumer, type));
  settings.consumers[0].parameters.set("work", std::string("release"));
  settings.consumers[2].parameters.set("directory", directory_.string());
  readout::Application application(settings, registry_);
  application.start();
  const auto wait_until = [&](std::uint64_t fragments) {
    while (application.status().fragments < fragments) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  wait_until(3000);
  const std::uint64_t before = application.status().fragments;
  counting.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  counting.store(false);
  const std::uint64_t found = allocations.exchange(0);
  EXPECT_GT(application.status().fragments, before) << "nothing flowed";
  EXPECT_EQ(found, 0U);
  application.stop();
  while (application.phase() != readout::Phase::stopped) {
    application.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(application.status().failure, "");
}

INSTANTIATE_TEST_SUITE_P(Inputs, WholeReadout, ::testing::Values("generator", "file"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace rodeo::test
