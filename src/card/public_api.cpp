// Implements include/rodeo/card.h with the driver's classes: error results become exceptions.
#include <utility>

#include <fmt/format.h>

#include "card/dma/span_reader.h"
#include "card/enumeration.h"
#include "card/firmware.h"
#include "card/numa.h"
#include "card/pci/owner_process.h"
#include "card/register_target.h"
#include "card_registers/felix.h"
#include "rodeo/card.h"

namespace rodeo {
namespace {

template <typename T>
T value_or_throw(Result<T>&& result) {
  if (!result) throw CardError(result.error().code, result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

CardInfo info_of(const card::CardEntry& entry) {
  CardInfo info;
  info.sequence = entry.sequence;
  info.type = card::name_of(entry.type);
  info.address = entry.function.address.text();
  info.serial = entry.identity.serial;
  info.endpoint = entry.identity.endpoint;
  info.firmware = entry.identity.firmware_hash;
  if (info.firmware) info.firmware_name = card::FirmwareTable::built_in().name_of(*info.firmware);
  info.numa_node = entry.function.numa_node;
  info.problem = entry.problem;
  return info;
}

}  // namespace

std::vector<CardInfo> list_cards() {
  std::vector<CardInfo> cards;
  for (const card::CardEntry& entry : card::list_cards()) cards.push_back(info_of(entry));
  return cards;
}

struct CardHandle::Inside {
  std::unique_ptr<card::Card> opened;
  CardInfo info;

  card_registers::FoundRegister find(std::string_view name) const {
    const auto found = opened->map().find(name);
    const auto bracket = name.find('[');
    if (found) return *found;
    // The index of a C-RORC's register is its channel; the access checks it.
    if (const auto row = opened->map().find(name.substr(0, bracket));
        row && opened->type() == card::CardType::crorc && bracket != std::string_view::npos) {
      const std::string_view digits = name.substr(bracket + 1);
      if (digits.size() == 2 && digits[1] == ']' && digits[0] >= '0' && digits[0] <= '9')
        return {row->description, static_cast<std::uint32_t>(digits[0] - '0'), row->offset};
    }
    throw CardError("card.bad_access", "error[card.bad_access]: " + std::string(name) + " is not a register of a " +
                                           std::string(opened->map().card()));
  }

  /// Checks writes by address like writes by name. The upper half of a 64-bit register belongs to it.
  void check_write(unsigned bar, std::uint64_t offset, bool force) const {
    value_or_throw(opened->check_map());
    if (offset > UINT32_MAX) return;
    const unsigned home = opened->type() == card::CardType::crorc ? 0 : bar;
    auto found = opened->map().at(home, static_cast<std::uint32_t>(offset));
    if (!found && offset >= 4) {
      found = opened->map().at(home, static_cast<std::uint32_t>(offset - 4));
      if (found && found->description->width_bytes != 8) found.reset();
    }
    if (found) value_or_throw(card::may_write({.description = found->description, .index = found->index}, force));
  }
};

CardHandle::CardHandle(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
CardHandle::CardHandle(CardHandle&&) noexcept = default;
CardHandle& CardHandle::operator=(CardHandle&&) noexcept = default;
CardHandle::~CardHandle() = default;

CardHandle CardHandle::open(std::string_view id) { return open(id, {}); }

CardHandle CardHandle::open(std::string_view id, std::string_view register_map) {
  const auto map = card::register_map_of(register_map);
  if (!register_map.empty() && !map)
    throw CardError("card.unknown_map",
                    fmt::format("error[card.unknown_map]: `{}` is not a known register map; the known one is {}",
                                register_map, card_registers::felix::kRegisterMapName));
  auto entry = value_or_throw(card::find_card(id));
  // Do not ask a card again that was silent in the search: it would take as long once more.
  if (!entry.unanswered.code.empty()) throw CardError(entry.unanswered.code, entry.unanswered.message());
  auto inside = std::make_unique<Inside>();
  inside->info = info_of(entry);
  entry.function.register_map = map;
  inside->opened = value_or_throw(card::Card::open(entry.function));
  return CardHandle(std::move(inside));
}

card::Card& card::inside_of(CardHandle& handle) { return *handle.inside_->opened; }

const CardInfo& CardHandle::info() const { return inside_->info; }

std::uint32_t CardHandle::read(unsigned bar, std::uint64_t offset) {
  const std::uint32_t value = value_or_throw(value_or_throw(inside_->opened->bar(bar))->read32(offset));
  if (value == UINT32_MAX) value_or_throw(inside_->opened->check_answers());
  return value;
}
void CardHandle::write(unsigned bar, std::uint64_t offset, std::uint32_t value, bool force) {
  inside_->check_write(bar, offset, force);
  value_or_throw(value_or_throw(inside_->opened->bar(bar))->write32(offset, value));
}
std::uint32_t CardHandle::modify(unsigned bar, std::uint64_t offset, unsigned low, unsigned width, std::uint32_t value,
                                 bool force) {
  inside_->check_write(bar, offset, force);
  return value_or_throw(inside_->opened->modify_at(bar, offset, {low, width}, value));
}
std::uint64_t CardHandle::read(std::string_view name) {
  const auto found = inside_->find(name);
  return value_or_throw(inside_->opened->read64(*found.description, found.index));
}
void CardHandle::write(std::string_view name, std::uint64_t value, bool force) {
  const auto found = inside_->find(name);
  value_or_throw(card::may_write(
      {.width_bytes = found.description->width_bytes, .description = found.description, .index = found.index}, force));
  if (found.description->width_bytes == 4 && value > UINT32_MAX)
    throw CardError("card.bad_access",
                    "error[card.bad_access]: the value does not fit into the 32 bits of " + std::string(name));
  value_or_throw(inside_->opened->write(*found.description, value, found.index));
}

struct CardDma::Inside {
  card::pci::OwnMutex mutex{"DMA channel"};
  card::ReaderPlace place;
  std::optional<card::StayAtCard> stay;
  std::shared_ptr<card::DmaMemory> memory;
  std::unique_ptr<card::DmaChannel> channel;  // null once closed
  std::optional<card::SpanReader> reader;

  Inside() = default;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { (void)close(); }

  auto hold() { return value_or_throw(mutex.hold()); }
  bool running() const { return channel != nullptr && channel->state() == card::DmaState::started; }
  /// Only the pinned thread can get its CPUs back: the reader does this at its next call.
  void unpin_reader() {
    if (stay && stay->may_end_here()) stay.reset();
  }
  Result<void> close() {
    const auto held = mutex.hold();
    unpin_reader();
    if (channel == nullptr) return {};
    auto stopped = held ? channel->stop() : Result<void>{};
    reader.reset();
    channel.reset();
    return stopped;
  }
};

CardDma::CardDma(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
CardDma::CardDma(CardDma&&) noexcept = default;
CardDma& CardDma::operator=(CardDma&&) noexcept = default;
CardDma::~CardDma() = default;

CardDma CardDma::open(CardHandle& handle, const CardDmaOptions& options) {
  const auto source = card::data_source_of(options.source);
  if (!source) throw CardError("card.bad_dma", "error[card.bad_dma]: there is no data source " + options.source);
  auto inside = std::make_unique<Inside>();
  inside->place = value_or_throw(card::reader_place(options.numa, handle.inside_->info.numa_node));
  const card::StayAtCard here(inside->place);
  inside->memory =
      std::make_shared<card::DmaMemory>(value_or_throw(card::DmaMemory::create(options.buffer_bytes, inside->place.node)));
  inside->channel = value_or_throw(card::DmaChannel::open(*handle.inside_->opened, options.channel, inside->memory->shared(),
                                                          {.source = *source, .check_firmware = options.check_firmware}));
  inside->reader = value_or_throw(card::SpanReader::create(*inside->channel, options.superpage_bytes));
  return CardDma(std::move(inside));
}

void CardDma::start() {
  const auto held = inside_->hold();
  if (!inside_->reader) throw CardError("card.closed", "error[card.closed]: the DMA channel was closed: open it again");
  value_or_throw(inside_->reader->start());
}

std::optional<CardSpan> CardDma::next() {
  const auto held = inside_->hold();
  if (!inside_->running()) inside_->unpin_reader();
  if (!inside_->reader) return std::nullopt;
  if (!inside_->stay && inside_->running()) inside_->stay.emplace(inside_->place);
  return value_or_throw(inside_->reader->next());
}

void CardDma::release_before(std::uint64_t superpage) {
  const auto held = inside_->hold();
  if (inside_->reader) value_or_throw(inside_->reader->release_before(superpage));
}
void CardDma::stop() {
  const auto held = inside_->hold();
  inside_->unpin_reader();
  if (inside_->reader) value_or_throw(inside_->reader->stop());
}
void CardDma::close() { value_or_throw(inside_->close()); }

bool CardDma::running() const { return inside_->running(); }
const std::string& CardDma::place() const { return inside_->place.description; }
std::shared_ptr<const void> CardDma::memory() const { return inside_->memory; }

}  // namespace rodeo
