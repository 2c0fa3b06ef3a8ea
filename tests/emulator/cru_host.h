// The host's side of a CRU endpoint: superpages pushed and collected by link.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "card_registers/cru.h"
#include "emulator/vfio_client.h"

namespace rodeo::test {

namespace cru = card_registers::cru;

class CruHost {
 public:
  static constexpr std::uint64_t kIova = 0x200000000;

  struct Filled {
    unsigned link;
    std::uint32_t index;
    std::span<const std::byte> bytes;
    std::uint64_t address;
  };

  CruHost(const std::filesystem::path& socket, std::size_t superpage_bytes, std::size_t superpages)
      : client(socket), memory(superpage_bytes * superpages), superpage_bytes_(superpage_bytes) {
    client.set_bus_master();
    EXPECT_EQ(client.map(memory, kIova), 0);
    for (std::size_t i = 0; i < superpages; ++i) free_.push_back(kIova + i * superpage_bytes);
  }

  std::uint32_t read(const card_registers::Register& reg, unsigned index = 0) {
    return client.read32(reg.bar, reg.at(index));
  }
  void write(const card_registers::Register& reg, std::uint32_t value, unsigned index = 0) {
    client.write32(reg.bar, reg.at(index), value);
  }

  /// Starts in the documented order; `source` 0: datapath, 1: internal generator.
  void start(std::uint32_t source) {
    write(cru::reg("data_source"), source);
    write(cru::reg("user_control"), 0);
    write(cru::reg("reset"), cru::kResetGenerator);
    write(cru::reg("reset"), cru::kResetCard);
    done_.clear();
    for (auto& [link, addresses] : pushed_) {  // superpages that the card did not fill return to the host
      for (const std::uint64_t address : addresses) free_.push_back(address);
      addresses.clear();
    }
    write(cru::reg("dma_control"), cru::kDmaStart);
    if (source == 0) write(cru::reg("user_control"), 1);
  }
  void stop() { write(cru::reg("dma_control"), cru::kDmaStart | cru::kDmaFlush.mask()); }

  bool push(unsigned link) {
    if (free_.empty()) return false;
    const std::uint64_t address = free_.front();
    free_.pop_front();
    pushed_[link].push_back(address);
    vfio::MessageWriter writer;
    const auto reg = [&](const card_registers::Register& one, std::uint32_t value) {
      return vfio::SmallWrite{{.offset = one.at(link), .region = one.bar, .count = 4}, value};
    };
    const std::array writes{
        reg(cru::reg("superpage_address_high"), static_cast<std::uint32_t>(address >> 32)),
        reg(cru::reg("superpage_address_low"), static_cast<std::uint32_t>(address)),
        reg(cru::reg("superpage_push"), static_cast<std::uint32_t>(superpage_bytes_ / cru::kDmaPageBytes))};
    writer.write_multi(1, writes, vfio::Header::kNoReply);
    return client.send(writer.bytes());
  }

  /// The filled superpages of a link, in order.
  std::vector<Filled> take(unsigned link) {
    std::vector<Filled> filled;
    const std::uint32_t done = read(cru::reg("superpages_done"), link);
    while (done_[link] != done && !pushed_[link].empty()) {
      const std::uint32_t entry = read(cru::reg("superpage_size_fifo"), link);
      write(cru::reg("superpage_size_fifo"), cru::kSizeFifoNext, link);
      const std::uint64_t address = pushed_[link].front();
      pushed_[link].pop_front();
      filled.push_back({link, cru::kSuperpageIndex.of(entry),
                        std::span<const std::byte>(memory.data() + (address - kIova), cru::kSuperpageBytes.of(entry)),
                        address});
      ++done_[link];
    }
    return filled;
  }
  void give_back(const Filled& filled) { free_.push_back(filled.address); }

  VfioClient client;
  SharedMemory memory;

 private:
  std::size_t superpage_bytes_;
  std::deque<std::uint64_t> free_;
  std::map<unsigned, std::deque<std::uint64_t>> pushed_;
  std::map<unsigned, std::uint32_t> done_;
};

}  // namespace rodeo::test
