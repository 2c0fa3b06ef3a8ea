// The default extraction agrees with its slow twin for every chunk. The twin is a plain function of one chunk.
#include "readout/extractor/field_extractor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/registry.h"
#include "bench/readout/build_bench.h"
#include "readout/defaults.h"

namespace rodeo::readout {
namespace {

class FieldExtractors : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(registry_.add_library("built in", register_defaults)); }

  std::unique_ptr<TriggerExtractor> make(const std::string& name, std::int64_t bits) {
    Parameters parameters = bench::parameters_of((*registry_.find(base::ComponentKind::extractor, name))->info);
    parameters.set("l1id_bits", bits);
    auto made = registry_.make_extractor(name, parameters);
    return made ? std::move(*made) : nullptr;
  }

  base::ComponentRegistry registry_;
};

TEST_F(FieldExtractors, PerChunkAndPerRunAgreeForEveryWidth) {
  std::mt19937 random(7);
  std::vector<std::byte> memory(100 * 40);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
  ChunkRun run;
  run.data = memory.data();
  run.size = run.stride = 40;
  run.count = 100;
  for (const std::int64_t bits : {4, 8, 12, 16, 17, 24, 32}) {
    const auto per_run = make("rodeo", bits);
    const auto per_chunk = make("rodeo_per_chunk", bits);
    ASSERT_NE(per_run, nullptr);
    ASSERT_NE(per_chunk, nullptr);
    EXPECT_EQ(per_run->fields().l1id_bits, per_chunk->fields().l1id_bits);
    EXPECT_EQ(per_run->fields().has_ecr, per_chunk->fields().has_ecr);
    std::vector<std::uint32_t> l1ids(100), l1ids_too(100);
    std::vector<std::uint16_t> bcids(100), bcids_too(100);
    EXPECT_EQ(per_run->extract(run, 0, 100, l1ids.data(), bcids.data()), 100u);
    EXPECT_EQ(per_chunk->extract(run, 0, 100, l1ids_too.data(), bcids_too.data()), 100u);
    EXPECT_EQ(l1ids, l1ids_too) << bits;
    EXPECT_EQ(bcids, bcids_too) << bits;
    EXPECT_EQ(per_run->trigger_type(run.chunk(3)), per_chunk->trigger_type(run.chunk(3)));
  }
}

TEST_F(FieldExtractors, ACounterOf32BitsHasNoResetCounter) {
  for (const std::string name : {"rodeo", "rodeo_per_chunk"}) {
    Parameters parameters = bench::parameters_of((*registry_.find(base::ComponentKind::extractor, name))->info);
    parameters.set("l1id_counter", std::int64_t{32});
    const auto counter = registry_.make_extractor(name, parameters);
    ASSERT_TRUE(counter);
    EXPECT_EQ((*counter)->fields().l1id_bits, 32);
    EXPECT_FALSE((*counter)->fields().has_ecr);
    EXPECT_TRUE(make(name, 32)->fields().has_ecr) << "l1id_bits = 32 keeps its meaning";
    parameters.set("l1id_bits", std::int64_t{24});
    EXPECT_FALSE(registry_.make_extractor(name, parameters)) << "only one of the two may be given";
    parameters.set("l1id_bits", std::int64_t{32});
    parameters.set("l1id_counter", std::int64_t{24});
    EXPECT_FALSE(registry_.make_extractor(name, parameters));
  }
}

TEST_F(FieldExtractors, PerChunkStopsAtAChunkThatIsTooShort) {
  std::vector<std::byte> memory(32);
  const ChunkEntry entries[] = {{.offset = 0, .size = 8}, {.offset = 8, .size = 7}, {.offset = 16, .size = 8}};
  ChunkRun run;
  run.data = memory.data();
  run.entries = entries;
  run.count = 3;
  std::uint32_t l1ids[3];
  std::uint16_t bcids[3];
  EXPECT_EQ(make("rodeo_per_chunk", 32)->extract(run, 0, 3, l1ids, bcids), 1u);
}

TEST_F(FieldExtractors, PerChunkRefusesAWidthThatHasNoMeaning) { EXPECT_EQ(make("rodeo_per_chunk", 30), nullptr); }

}  // namespace
}  // namespace rodeo::readout
