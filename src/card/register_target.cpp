#include "card/register_target.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "base/nearest.h"
#include "card/card.h"

namespace rodeo::card {

using card_registers::Access;
using card_registers::Register;

namespace {

std::unexpected<Error> unknown(const RegisterSpace& space, std::string_view text) {
  const std::string_view stem = text.substr(0, text.find('['));
  std::vector<std::string> names;
  for (const Register& known : space.map->registers()) {
    if (known.name == stem) {
      return std::unexpected(
          Error{"card.unknown_register",
                known.total() > 1 ? fmt::format("{} has the places {}[0] to {}[{}]", text, stem, stem, known.total() - 1)
                                  : fmt::format("{} is one register: it takes no [index]", stem),
                std::string(space.map->card()), "rodeo card reg list shows all"});
    }
    names.emplace_back(known.name);
  }
  const std::string meant = base::did_you_mean(stem, names);
  return std::unexpected(Error{"card.unknown_register", fmt::format("{} is neither a register nor a byte address", text),
                               std::string(space.map->card()), meant.empty() ? "rodeo card reg list shows all" : meant});
}

}  // namespace

std::string RegisterTarget::name() const {
  if (description == nullptr) return {};
  return description->total() > 1 ? fmt::format("{}[{}]", description->name, index) : std::string(description->name);
}

bool RegisterTarget::harmless_to_read() const {
  return description != nullptr && (description->access == Access::read || description->access == Access::read_write);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<RegisterTarget> find_register(const RegisterSpace& space, std::string_view text, std::optional<unsigned> bar) {
  const auto address = parse_number(text);
  if (!address) {
    const auto found = space.map->find(text);
    if (!found) return unknown(space, text);
    const unsigned home = space.same_in_every_bar ? bar.value_or(0) : found->description->bar;
    if (bar && *bar != home) {
      return std::unexpected(Error{"card.bad_access", fmt::format("{} is a register of BAR {}, not {}", text, home, *bar),
                                   std::string(space.map->card()), fmt::format("leave --bar out, or say --bar {}", home)});
    }
    return RegisterTarget{home, found->offset, found->description->width_bytes, found->description, found->index};
  }
  if (!bar) {
    return std::unexpected(Error{"card.bad_access",
                                 fmt::format("the byte address {} needs a BAR", text),
                                 {},
                                 "say which with --bar N, or name the register"});
  }
  if (*address > UINT32_MAX) {
    return std::unexpected(Error{"card.bad_access",
                                 fmt::format("the byte address {} lies beyond every BAR", text),
                                 {},
                                 "`rodeo card reg list` shows the declared registers"});
  }
  const unsigned width = *address % space.word_bytes == 0 ? space.word_bytes : 4;
  RegisterTarget target{*bar, static_cast<std::uint32_t>(*address), width, nullptr, 0};
  if (const auto found = space.map->at(space.same_in_every_bar ? 0 : *bar, target.offset)) {
    target.description = found->description;
    target.index = found->index;
    target.width_bytes = found->description->width_bytes;
  }
  if (target.offset % target.width_bytes != 0) {
    return std::unexpected(
        Error{"card.bad_access",
              fmt::format("the byte address {:#x} is not a multiple of {}", target.offset, target.width_bytes),
              {},
              "addresses are in bytes: word N is at N x 4"});
  }
  return target;
}

Result<void> may_write(const RegisterTarget& target, bool force) {
  if (target.description == nullptr || target.description->access != Access::read || force) return {};
  return std::unexpected(Error{
      "card.read_only", target.name() + " can only be read", {}, "--force, or force in a program, writes it nevertheless"});
}

Result<std::uint64_t> read_register(const Bar& bar, const RegisterTarget& target) {
  if (target.width_bytes == 8) return bar.read64(target.offset);
  return bar.read32(target.offset);
}

Result<void> write_register(const Bar& bar, const RegisterTarget& target, std::uint64_t value) {
  if (target.width_bytes == 8) return bar.write64(target.offset, value);
  if (value > UINT32_MAX) {
    return std::unexpected(Error{"card.bad_access", fmt::format("{:#x} does not fit into 32 bits", value), target.name(),
                                 "registers of this card have 32 bits"});
  }
  return bar.write32(target.offset, static_cast<std::uint32_t>(value));
}

Result<std::uint64_t> read_register(Card& card, const RegisterTarget& target) {
  const auto bar = RODEO_TRY(card.bar(target.bar));
  const auto value = RODEO_TRY(read_register(*bar, target));
  if (value == (target.width_bytes == 8 ? UINT64_MAX : UINT32_MAX)) RODEO_TRY(card.check_answers());
  return value;
}

Result<void> write_register(Card& card, const RegisterTarget& target, std::uint64_t value, bool force) {
  RODEO_TRY(may_write(target, force));
  RODEO_TRY(card.check_map());
  const auto bar = RODEO_TRY(card.bar(target.bar));
  return write_register(*bar, target, value);
}

Result<std::uint64_t> modify_register(Card& card, const RegisterTarget& target, unsigned position, unsigned width,
                                      std::uint64_t value, bool force) {
  RODEO_TRY(may_write(target, force));
  RODEO_TRY(card.check_map());
  RODEO_TRY(with_bits(target, 0, position, width, value));
  const auto alone = RODEO_TRY(card.lock_word(target.bar, target.offset));
  const auto before = RODEO_TRY(read_register(card, target));
  const auto changed = RODEO_TRY(with_bits(target, before, position, width, value));
  RODEO_TRY(write_register(card, target, changed, force));
  return changed;
}

Result<std::uint64_t> with_bits(const RegisterTarget& target, std::uint64_t word, unsigned position, unsigned width,
                                std::uint64_t value) {
  const unsigned bits = 8 * target.width_bytes;
  if (width == 0 || position >= bits || width > bits - position) {
    return std::unexpected(Error{"card.bad_access",
                                 fmt::format("{} bits from bit {} do not fit into {} bits", width, position, bits),
                                 target.name(), "a lower --position, or a smaller --width"});
  }
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (value > mask) {
    return std::unexpected(Error{"card.bad_access", fmt::format("{:#x} does not fit into {} bits", value, width),
                                 target.name(), "a smaller value, or a greater --width"});
  }
  return (word & ~(mask << position)) | (value << position);
}

}  // namespace rodeo::card
