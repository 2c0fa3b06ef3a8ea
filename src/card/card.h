// An open readout card: its type, its registers by declared name, its BARs. Configuration and monitoring may open a card
// many times at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "card/bar.h"
#include "card/pci/found_function.h"
#include "card/pci/lock.h"
#include "card/pci/owner_process.h"
#include "card_registers/register_map.h"

namespace rodeo::card {

/// Cards are numbered in this order: #0 is the first C-RORC, if there is one.
enum class CardType : unsigned char { crorc, cru, felix, unknown };

/// "C-RORC", "CRU", "FELIX", "unknown".
std::string_view name_of(CardType type);
CardType type_of(const card_registers::PciId& id);
/// A register map of FELIX by its name, "254.0"; nothing if the map is not known.
std::optional<std::uint16_t> register_map_of(std::string_view name);
/// The declared registers; nullptr for an unknown card.
const card_registers::RegisterMap* map_of(CardType type);

/// For any thread. Each call waits at most as long as the function's back end does. Errors name the register. In a forked
/// child each access is card.forked.
class Card {
 public:
  /// Error card.unknown_type if the PCI id is not known, unless `found.any_device` is set: then the card has BARs and no
  /// declared registers. Error card.all_ones if the card does not answer, unless `found.unasked` is set.
  static Result<std::unique_ptr<Card>> open(const pci::FoundFunction& found);
  /// Takes a function that is already open.
  static Result<std::unique_ptr<Card>> adopt(std::unique_ptr<pci::Function> function, const pci::FoundFunction& found);

  CardType type() const { return type_; }
  const pci::Address& address() const { return function_->address(); }
  const pci::FoundFunction& found() const { return found_; }
  pci::Function& function() { return *function_; }
  /// Takes the kernel lock on a byte (lock.h) of the function's own node or, without a node, of its lock file. Nothing for a
  /// card that has neither. Error card.locked names the owner if it is known.
  Result<std::optional<pci::ByteLock>> lock(unsigned byte, const std::string& what, std::chrono::milliseconds patience = {});
  const card_registers::RegisterMap& map() const;
  /// 0 or 1; nothing if the card reports neither.
  std::optional<unsigned> endpoint() const { return endpoint_; }
  /// endpoint() or 0.
  unsigned endpoint_or_zero() const { return endpoint_.value_or(0); }

  /// Opened at first use; lives as long as the card.
  Result<const Bar*> bar(unsigned number);

  // Access by declared register, at the register's width. `index` counts within a row; for a C-RORC it is the channel.
  Result<std::uint64_t> read64(const card_registers::Register& reg, std::uint32_t index = 0);
  Result<std::uint32_t> read(const card_registers::Register& reg, std::uint32_t index = 0);
  Result<void> write(const card_registers::Register& reg, std::uint64_t value, std::uint32_t index = 0);
  /// Reads a register, changes one field and writes it back, under a lock against other processes that modify this card.
  /// Returns the written word.
  Result<std::uint32_t> modify(const card_registers::Register& reg, card_registers::Field field, std::uint32_t value,
                               std::uint32_t index = 0);
  /// Modifies any 32-bit word like modify(). The field has 1 to 32 bits and lies within the word, else card.bad_access.
  Result<std::uint32_t> modify_at(unsigned bar, std::uint64_t offset, card_registers::Field field, std::uint32_t value);
  /// Takes the lock for changing a part of a word: hold it from the read to the write. Waits for two seconds, then returns
  /// card.locked.
  Result<std::optional<pci::ByteLock>> lock_word(unsigned bar, std::uint64_t offset);

  /// Error card.all_ones if the card does not answer: a register that is never all ones reads as all ones.
  Result<void> check_answers();
  /// Error card.unknown_map if the places of the registers in BAR 2 are not known: a FELIX with an unknown map. Called
  /// before every access to a declared register of BAR 2, every write, and DMA.
  Result<void> check_map() const;
  /// The map version of a FELIX: major << 8 | minor.
  std::optional<std::uint16_t> map_version() const { return map_version_; }

  /// BAR number of a register.
  unsigned bar_of(const card_registers::Register& reg, std::uint32_t index) const {
    return type_ == CardType::crorc ? index : reg.bar;
  }
  /// Offset in its BAR.
  std::uint32_t offset_of(const card_registers::Register& reg, std::uint32_t index) const {
    return type_ == CardType::crorc ? reg.offset : reg.at(index);
  }

 private:
  Card(std::unique_ptr<pci::Function> function, pci::FoundFunction found, CardType type)
      : function_(std::move(function)), found_(std::move(found)), type_(type) {}
  bool supports_map() const;
  Result<void> check_known(const card_registers::Register& reg) const;
  Result<void> check_index(const card_registers::Register& reg, std::uint32_t index) const;

  std::unique_ptr<pci::Function> function_;
  pci::FoundFunction found_;
  CardType type_;
  std::optional<unsigned> endpoint_;
  std::optional<std::uint16_t> map_version_;
  pci::OwnMutex mutex_{function_->address().text()};
  std::array<std::unique_ptr<Bar>, 6> bars_;
};

}  // namespace rodeo::card
