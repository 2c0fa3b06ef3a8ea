// A PCI function without a card: registers are words in a map, and the test defines the effects of reads and writes.
#pragma once

#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "card/pci/found_function.h"

namespace rodeo::card::doubles {

class ScriptedFunction : public pci::Function {
 public:
  explicit ScriptedFunction(card_registers::PciId id, std::span<const card_registers::BarSize> bars,
                            pci::Address at = {0, 0x3b, 0, 0})
      : address_(at) {
    for (const auto& bar : bars) regions_[bar.bar] = {bar.bytes, true, true, {}};
    regions_[pci::kConfigurationRegion] = {4096, true, true, {}};
    words[{pci::kConfigurationRegion, 0}] = id.vendor | static_cast<std::uint32_t>(id.device) << 16;
  }

  /// Adds a PCI Express capability with this Max_Payload_Size, read requests of 512 bytes, 8 GT/s and this number of its 8
  /// lanes.
  void set_express(unsigned payload_bytes, unsigned lanes = 8) {
    constexpr unsigned kConfiguration = pci::kConfigurationRegion;
    words[{kConfiguration, 4}] = 1U << 20;  // status: there is a capability list
    words[{kConfiguration, 0x34}] = 0x40;
    words[{kConfiguration, 0x40}] = 0x0001 | 0x60 << 8;  // power management; the next capability is at 0x60
    words[{kConfiguration, 0x60}] = 0x0010;
    words[{kConfiguration, 0x64}] = 5;
    words[{kConfiguration, 0x68}] = static_cast<std::uint32_t>(std::countr_zero(payload_bytes / 128)) << 5 | 2U << 12;
    words[{kConfiguration, 0x6c}] = 0x83;
    words[{kConfiguration, 0x70}] = (3U | lanes << 4) << 16;
  }

  std::map<std::pair<unsigned, std::uint64_t>, std::uint32_t> words;
  /// Called before a read and after a write, with region and offset of the 32-bit word.
  std::function<void(unsigned, std::uint64_t)> before_read = [](unsigned, std::uint64_t) {};
  std::function<void(unsigned, std::uint64_t, std::uint32_t)> after_write = [](unsigned, std::uint64_t, std::uint32_t) {};
  std::map<std::uint64_t, std::span<std::byte>> dma;  // the keys are I/O addresses
  std::function<Result<void>()> fault = [] { return Result<void>{}; };
  int accesses = 0;
  bool bus_master = false;
  bool iommu = true;
  std::optional<Error> command_fault;  // of set_bus_master()

  /// Memory of the host as the card sees it; empty if it is not mapped.
  std::span<std::byte> at(std::uint64_t bus_address, std::uint64_t bytes) const {
    auto map = dma.upper_bound(bus_address);
    if (map == dma.begin()) return {};
    --map;
    const std::uint64_t skip = bus_address - map->first;
    if (skip > map->second.size() || bytes > map->second.size() - skip) return {};
    return map->second.subspan(skip, bytes);
  }

  const pci::Address& address() const override { return address_; }
  pci::Capabilities capabilities() const override { return pci::capabilities_of(pci::BackEnd::vfio_user); }
  Result<pci::FunctionRegion> region(unsigned number) const override {
    const auto found = regions_.find(number);
    return found == regions_.end() ? pci::FunctionRegion{} : found->second;
  }
  Result<void> read(unsigned region, std::uint64_t offset, std::span<std::byte> bytes) override {
    ++accesses;
    if (auto works = fault(); !works) return works;
    if (auto inside = check(region, offset, bytes.size()); !inside) return inside;
    before_read(region, offset & ~std::uint64_t{3});
    std::uint64_t value = words[{region, offset & ~std::uint64_t{3}}];
    if (bytes.size() == 8) value |= static_cast<std::uint64_t>(words[{region, offset + 4}]) << 32;
    value >>= 8 * (offset & 3);
    std::memcpy(bytes.data(), &value, bytes.size());
    return {};
  }
  Result<void> write(unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) override {
    ++accesses;
    if (auto works = fault(); !works) return works;
    if (auto inside = check(region, offset, bytes.size()); !inside) return inside;
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      std::uint32_t& word = words[{region, (offset + i) & ~std::uint64_t{3}}];
      std::memcpy(reinterpret_cast<std::byte*>(&word) + (offset & 3), bytes.data() + i,
                  std::min<std::size_t>(4, bytes.size()));
      after_write(region, (offset + i) & ~std::uint64_t{3}, word);
    }
    return {};
  }
  Result<pci::MappedRegisters> map(unsigned, pci::MappableRange) override {
    return std::unexpected(Error{"card.bad_access", "nothing is mappable"});
  }
  Result<void> dma_map(std::span<std::byte> memory, int, std::uint64_t, std::uint64_t iova) override {
    if (auto works = fault(); !works) return works;
    dma[iova] = memory;
    return {};
  }
  Result<void> dma_unmap(std::uint64_t iova, std::uint64_t) override {
    dma.erase(iova);
    return {};
  }
  bool translates() const override { return iommu; }
  Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const override {
    auto map = dma.upper_bound(iova);
    if (map == dma.begin()) return std::unexpected(Error{"card.dma_memory", "not mapped"});
    --map;
    return std::pair{iova, map->second.size() - (iova - map->first)};
  }
  unsigned interrupts() const override { return 0; }
  Result<int> interrupt(unsigned) override { return std::unexpected(Error{"card.bad_access", "no interrupts"}); }
  Result<void> reset() override { return {}; }
  Result<void> set_bus_master(bool on) override {
    if (command_fault) return std::unexpected(*command_fault);
    bus_master = on;
    return {};
  }

 protected:
  Result<void> check(unsigned region, std::uint64_t offset, std::uint64_t bytes) const {
    const auto found = regions_.find(region);
    if (found != regions_.end() && offset % bytes == 0 && offset + bytes <= found->second.bytes) return {};
    return std::unexpected(Error{"card.bad_access", "outside the region"});
  }
  pci::Address address_;
  std::map<unsigned, pci::FunctionRegion> regions_;
};

}  // namespace rodeo::card::doubles
