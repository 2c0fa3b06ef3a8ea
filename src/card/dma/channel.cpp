#include "card/dma/channel.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "base/sentence.h"
#include "card/dma/crorc_channel.h"
#include "card/dma/cru_channel.h"
#include "card/dma/data_taking.h"
#include "card/dma/felix_channel.h"

namespace rodeo::card {
namespace {

constexpr std::array<std::string_view, 5> kSources{"fee", "ddg", "internal", "siu", "diu"};

}  // namespace

std::string_view text_of(PushStatus status) {
  switch (status) {
    case PushStatus::done: return "done";
    case PushStatus::not_started: return "the channel is not started";
    case PushStatus::empty: return "size 0";
    case PushStatus::not_a_multiple: return "size not a multiple of 32 KiB, or of the card's blocks";
    case PushStatus::outside: return "not within the registered buffer";
    case PushStatus::misaligned: return "offset not a multiple of 4";
    case PushStatus::too_large: return "larger than the card takes";
    case PushStatus::not_contiguous: return "spans a gap of the memory as the card sees it";
    case PushStatus::out_of_order: return "does not follow the one before it in the ring";
    case PushStatus::full: return "the transfer queue, or the ring of a FELIX, is full";
  }
  return "";
}

std::string_view name_of(DmaState state) {
  return state == DmaState::stopped ? "stopped" : state == DmaState::started ? "started" : "failed";
}

std::string_view name_of(DataSource source) { return kSources[static_cast<std::size_t>(source)]; }

std::optional<DataSource> data_source_of(std::string_view name) {
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    if (std::ranges::equal(name, kSources[i], {},
                           [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }))
      return static_cast<DataSource>(i);
  }
  return std::nullopt;
}

Result<void> DmaChannel::check(const Card& card, unsigned channel, DataSource source) {
  RODEO_TRY(card.check_map());
  const auto bad = [&](std::string what, std::string next) {
    return std::unexpected(Error{"card.bad_dma", std::move(what), card.address().text(), std::move(next)});
  };
  const unsigned channels = dma_channels_of(card.type());
  if (channels == 0)
    return std::unexpected(Error{"card.unknown_type", "the DMA of this card is not known", card.address().text(),
                                 "`rodeo card list` shows the type of each card"});
  if (channel >= channels)
    return bad(fmt::format("a {} has {} DMA channel{}, there is no {}", name_of(card.type()), channels,
                           channels == 1 ? "" : "s", channel),
               "count from 0");
  const bool ddl = source == DataSource::siu || source == DataSource::diu;
  const std::string what = fmt::format("a {} has no data source {}", name_of(card.type()), name_of(source));
  if (card.type() == CardType::cru && ddl) return bad(what, "choose fee, ddg or internal");
  if (card.type() == CardType::crorc && source == DataSource::ddg) return bad(what, "choose fee, siu, diu or internal");
  if (card.type() == CardType::felix && (ddl || source == DataSource::ddg)) return bad(what, "choose fee or internal");
  return {};
}

Result<std::unique_ptr<DmaChannel>> DmaChannel::open(Card& card, unsigned channel, const SharedMemory& memory,
                                                     const DmaSettings& settings) {
  if (settings.page_bytes != 8192)
    return std::unexpected(Error{"card.bad_dma", fmt::format("DMA pages have 8192 bytes, not {}", settings.page_bytes),
                                 card.address().text(), "leave the page size out"});
  RODEO_TRY(check(card, channel, settings.source));
  std::unique_ptr<DmaChannel> opened;
  switch (card.type()) {
    case CardType::cru: opened = std::make_unique<CruChannel>(card, channel, memory, settings); break;
    case CardType::crorc: opened = std::make_unique<CrorcChannel>(card, channel, memory, settings); break;
    case CardType::felix:
    case CardType::unknown: opened = std::make_unique<FelixChannel>(card, channel, memory, settings); break;
  }
  if (settings.check_firmware) {
    const auto built_in = FirmwareTable::built_in();
    RODEO_TRY(rodeo::card::check_firmware(card, settings.firmware != nullptr ? *settings.firmware : built_in));
  }
  RODEO_TRY(opened->acquire_locks());
  const auto held = RODEO_TRY(opened->mutex_.hold());
  RODEO_TRY_WITHIN(opened->device_open(), "cannot open the DMA channel");
  RODEO_TRY(opened->register_memory());
  return opened;
}

Result<void> DmaChannel::register_memory() {
  registration_ = RODEO_TRY(Registration::map(card_.function(), memory_, card_.address().function * 6U + channel_));
  return {};
}

Result<void> DmaChannel::acquire_locks() {
  const std::string what = fmt::format("DMA channel {} of {}", channel_, card_.address().text());
  auto owner = RODEO_TRY(card_.lock(channel_, what));
  if (owner) byte_locks_.push_back(std::move(*owner));
  if (card_.type() == CardType::felix) return {};  // upstream's tools do not know FELIX cards
  if (!settings_.upstream_lock.value_or(card_.function().capabilities().kernel_device)) return {};
  const auto name =
      pci::upstream_lock_name(card_.address(), card_.type() == CardType::crorc ? std::optional(channel_) : std::nullopt);
  if (!name) return {};
  auto lock = RODEO_TRY(pci::NameLock::acquire(*name, what));
  name_locks_.push_back(std::move(lock));
  return {};
}

void DmaChannel::set_capacities(std::size_t transfer, std::size_t ready, std::size_t in_card) {
  transfer_ = FixedQueue<Superpage>(transfer);
  ready_limit_ = ready;
  // At a stop all superpages of the card and of the transfer queue come back at once.
  FixedQueue<Superpage> wider(ready + transfer + in_card);
  while (!ready_.empty() && wider.room() > 0) wider.push(ready_.pop());
  ready_ = std::move(wider);
}

Result<void> DmaChannel::start() {
  const auto held = RODEO_TRY(mutex_.hold());
  if (state() == DmaState::started) return {};
  if (state() == DmaState::failed) return std::unexpected(failure_.within("the channel has failed and was not stopped"));
  if (!ready_.empty())
    return std::unexpected(
        Error{"card.not_drained",
              fmt::format("{} of the last run still in the ready queue", base::counted(ready_.size(), "superpage")),
              card_.address().text(), "pop them before the next start"});
  last_fifo_empty_.clear();
  if (!registration_.mapped()) RODEO_TRY(register_memory());
  // The card may write again only when device_start() has made it forget the superpages of an earlier run.
  RODEO_TRY_WITHIN(device_start(), "cannot start DMA");
  if (auto master = card_.function().set_bus_master(true); !master) {
    (void)device_stop();
    return std::unexpected(std::move(master.error()).within("cannot start DMA"));
  }
  state_.store(DmaState::started, std::memory_order_release);
  return {};
}

Result<void> DmaChannel::stop() {
  // Set the state first: it refuses pushes of other threads.
  const DmaState before = state_.exchange(DmaState::stopped, std::memory_order_acq_rel);
  const auto held = RODEO_TRY(mutex_.hold());
  if (before == DmaState::stopped) return {};
  const auto stopped = device_stop();
  auto silent = stopped || !card_has_ended() ? device_silence() : Result<void>{};
  if (!silent && !card_has_ended()) {
    wall_off();
    failure_ = std::move(silent.error());
    state_.store(DmaState::failed, std::memory_order_release);
    return std::unexpected(failure_.within("the card may still write, so its superpages do not come back"));
  }
  device_reclaim();
  while (!transfer_.empty()) give_back(transfer_.pop());
  if (!stopped && before != DmaState::failed) return std::unexpected(stopped.error().within("DMA did not stop cleanly"));
  return {};
}

/// True if the process of an emulated card has ended: it cannot write any more.
bool DmaChannel::card_has_ended() {
  std::array<std::byte, 2> vendor{};
  const auto answer = card_.function().read(pci::kConfigurationRegion, 0, vendor);
  return !answer && answer.error().code == "card.gone";
}

/// Keeps a card that cannot be silenced from memory that is used again: an IOMMU refuses its writes to memory that is not
/// mapped. Without an IOMMU the keeper holds the memory until this process closes the card, and clears the card's bus master
/// bit before it releases the memory.
void DmaChannel::wall_off() {
  if (card_.function().translates()) {
    registration_ = {};
  } else {
    registration_.leave();
    device_leave();
  }
}

Result<void> DmaChannel::reset(ResetLevel level) {
  const auto held = RODEO_TRY(mutex_.hold());
  if (state() != DmaState::stopped)
    return std::unexpected(
        Error{"card.not_stopped", "a channel is reset only while it is stopped", card_.address().text(), "stop it first"});
  if (level == ResetLevel::nothing) return {};
  if (level == ResetLevel::internal_siu && card_.type() != CardType::crorc)
    return std::unexpected(Error{"card.bad_dma", fmt::format("a {} has no SIU to reset", name_of(card_.type())),
                                 card_.address().text(), "only a C-RORC has; take the level `internal`"});
  return device_reset(level);
}

PushStatus DmaChannel::push(const Superpage& superpage) {
  const auto held = mutex_.hold();
  if (!held || state() != DmaState::started) return PushStatus::not_started;
  if (superpage.bytes == 0) return PushStatus::empty;
  if (superpage.bytes % granule() != 0) return PushStatus::not_a_multiple;
  if (superpage.bytes > memory_.bytes.size() || superpage.offset > memory_.bytes.size() - superpage.bytes)
    return PushStatus::outside;
  if (superpage.offset % 4 != 0) return PushStatus::misaligned;
  if (superpage.bytes > largest()) return PushStatus::too_large;
  if (!registration_.bus_address(superpage.offset, superpage.bytes)) return PushStatus::not_contiguous;
  if (const PushStatus status = check_push(superpage); status != PushStatus::done) return status;
  if (transfer_.room() == 0) return PushStatus::full;
  Superpage empty = superpage;
  empty.received = 0;
  empty.ready = false;
  empty.link = -1;
  transfer_.push(empty);
  pushed(empty);
  return PushStatus::done;
}

Result<void> DmaChannel::fill() {
  const auto held = RODEO_TRY(mutex_.hold());
  if (state() == DmaState::failed) return std::unexpected(failure_);
  if (state() == DmaState::stopped) return {};
  auto filled = device_fill();
  if (filled) return {};
  failure_ = filled.error();
  DmaState expected = DmaState::started;
  state_.compare_exchange_strong(expected, DmaState::failed);
  return filled;
}

std::optional<Superpage> DmaChannel::front() const {
  return own<std::optional<Superpage>>(std::nullopt,
                                       [&] { return ready_.empty() ? std::nullopt : std::optional(ready_.front()); });
}

std::optional<Superpage> DmaChannel::pop() {
  return own<std::optional<Superpage>>(std::nullopt, [&]() -> std::optional<Superpage> {
    if (ready_.empty()) return std::nullopt;
    const Superpage superpage = ready_.pop();
    popped(superpage);
    return superpage;
  });
}

std::uint32_t DmaChannel::growing() const {
  return own<std::uint32_t>(0, [&] { return device_growing(); });
}

std::size_t DmaChannel::transfer_room() const {
  return own<std::size_t>(0, [&] { return transfer_.room(); });
}
std::size_t DmaChannel::transfer_capacity() const {
  return own<std::size_t>(0, [&] { return transfer_.capacity(); });
}
bool DmaChannel::transfer_empty() const {
  return own<bool>(true, [&] { return transfer_.empty(); });
}
std::size_t DmaChannel::ready_size() const {
  return own<std::size_t>(0, [&] { return ready_.size(); });
}
std::size_t DmaChannel::ready_capacity() const {
  return own<std::size_t>(0, [&] { return ready_limit_; });
}
std::size_t DmaChannel::outstanding() const {
  return own<std::size_t>(0, [&] { return device_outstanding(); });
}

Result<DmaHealth> DmaChannel::health() {
  const auto held = RODEO_TRY(mutex_.hold());
  DmaHealth health;
  RODEO_TRY(device_health(health));
  for (std::size_t i = 0; i < health.fifo_empty.size(); ++i) {
    const std::uint32_t before = i < last_fifo_empty_.size() ? last_fifo_empty_[i] : 0;
    if (health.fifo_empty[i] != before) health.fifos_healthy = false;
  }
  last_fifo_empty_ = health.fifo_empty;
  return health;
}

void DmaChannel::deliver(Superpage superpage, std::uint32_t received, int link) {
  superpage.received = received;
  superpage.ready = true;
  superpage.link = link;
  counters_.add(DmaCounter::superpages_filled);
  if (received < superpage.bytes) counters_.add(DmaCounter::superpages_partial);
  counters_.add(DmaCounter::bytes, received);
  ready_.push(superpage);
}

void DmaChannel::give_back(Superpage superpage) {
  superpage.received = 0;
  superpage.ready = false;
  superpage.link = -1;
  counters_.add(DmaCounter::superpages_unused);
  ready_.push(superpage);
}

std::unexpected<Error> DmaChannel::misbehaved(DmaCounter counter, std::string what) {
  counters_.add(counter);
  return std::unexpected(Error{"card.misbehaved", std::move(what), card_.address().text(),
                               "stop the channel; a reset of the card may help, or the driver may not know its firmware"});
}

}  // namespace rodeo::card
