// Pieces of DMA across the border of two maps, and to unmapped addresses.
#include "emulator/dma_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "emulator/vfio_client.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;

TEST(DmaWriter, PiecesFollowEachOtherOverTheBorderOfTwoMaps) {
  constexpr std::uint64_t kAddress = 0x10000;
  SharedMemory memory(8192);
  emulator::DmaMaps maps(4);
  maps.add_client(1);
  for (const std::uint64_t at : {0U, 4096U}) {
    const base::UniqueFd fd(::dup(memory.fd()));
    const vfio::DmaMap map{
        .flags = vfio::DmaMap::kRead | vfio::DmaMap::kWrite, .offset = at, .address = kAddress + at, .size = 4096};
    ASSERT_EQ(maps.map(1, map, fd), 0);
  }
  std::array<std::byte, 4096> bounce;
  std::atomic<std::uint64_t> faults{0};
  emulator::DmaMaps::Use use(maps);
  emulator::DmaWriter writer(use, 1, bounce, faults);
  std::vector<std::byte> expected;
  unsigned number = 0;
  // The second last piece crosses the border, although the last would fit into the rest of the first map.
  for (const std::size_t bytes : {3000U, 1000U, 200U, 64U}) {
    const std::byte value{static_cast<unsigned char>(++number)};
    EXPECT_TRUE(writer.write(kAddress + expected.size(), bytes, 8192 - expected.size(),
                             [&](std::byte* piece) { std::fill_n(piece, bytes, value); }));
    expected.insert(expected.end(), bytes, value);
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.data()));
  EXPECT_EQ(faults, 0U);
  EXPECT_FALSE(writer.write(kAddress + 8192 - 32, 64, 64, [&](std::byte* piece) { std::fill_n(piece, 64, std::byte{9}); }));
  EXPECT_EQ(faults, 1U);
}

}  // namespace
