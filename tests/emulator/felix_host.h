// The host's side of a FELIX DMA channel: circular memory, positions in BAR 0, checks of every chunk.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "card_registers/felix.h"
#include "emulator/vfio_client.h"
#include "formats/block_decoder.h"
#include "formats/fid.h"
#include "formats/provable.h"

namespace rodeo::test {

namespace felix = card_registers::felix;

class FelixHost {
 public:
  static constexpr std::uint64_t kIova = 0x100000000;

  FelixHost(const std::filesystem::path& socket, std::size_t bytes) : client(socket), memory(bytes) {
    client.set_bus_master();
    EXPECT_EQ(client.map(memory, kIova), 0);
    Reply reply = client.call(vfio::RegionInfo{.argsz = 64, .index = 0});
    EXPECT_EQ(reply.fds.fds.size(), 1U);
    bar0_ = static_cast<std::byte*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reply.fds.fds.at(0).get(), 0));
  }
  ~FelixHost() { ::munmap(bar0_, 4096); }

  std::atomic_ref<std::uint64_t> at(const card_registers::Register& reg, unsigned index = 0) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(bar0_ + reg.at(index)));
  }

  bool enable(unsigned channel = 0, std::uint64_t begin = kIova, std::uint64_t bytes = 0) {
    at(felix::reg("dma_start"), channel) = begin;
    at(felix::reg("dma_end"), channel) = begin + (bytes == 0 ? memory.size() : bytes);
    at(felix::reg("dma_read_pointer"), channel) = begin;
    at(felix::reg("dma_pointer_gap")) = 0;
    at(felix::reg("dma_control"), channel) = felix::kWrapAround.mask() | 64;
    at(felix::reg("dma_enable")).fetch_or(std::uint64_t{1} << channel);
    read_ = begin;
    begun_ = false;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while ((at(felix::reg("dma_status"), channel) & felix::kDone.mask()) != 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  bool disable(unsigned channel = 0) {
    at(felix::reg("dma_enable")).fetch_and(~(std::uint64_t{1} << channel));
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while ((at(felix::reg("dma_status"), channel) & felix::kDone.mask()) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  std::uint64_t position(unsigned channel = 0) { return at(felix::reg("dma_position"), channel); }

  /// Returns everything that has arrived, except one block, so that the card never sees a whole round at once.
  void give_back(std::uint64_t position, unsigned channel = 0) {
    const std::uint64_t start = at(felix::reg("dma_start"), channel), end = at(felix::reg("dma_end"), channel);
    at(felix::reg("dma_read_pointer"), channel) = (position == start ? end : position) - 1024;
  }

  /// Takes the data since the last call and returns the memory to the card.
  std::vector<std::byte> take(unsigned channel = 0) {
    std::vector<std::byte> data;
    const std::uint64_t start = at(felix::reg("dma_start"), channel), end = at(felix::reg("dma_end"), channel);
    const auto copy = [&](std::uint64_t from, std::uint64_t to) {
      const auto* const begin = memory.data() + (from - kIova);
      data.insert(data.end(), begin, begin + (to - from));
    };
    std::uint64_t now = position(channel);
    if (now == read_ && !begun_) {
      if ((at(felix::reg("dma_status"), channel) & felix::kEvenDma.mask()) == 0) return data;
      copy(start, end);  // the first round is complete
    } else if (now == end && begun_) {
      now = start;  // the channel wraps
    }
    if (now < read_) {
      copy(read_, end);
      copy(start, now);
    } else {
      copy(read_, now);
    }
    begun_ = true;
    read_ = now;
    give_back(now, channel);
    return data;
  }

  VfioClient client;
  SharedMemory memory;

 private:
  std::byte* bar0_ = nullptr;
  std::uint64_t read_ = kIova;
  bool begun_ = false;  // data have arrived since the enable
};

/// Decodes blocks of provable chunks and checks the bytes: L1 ids must be consecutive on every link.
class FelixProver {
 public:
  FelixProver(std::vector<std::uint16_t> elinks, formats::BlockFormat format, std::uint64_t seed,
              std::uint32_t connector = 0)
      : elinks_(std::move(elinks)),
        decoder_({.format = format}, elinks_),
        buffer_(decoder_.capacity_for(4096)),
        provable_(seed),
        connector_(connector),
        next_(elinks_.size()) {}

  void prove(std::span<const std::byte> blocks) {
    while (!blocks.empty()) {
      const std::size_t some = std::min<std::size_t>(blocks.size(), 2048UL * decoder_.options().format.block_bytes);
      ASSERT_EQ(decoder_.decode(blocks.first(some), buffer_), some);
      for (const ChunkRun& run : buffer_.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) check(run.link, run.chunk(i));
      }
      buffer_.clear();
      blocks = blocks.subspan(some);
    }
  }

  /// Counts open chunks as truncated.
  void finish() {
    decoder_.finish(buffer_);
    chunks_ += buffer_.runs().size();
    buffer_.clear();
  }

  std::uint64_t chunks() const { return chunks_; }
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t gaps() const { return gaps_; }
  const formats::BlockCounters& counters() const { return decoder_.counters(); }
  /// Number of chunks seen, by link.
  std::vector<std::uint64_t> per_link() const { return next_; }

 private:
  void check(LinkIndex link, std::span<const std::byte> chunk) {
    ++chunks_;
    std::uint32_t l1id = 0;
    std::memcpy(&l1id, chunk.data(), sizeof l1id);
    if (l1id != next_[link]) ++gaps_;
    next_[link] = l1id + 1;
    const auto id = formats::fid_of_card_elink(0, connector_, elinks_[link]).default_link_id();
    if (!provable_.matches(chunk, id, L1Id{l1id})) ++wrong_;
  }

  std::vector<std::uint16_t> elinks_;
  formats::BlockDecoder decoder_;
  formats::DecodeBuffer buffer_;
  formats::Provable provable_;
  std::uint32_t connector_;
  std::vector<std::uint64_t> next_;
  std::uint64_t chunks_ = 0, wrong_ = 0, gaps_ = 0;
};

}  // namespace rodeo::test
