#include "card/card.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/sentence.h"
#include "card/pci/lock.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;
using card_registers::Field;
using card_registers::PciId;
using card_registers::Register;

constexpr std::chrono::milliseconds kModifyPatience{2000};

Result<PciId> read_id(pci::Function& function) {
  PciId id;
  RODEO_TRY(function.read(pci::kConfigurationRegion, 0, std::as_writable_bytes(std::span(&id.vendor, 1))));
  RODEO_TRY(function.read(pci::kConfigurationRegion, 2, std::as_writable_bytes(std::span(&id.device, 1))));
  return id;
}

}  // namespace

std::string_view name_of(CardType type) {
  switch (type) {
    case CardType::crorc: return "C-RORC";
    case CardType::cru: return "CRU";
    case CardType::felix: return "FELIX";
    case CardType::unknown: break;
  }
  return "unknown";
}

CardType type_of(const PciId& id) {
  if (id == cru::kPciId || id == cru::kDevelopmentBoardPciId) return CardType::cru;
  if (id == crorc::kPciId) return CardType::crorc;
  if (std::ranges::find(felix::kPciIds, id) != std::end(felix::kPciIds)) return CardType::felix;
  if (std::ranges::find(felix::kOlderPciIds, id) != std::end(felix::kOlderPciIds)) return CardType::felix;
  return CardType::unknown;
}

std::optional<std::uint16_t> register_map_of(std::string_view name) {
  return name == felix::kRegisterMapName ? std::optional(felix::kRegisterMapVersion) : std::nullopt;
}

const card_registers::RegisterMap* map_of(CardType type) {
  switch (type) {
    case CardType::crorc: return &crorc::kMap;
    case CardType::cru: return &cru::kMap;
    case CardType::felix: return &felix::kMap;
    case CardType::unknown: break;
  }
  return nullptr;
}

Result<std::unique_ptr<Card>> Card::open(const pci::FoundFunction& found) {
  auto function = RODEO_TRY(pci::open_function(found));
  return adopt(std::move(function), found);
}

Result<std::unique_ptr<Card>> Card::adopt(std::unique_ptr<pci::Function> function, const pci::FoundFunction& found) {
  const PciId id = RODEO_TRY_WITHIN(found.id ? Result<PciId>(*found.id) : read_id(*function), "cannot read the PCI id");
  const CardType type = type_of(id);
  if (type == CardType::unknown && !found.any_device)
    return std::unexpected(Error{"card.unknown_type",
                                 fmt::format("{:04x}:{:04x} is not a known readout card", id.vendor, id.device),
                                 found.address.text(), "`rodeo card list` shows the readout cards"});
  std::unique_ptr<Card> card(new Card(std::move(function), found, type));
  card->found_.id = id;
  // check_answers() below finds out whether the card answers at all.
  const auto look = [&](const Register& reg) -> Result<std::uint32_t> {
    const auto window = RODEO_TRY(card->bar(reg.bar));
    return RODEO_TRY_WITHIN(window->read32(reg.offset), fmt::format("cannot read {}", reg.name));
  };
  switch (type) {
    case CardType::cru: {
      const auto endpoint = RODEO_TRY(look(cru::reg("endpoint_id")));
      if (endpoint == 0) card->endpoint_ = 0;
      if (endpoint == cru::kEndpointOneId) card->endpoint_ = 1;
      break;
    }
    case CardType::felix: {
      card->endpoint_ = id == felix::kPciIds[1] || id == felix::kOlderPciIds[1] ? 1U : 0U;
      card->map_version_ = static_cast<std::uint16_t>(RODEO_TRY(look(felix::reg("register_map_version"))));
      break;
    }
    case CardType::crorc: card->endpoint_ = 0; break;
    case CardType::unknown: break;
  }
  if (!found.unasked) RODEO_TRY(card->check_answers());
  return card;
}

Result<void> Card::check_answers() {
  const Register* probe = nullptr;
  switch (type_) {
    case CardType::cru: probe = &cru::reg("firmware_hash"); break;
    case CardType::crorc: probe = &crorc::reg("firmware_hash"); break;
    case CardType::felix: probe = &felix::reg("register_map_version"); break;
    case CardType::unknown: return {};
  }
  const auto window = RODEO_TRY(bar(probe->bar));
  const std::uint32_t word = RODEO_TRY(window->read32(probe->offset));
  if (word != UINT32_MAX) return {};
  return std::unexpected(Error{"card.all_ones", "its registers read as all ones: the card does not answer", address().text(),
                               "look at its power and its slot"});
}

bool Card::supports_map() const {
  return type_ != CardType::felix || found_.register_map.value_or(map_version_.value_or(0)) == felix::kRegisterMapVersion;
}

Result<void> Card::check_map() const {
  if (supports_map()) return {};
  const std::uint16_t version = found_.register_map.value_or(map_version_.value_or(0));
  return std::unexpected(Error{
      "card.unknown_map", fmt::format("its register map {}.{} is not known", version >> 8, version & 0xff), address().text(),
      fmt::format(
          "if the card has the registers of map {}, use --register-map {} (docs/reference/card-registers.md); reading by "
          "address needs no map",
          felix::kRegisterMapName, felix::kRegisterMapName)});
}

/// The registers of BAR 0 and the map version have the same place in every map.
Result<void> Card::check_known(const Register& reg) const {
  if (type_ != CardType::felix || reg.bar == 0 || reg.name == "register_map_version") return {};
  return check_map();
}

const card_registers::RegisterMap& Card::map() const {
  static const card_registers::RegisterMap kNothingDeclared("unknown", {});
  if (!supports_map()) return felix::kCommonMap;
  const auto* known = map_of(type_);
  return known != nullptr ? *known : kNothingDeclared;
}

Result<const Bar*> Card::bar(unsigned number) {
  if (number >= bars_.size())
    return std::unexpected(Error{"card.no_region", fmt::format("there is no BAR {}", number), address().text(),
                                 "`rodeo card reg list` shows which BARs have registers"});
  const auto held = RODEO_TRY(mutex_.hold());
  if (bars_[number] == nullptr) {
    auto opened = RODEO_TRY(Bar::open(*function_, number));
    bars_[number] = std::make_unique<Bar>(std::move(opened));
  }
  return bars_[number].get();
}

Result<void> Card::check_index(const Register& reg, std::uint32_t index) const {
  const std::uint32_t count = type_ == CardType::crorc ? crorc::kLinks : reg.total();
  if (index < count) return {};
  return std::unexpected(Error{"card.bad_access",
                               fmt::format("{} has {}, not {}", reg.name, base::counted(count, "place"), index + 1),
                               address().text()});
}

Result<std::uint64_t> Card::read64(const Register& reg, std::uint32_t index) {
  RODEO_TRY(check_index(reg, index));
  RODEO_TRY_WITHIN(check_known(reg), fmt::format("cannot read {}", reg.name));
  const auto window = RODEO_TRY(bar(bar_of(reg, index)));
  std::uint64_t value = 0;
  if (reg.width_bytes == 8) {
    value = RODEO_TRY_WITHIN(window->read64(offset_of(reg, index)), fmt::format("cannot read {}", reg.name));
  } else {
    value = RODEO_TRY_WITHIN(window->read32(offset_of(reg, index)), fmt::format("cannot read {}", reg.name));
  }
  // All ones: the card may be gone, or the register may have this value.
  if (value == (reg.width_bytes == 8 ? UINT64_MAX : UINT32_MAX)) RODEO_TRY(check_answers());
  return value;
}

Result<std::uint32_t> Card::read(const Register& reg, std::uint32_t index) {
  const auto value = RODEO_TRY(read64(reg, index));
  return static_cast<std::uint32_t>(value);
}

Result<void> Card::write(const Register& reg, std::uint64_t value, std::uint32_t index) {
  RODEO_TRY(check_index(reg, index));
  RODEO_TRY_WITHIN(check_known(reg), fmt::format("cannot write {}", reg.name));
  const auto window = RODEO_TRY(bar(bar_of(reg, index)));
  RODEO_TRY_WITHIN(reg.width_bytes == 8 ? window->write64(offset_of(reg, index), value)
                                        : window->write32(offset_of(reg, index), static_cast<std::uint32_t>(value)),
                   fmt::format("cannot write {}", reg.name));
  return {};
}

Result<std::uint32_t> Card::modify(const Register& reg, Field field, std::uint32_t value, std::uint32_t index) {
  RODEO_TRY(check_index(reg, index));
  RODEO_TRY_WITHIN(check_known(reg), fmt::format("cannot change {}", reg.name));
  return RODEO_TRY_WITHIN(modify_at(bar_of(reg, index), offset_of(reg, index), field, value),
                          fmt::format("cannot change {}", reg.name));
}

Result<std::optional<pci::ByteLock>> Card::lock(unsigned byte, const std::string& what, std::chrono::milliseconds patience) {
  auto node = function_->lock_node();
  // The keeper is dead: the remaining owners lock the file.
  if (!node && node.error().code == "card.gone" && !found_.lock_file.empty()) node = pci::LockNode{};
  if (!node) return std::unexpected(node.error());
  if (!node->file && found_.lock_file.empty()) return std::nullopt;
  return RODEO_TRY(node->file ? pci::ByteLock::acquire(std::move(*node), byte, what, found_.lock_file, patience)
                              : pci::ByteLock::acquire(found_.lock_file, byte, what, patience));
}

Result<std::optional<pci::ByteLock>> Card::lock_word(unsigned number, std::uint64_t offset) {
  // Enabling a descriptor does not wait for a configuration, which may take seconds.
  if (type_ == CardType::felix && number == 0 && offset == felix::reg("dma_enable").offset)
    return lock(pci::kDescriptorsByte, "the switch of its DMA descriptors", kModifyPatience);
  return lock(pci::kConfigurationByte, "the card's configuration", kModifyPatience);
}

Result<std::uint32_t> Card::modify_at(unsigned number, std::uint64_t offset, Field field, std::uint32_t value) {
  if (field.width == 0 || field.low > 31 || field.width > 32 - field.low)
    return std::unexpected(Error{"card.bad_access",
                                 fmt::format("{} bits from bit {} are not within 32", field.width, field.low),
                                 address().text(), "position and width together reach bit 31 at most"});
  if (field.width < 32 && (value >> field.width) != 0)
    return std::unexpected(Error{"card.bad_access", fmt::format("{:#x} does not fit into {} bits", value, field.width),
                                 address().text(), "a smaller value, or a greater width"});
  const auto window = RODEO_TRY(bar(number));
  const auto alone = RODEO_TRY(lock_word(number, offset));
  const auto word = RODEO_TRY(window->read32(offset));
  if (word == UINT32_MAX) RODEO_TRY(check_answers());
  const std::uint32_t changed = field.in(word, value);
  RODEO_TRY(window->write32(offset, changed));
  return changed;
}

}  // namespace rodeo::card
