#include "card/bar.h"

#include <fmt/core.h>

namespace rodeo::card {

Result<Bar> Bar::open(pci::Function& function, unsigned number) {
  const auto region = RODEO_TRY(number <= 5 ? function.region(number) : Result<pci::FunctionRegion>(pci::FunctionRegion{}));
  if (region.bytes == 0)
    return std::unexpected(Error{"card.no_region", fmt::format("the card has no BAR {}", number), function.address().text(),
                                 "`rodeo card reg list` shows which BARs have registers"});
  Bar bar;
  bar.function_ = &function;
  bar.number_ = number;
  bar.bytes_ = region.bytes;
  for (const pci::MappableRange& range : region.mappable) {
    // Ranges that cannot be mapped stay reachable by trapped accesses.
    if (const auto registers = function.map(number, range)) bar.windows_.push_back({range.offset, *registers});
  }
  return bar;
}

template <typename Word>
Result<Word> Bar::read(std::uint64_t offset) const {
  if (const auto place = mapped<Word>(offset)) return place.load();
  Word value = 0;
  RODEO_TRY(function_->read(number_, offset, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

template <typename Word>
Result<void> Bar::write(std::uint64_t offset, Word value) const {
  if (const auto place = mapped<Word>(offset)) {
    place.store(value);
    return {};
  }
  return function_->write(number_, offset, std::as_bytes(std::span(&value, 1)));
}

Result<std::uint32_t> Bar::read32(std::uint64_t offset) const { return read<std::uint32_t>(offset); }
Result<std::uint64_t> Bar::read64(std::uint64_t offset) const { return read<std::uint64_t>(offset); }
Result<void> Bar::write32(std::uint64_t offset, std::uint32_t value) const { return write(offset, value); }
Result<void> Bar::write64(std::uint64_t offset, std::uint64_t value) const { return write(offset, value); }

}  // namespace rodeo::card
