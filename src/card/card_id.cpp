#include "card/card_id.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

template <typename Number>
bool read_decimal(std::string_view text, std::size_t least, std::size_t most, Number& number) {
  if (text.size() < least || text.size() > most) return false;
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return false;
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

}  // namespace

Result<CardId> parse_card_id(std::string_view text) {
  const std::string_view whole = text;
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(Error{
        "card.bad_id", fmt::format("{} does not name a card: {}", whole, why), "",
        "write a PCI address (3b:00.0), a place in the list of cards (#2), or a serial number with three to five digits "
        "and perhaps the endpoint (0233:1)"});
  };
  constexpr std::string_view kBlanks = " \t";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return wrong("it is empty");
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);

  if (text.front() == '#') {
    SequenceId id;
    if (!read_decimal(text.substr(1), 1, 4, id.number)) return wrong("# is followed by one to four digits");
    return id;
  }
  if (text.find('.') != std::string_view::npos) {
    const auto address = pci::Address::parse(text);
    if (!address) return wrong(address.error().what);
    return *address;
  }
  SerialId id;
  const auto colon = text.find(':');
  if (!read_decimal(text.substr(0, colon), 3, 5, id.serial))
    return wrong("a serial number has three to five decimal digits");
  if (colon != std::string_view::npos && (!read_decimal(text.substr(colon + 1), 1, 1, id.endpoint) || id.endpoint > 1))
    return wrong("the endpoint behind the colon is 0 or 1");
  return id;
}

}  // namespace rodeo::card
