#include "card/operations/flash.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "card/card_wait.h"
#include "card/operations/require_type.h"
#include "card/pci/lock.h"
#include "card_registers/crorc.h"

namespace rodeo::card {

namespace crorc = card_registers::crorc;
using crorc::reg;

namespace {

constexpr std::uint64_t kFlashWords = std::uint64_t{1} << 24;
constexpr std::chrono::milliseconds kWordPatience{100};
constexpr std::chrono::milliseconds kLockPatience{2000};
constexpr std::chrono::seconds kErasePatience{10};  // a block takes up to 4 s

/// The chip behind flash_command and flash_data.
class Chip {
 public:
  explicit Chip(Card& card) : card_(card) {}

  Result<void> at(std::uint32_t address) { return command(crorc::kFlashSetAddress | crorc::kFlashAddress.in(0, address)); }
  Result<void> write(std::uint32_t word) { return command(crorc::kFlashBusWrite | word); }
  Result<std::uint16_t> read() {
    RODEO_TRY(command(crorc::kFlashBusRead));
    const auto data = RODEO_TRY(card_.read(reg("flash_data")));
    return static_cast<std::uint16_t>(data);
  }
  /// Writes commands one after the other at an address.
  Result<void> at(std::uint32_t address, std::initializer_list<std::uint32_t> words) {
    RODEO_TRY(at(address));
    for (const std::uint32_t word : words) RODEO_TRY(write(word));
    return {};
  }
  Result<std::uint16_t> word(std::uint32_t address) {
    RODEO_TRY(at(address, {crorc::kChipReadArray}));
    return read();
  }
  /// Waits until erasing or programming ends; the chip then reports its status.
  Result<void> finish(std::uint32_t address, std::chrono::nanoseconds patience, std::string_view what) {
    CardWait wait(patience);
    while (true) {
      const auto status = RODEO_TRY(read());
      if (status == crorc::kChipReady) return {};
      if ((status & crorc::kChipReady) != 0)
        return std::unexpected(Error{"card.flash",
                                     fmt::format("{} at word {:#x} failed: chip status {:#x}", what, address, status),
                                     card_.address().text(), "write again before the card is switched off"});
      if (wait.over())
        return std::unexpected(Error{"card.timeout", fmt::format("{} at word {:#x} does not end", what, address),
                                     card_.address().text(),
                                     "try once more; if it stays so, power-cycle the card before anything else is written"});
      std::this_thread::sleep_for(std::chrono::microseconds{10});
    }
  }

 private:
  Result<void> command(std::uint32_t value) {
    RODEO_TRY(card_.write(reg("flash_command"), value));
    CardWait wait(kWordPatience);
    while (true) {
      const auto ready = RODEO_TRY(card_.read(reg("flash_status")));
      if (ready != 0) return {};
      if (wait.over())
        return std::unexpected(Error{"card.timeout", "the flash interface does not become ready", card_.address().text(),
                                     "`rodeo card reset`, then try once more"});
    }
  }
  Card& card_;
};

Result<void> require_flash(const Card& card, std::uint32_t address, std::uint64_t words) {
  RODEO_TRY(require_type(card, CardType::crorc, "flash"));
  if (address < kFlashWords && words <= kFlashWords - address) return {};
  return std::unexpected(
      Error{"card.bad_setting",
            fmt::format("{} words from {:#x} reach beyond the flash of {:#x} words", words, address, kFlashWords),
            {},
            "fewer words, or an earlier address"});
}

Error interrupted() { return {"card.interrupted", "interrupted", {}, {}}; }

Result<bool> block_matches(Chip& chip, std::uint32_t address, std::span<const std::uint16_t> words, std::uint32_t* where) {
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const auto word = RODEO_TRY(chip.word(address + i));
    *where = address + i;
    if (word != words[i]) return false;
  }
  return true;
}

Result<void> program_block(Chip& chip, std::uint32_t address, std::span<const std::uint16_t> words) {
  RODEO_TRY(chip.at(address, {crorc::kChipClearStatus, crorc::kChipLockSetup, crorc::kChipConfirm, crorc::kChipReadStatus}));
  RODEO_TRY(chip.finish(address, kWordPatience, "unlocking the block"));
  RODEO_TRY(chip.at(address, {crorc::kChipEraseSetup, crorc::kChipConfirm}));
  RODEO_TRY(chip.finish(address, kErasePatience, "erasing the block"));
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0xffff) continue;  // an erased word has this value
    RODEO_TRY(chip.at(address + i, {crorc::kChipProgram, words[i]}));
    RODEO_TRY(chip.finish(address + i, kWordPatience, "programming a word"));
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint16_t>> read_flash(Card& card, std::uint32_t address, std::uint64_t words,
                                              const FlashProgress& progress) {
  RODEO_TRY(require_flash(card, address, words));
  Chip chip(card);
  std::vector<std::uint16_t> read;
  read.reserve(words);
  while (read.size() < words) {
    const auto word = RODEO_TRY(chip.word(address + static_cast<std::uint32_t>(read.size())));
    read.push_back(word);
    if (progress && !progress(read.size(), words)) return std::unexpected(interrupted());
  }
  return read;
}

Result<std::optional<std::uint32_t>> serial_of_flash(Card& card) {
  const auto alone = RODEO_TRY(card.lock(pci::kConfigurationByte, "the flash of " + card.address().text(), kLockPatience));
  const auto words = RODEO_TRY(read_flash(card, crorc::kFlashSerialWord, crorc::kFlashSerialDigits / 2 + 1));
  std::string text;
  for (const std::uint16_t word : words) text += {static_cast<char>(word >> 8), static_cast<char>(word & 0xff)};
  text.erase(0, 1);  // the number begins in the middle of a word
  std::uint32_t serial = 0;
  const auto end = std::from_chars(text.data(), text.data() + crorc::kFlashSerialDigits, serial).ptr;
  return end < text.data() + 3 || serial == 0 ? std::nullopt : std::optional(serial);
}

Result<FlashReport> write_flash(Card& card, std::uint32_t address, std::span<const std::uint16_t> words,
                                const FlashProgress& progress) {
  RODEO_TRY(require_flash(card, address, words.size()));
  if (address % crorc::kFlashBlockWords != 0)
    return std::unexpected(
        Error{"card.bad_setting",
              fmt::format("word {:#x} does not begin a block of {:#x} words", address, crorc::kFlashBlockWords),
              {},
              "firmware begins where its file says; blocks are written whole"});
  const auto alone = RODEO_TRY(card.lock(pci::kConfigurationByte, "the configuration of " + card.address().text()));
  Chip chip(card);
  FlashReport report;
  for (std::size_t done = 0; done < words.size();) {
    const auto block = words.subspan(done, std::min<std::size_t>(crorc::kFlashBlockWords, words.size() - done));
    const std::uint32_t begin = address + static_cast<std::uint32_t>(done);
    ++report.blocks;
    std::uint32_t where = begin;
    auto same = RODEO_TRY(block_matches(chip, begin, block, &where));
    if (!same) {
      ++report.blocks_written;
      RODEO_TRY(program_block(chip, begin, block));
      same = RODEO_TRY(block_matches(chip, begin, block, &where));
      if (!same)
        return std::unexpected(Error{"card.flash", fmt::format("word {:#x} does not hold what was written", where),
                                     card.address().text(), "write again before the card is switched off"});
    }
    done += block.size();
    if (progress && !progress(done, words.size())) return std::unexpected(interrupted());
  }
  return report;
}

}  // namespace rodeo::card
