// Models of the three cards' DMA with a scripted function: the test decides when a superpage is filled, and with which
// faults.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "card/dma/channel.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "scripted_function.h"

namespace rodeo::card::doubles {

inline std::unique_ptr<Card> card_of(std::unique_ptr<ScriptedFunction> function, const std::string& lock_file) {
  pci::FoundFunction found;
  found.address = function->address();
  found.lock_file = lock_file;
  found.numa_node = 0;
  auto card = Card::adopt(std::move(function), found);
  if (!card) throw SetupError(card.error());
  return std::move(*card);
}

/// A superpage as pushed to a card.
struct Pushed {
  std::uint64_t address;
  std::uint64_t bytes;
};

class ScriptedCru {
 public:
  explicit ScriptedCru(const std::string& lock_file = {}) {
    namespace cru = card_registers::cru;
    auto function = std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars);
    f = function.get();
    f->words[{2, cru::reg("datapath_enable").offset}] = 0b1;
    f->words[{2, cru::reg("firmware_hash").offset}] = 0xf6b5d742;
    f->before_read = [this](unsigned bar, std::uint64_t offset) {
      const auto found = cru::kMap.at(bar, static_cast<std::uint32_t>(offset));
      if (!found) return;
      auto& word = f->words[{bar, offset}];
      if (found->description->name == "superpages_done") word = done[found->index];
      if (found->description->name == "superpage_size_fifo")
        word = sizes[found->index].empty() ? 0xffffffff : sizes[found->index].front();
    };
    f->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      const auto found = cru::kMap.at(bar, static_cast<std::uint32_t>(offset));
      if (!found) return;
      const auto name = found->description->name;
      log.push_back(std::string(name) + "=" + std::to_string(value));
      if (name == "superpage_push") {
        const std::uint64_t high = f->words[{0, cru::reg("superpage_address_high").at(found->index)}];
        const std::uint64_t low = f->words[{0, cru::reg("superpage_address_low").at(found->index)}];
        queue[found->index].push_back({high << 32 | low, value * std::uint64_t{cru::kDmaPageBytes}});
      }
      if (name == "superpage_size_fifo" && !sizes[found->index].empty()) sizes[found->index].pop_front();
      if (name == "reset" && value == cru::kResetCard) {
        for (unsigned link = 0; link < cru::kDmaLinks; ++link) {
          done[link] = given[link] = 0;
          sizes[link].clear();
          queue[link].clear();
        }
      }
      if (name == "dma_control" && cru::kDmaFlush.of(value) != 0) {
        for (const auto& [link, bytes] : flush) {
          if (!queue[link].empty()) complete(link, bytes);
        }
        flush.clear();
      }
    };
    card = card_of(std::move(function), lock_file);
  }

  /// Fills the oldest superpage of a link with bytes of one value and reports it.
  void complete(unsigned link, std::uint32_t bytes, std::uint8_t value = 0x5a) {
    const Pushed superpage = queue[link].front();
    queue[link].pop_front();
    auto memory = f->at(superpage.address, superpage.bytes);
    std::memset(memory.data(), value, std::min<std::size_t>(bytes, memory.size()));
    sizes[link].push_back(bytes | (given[link]++ & 0xff) << 24);
    ++done[link];
  }

  ScriptedFunction* f = nullptr;
  std::unique_ptr<Card> card;
  std::vector<std::string> log;  // writes, "name=value"
  std::map<unsigned, std::deque<Pushed>> queue;
  std::map<unsigned, std::deque<std::uint32_t>> sizes;
  std::map<unsigned, std::uint32_t> done;
  std::map<unsigned, std::uint32_t> given;
  std::vector<std::pair<unsigned, std::uint32_t>> flush;  // links that hold data at a stop, and the number of bytes
};

class ScriptedCrorc {
 public:
  explicit ScriptedCrorc(unsigned channel = 0, const std::string& lock_file = {}) : channel_(channel) {
    namespace crorc = card_registers::crorc;
    auto function = std::make_unique<ScriptedFunction>(crorc::kPciId, crorc::kBars);
    f = function.get();
    f->words[{0, crorc::reg("firmware_hash").offset}] = 0x0de0c0de;
    f->before_read = [this](unsigned bar, std::uint64_t offset) {
      if (offset == crorc::reg("channel_csr").offset)
        f->words[{bar, offset}] = (toggles ^ 0U) | (answering && waiting ? crorc::kStatusNotEmpty.mask() : 0U);
      if (offset == crorc::reg("ddl_status").offset) waiting = false;
      if (offset == crorc::reg("superpage_push").offset) f->words[{bar, offset}] = pushed_bytes << 8 | (pushes & 0xff);
    };
    f->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      const auto found = crorc::kMap.at(0, static_cast<std::uint32_t>(offset));
      if (!found || bar != channel_) return;
      const auto name = found->description->name;
      if (name == "superpage_address_low" && loses_addresses > 0) {
        --loses_addresses;
        f->words[{bar, offset}] = ~value;
      }
      log.push_back(std::string(name) + "=" + std::to_string(value));
      if (name == "channel_csr") toggles ^= value;
      if (name == "ddl_command") waiting = true;
      if (name == "csr") queue.clear();
      if (name == "superpage_push") {
        const std::uint64_t high = f->words[{bar, crorc::reg("superpage_address_high").offset}];
        queue.push_back({high << 32 | f->words[{bar, crorc::reg("superpage_address_low").offset}], value});
        pushed_bytes = loses_size ? 0 : value;
        ++pushes;
      }
      if (name == "time_frame" && crorc::kFlush.of(value) != 0 && flush > 0 && !queue.empty()) complete(flush);
    };
    card = card_of(std::move(function), lock_file);
  }

  void complete(std::uint32_t bytes) { complete(bytes, count++); }
  void complete(std::uint32_t bytes, std::uint32_t with_count) {
    namespace crorc = card_registers::crorc;
    queue.pop_front();
    const std::uint64_t high = f->words[{channel_, crorc::reg("info_address_high").offset}];
    auto info = f->at(high << 32 | f->words[{channel_, crorc::reg("info_address_low").offset}], sizeof(crorc::Completion));
    const crorc::Completion completion{bytes, with_count & 0xff};
    std::memcpy(info.data(), &completion, sizeof completion);
  }

  ScriptedFunction* f = nullptr;
  std::unique_ptr<Card> card;
  std::vector<std::string> log;
  std::deque<Pushed> queue;
  std::uint32_t toggles = 0;
  std::uint32_t count = 0;
  std::uint32_t flush = 0;
  std::uint32_t pushed_bytes = 0;
  std::uint32_t pushes = 0;
  int loses_addresses = 0;  // number of writes of an address to lose
  bool loses_size = false;
  bool answering = true;
  bool waiting = false;

 private:
  unsigned channel_;
};

/// A FELIX with one descriptor that obeys Wupper's rules of circular memory.
class ScriptedFelix {
 public:
  explicit ScriptedFelix(const std::string& lock_file = {}, std::uint32_t block_bytes = 1024) {
    namespace felix = card_registers::felix;
    auto function = std::make_unique<ScriptedFunction>(felix::kPciIds[0], felix::kBars);
    f = function.get();
    f->words[{2, felix::reg("block_bytes").offset}] = block_bytes;
    f->words[{2, felix::reg("git_hash").offset}] = 0x0de0c0de;
    f->words[{2, felix::reg("register_map_version").offset}] = felix::kRegisterMapVersion;
    f->words[{0, felix::reg("dma_status").offset}] = 1;
    f->words[{0, felix::reg("dma_pointer_gap").offset}] = felix::kPointerGap;
    f->after_write = [this](unsigned bar, std::uint64_t offset, std::uint32_t value) {
      if (bar != 0) return;
      if (offset == felix::reg("dma_read_pointer").offset + 4) move_read_pointer(read("dma_read_pointer"));
      if (offset != felix::reg("dma_enable").offset || !obeys) return;
      enabled = (value & 1) != 0;
      // A disabled descriptor is at its start.
      write(read("dma_start"));
      even_dma = even_host = false;
      tell_status();
    };
    card = card_of(std::move(function), lock_file);
  }

  std::uint64_t read(const char* name) {
    const std::uint32_t offset = card_registers::felix::kMap.find(name)->offset;
    return f->words[{0, offset}] | static_cast<std::uint64_t>(f->words[{0, offset + 4}]) << 32;
  }
  /// Moves the card's write position.
  void write(std::uint64_t position) {
    const std::uint32_t offset = card_registers::felix::reg("dma_position").offset;
    f->words[{0, offset}] = static_cast<std::uint32_t>(position);
    f->words[{0, offset + 4}] = static_cast<std::uint32_t>(position >> 32);
  }
  /// Writes this number of bytes, with a wrap at the end of the ring.
  void advance(std::uint64_t bytes) {
    const std::uint64_t start = read("dma_start");
    const std::uint64_t size = read("dma_end") - start;
    const std::uint64_t next = read("dma_position") - start + bytes;
    if (next / size % 2 == 1) even_dma = !even_dma;
    tell_status();
    write(start + next % size);
  }
  /// Writes a block if the card may: the card stops at the read pointer only while the parities differ. False: it waits.
  bool write_block(std::uint64_t bytes = 1024) {
    if (!enabled || (even_dma != even_host && read("dma_position") == last_pointer_)) return false;
    advance(bytes);
    return true;
  }

  ScriptedFunction* f = nullptr;
  std::unique_ptr<Card> card;
  bool enabled = false;
  bool obeys = true;
  bool even_dma = false;
  bool even_host = false;

 private:
  void move_read_pointer(std::uint64_t pointer) {
    if (enabled && last_pointer_ > pointer + read("dma_pointer_gap")) even_host = !even_host;
    last_pointer_ = pointer;
    tell_status();
  }
  void tell_status() {
    f->words[{0, card_registers::felix::reg("dma_status").offset}] =
        (enabled ? 0U : 1U) | (even_dma ? 2U : 0U) | (even_host ? 4U : 0U);
  }
  std::uint64_t last_pointer_ = 0;
};

}  // namespace rodeo::card::doubles
