#include "card/pci/mapped_registers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <concepts>

namespace rodeo::card::pci {
namespace {

// Accesses that a PCIe endpoint answers with Unsupported Request must not compile: no atomic operation accepts these words.
using Register = MappedRegister<std::uint64_t>;
template <typename T>
concept HasReadModifyWrite =
    requires(T place) { place.fetch_or(1U); } || requires(T place) { place.fetch_and(1U); } ||
    requires(T place) { place.fetch_add(1U); } || requires(T place) { place.exchange(1U); } ||
    requires(T place, std::uint64_t old) { place.compare_exchange_strong(old, 1U); } || requires(T place) { place |= 1U; } ||
    requires(T place) { place &= 1U; } || requires(T place) { place += 1U; } || requires(T place) { ++place; };
template <typename T>
concept GivesItsWordAway = std::convertible_to<T, std::uint64_t*> || std::convertible_to<T, volatile std::uint64_t*> ||
                           std::convertible_to<T, std::uint64_t&> || std::convertible_to<T, volatile std::uint64_t&> ||
                           std::constructible_from<std::atomic_ref<std::uint64_t>, T> || requires(T place) { *place; } ||
                           requires(T place) { place.get(); } || requires(T place) { place.data(); };

static_assert(HasReadModifyWrite<std::atomic_ref<std::uint64_t>>, "the question finds what it asks for");
static_assert(HasReadModifyWrite<std::uint64_t&>);
static_assert(GivesItsWordAway<std::uint64_t*>);
static_assert(!HasReadModifyWrite<Register> && !HasReadModifyWrite<Register&>);
static_assert(!GivesItsWordAway<Register> && !GivesItsWordAway<Register&>);
static_assert(!HasReadModifyWrite<MappedRegisters&> && !GivesItsWordAway<MappedRegisters&>);

TEST(MappedRegisters, AreLoadedAndStored) {
  alignas(8) std::array<std::byte, 16> memory{};
  const MappedRegisters registers(memory.data(), memory.size());
  const auto wide = registers.at<std::uint64_t>(8);
  ASSERT_TRUE(wide);
  wide.store(0x1122334455667788);
  EXPECT_EQ(wide.load(), 0x1122334455667788U);
  EXPECT_EQ(registers.at<std::uint32_t>(12).load(), 0x11223344U);
  EXPECT_EQ(registers.at<std::uint8_t>(8).load(), 0x88U);
}

TEST(MappedRegisters, AreNoneOutsideOrWhereTheyWouldNotBeAligned) {
  alignas(8) std::array<std::byte, 16> memory{};
  const MappedRegisters registers(memory.data(), memory.size());
  for (const std::uint64_t offset : {std::uint64_t{4}, std::uint64_t{16}, std::uint64_t{12}, UINT64_MAX - 7})
    EXPECT_FALSE(registers.at<std::uint64_t>(offset)) << offset;
  EXPECT_FALSE(MappedRegisters().at<std::uint8_t>(0));
  EXPECT_FALSE(MappedRegister<std::uint32_t>());
}

}  // namespace
}  // namespace rodeo::card::pci
