#include "card/dma/crorc_channel.h"

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/core.h>

#include "card/card_wait.h"

namespace rodeo::card {
namespace {

namespace crorc = card_registers::crorc;
using crorc::reg;
using std::chrono::milliseconds;

constexpr std::size_t kQueue = 128;
constexpr milliseconds kFlushPatience{100};
constexpr milliseconds kAnswerPatience{100};

constexpr int kWriteAttempts = 3;

// Cards have locked up after simultaneous pushes to several channels. So the channels of a process push in turn, as
// upstream's do.
std::mutex& pushes() {
  static std::mutex mutex;
  return mutex;
}

// Size and count in one load: the card writes size first.
std::atomic_ref<std::uint64_t> completion_of(const DmaMemory& info) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(info.bytes().data()));
}

}  // namespace

Result<void> CrorcChannel::toggle_to(card_registers::Field bit, bool on) {
  const auto status = RODEO_TRY(card_.read(reg("channel_csr"), channel_));
  if ((bit.of(status) != 0) == on) return {};
  return write(reg("channel_csr"), bit.mask());
}

Result<void> CrorcChannel::command(std::uint32_t code) {
  RODEO_TRY(write(reg("ddl_command"), code));
  CardWait wait(kAnswerPatience);
  for (;;) {
    const auto status = RODEO_TRY(card_.read(reg("channel_csr"), channel_));
    if (crorc::kStatusNotEmpty.of(status) != 0) break;
    if (wait.over())
      return std::unexpected(Error{"card.no_answer",
                                   fmt::format("the link of channel {} did not answer command {:#x}", channel_, code),
                                   card_.address().text(), "see whether the link is up"});
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  RODEO_TRY(card_.read(reg("ddl_status"), channel_));
  return {};
}

Result<void> CrorcChannel::halt() {
  RODEO_TRY(card_.modify(reg("data_generator"), crorc::kGeneratorRun, 0, channel_));
  return toggle_to(crorc::kRxToggle, false);
}

Result<void> CrorcChannel::device_open() {
  RODEO_TRY(halt());
  // Reset first: addresses of a former owner must be gone before the card can write to this memory.
  RODEO_TRY(write(reg("csr"), crorc::kResetCard));
  info_ = RODEO_TRY(DmaMemory::create(4096, card_.found().numa_node));
  info_registration_ = RODEO_TRY(Registration::map(card_.function(), info_.shared(), 6 + channel_));
  set_capacities(kQueue, kQueue, 1);
  return {};
}

Result<void> CrorcChannel::device_reset(ResetLevel level) {
  RODEO_TRY(write(reg("csr"), crorc::kResetCard));
  std::this_thread::sleep_for(milliseconds(100));
  if (level == ResetLevel::internal_siu) RODEO_TRY(command(crorc::kCommandSiuReset));
  return {};
}

Result<void> CrorcChannel::device_start() {
  RODEO_TRY(halt());
  RODEO_TRY(device_reset(ResetLevel::internal));
  in_flight_.reset();
  next_count_ = 0;
  completion_of(info_).store(static_cast<std::uint64_t>(crorc::kCompletionSeed) << 32, std::memory_order_release);
  const auto address = info_registration_.bus_address(0, sizeof(crorc::Completion));
  if (!address)
    return std::unexpected(
        Error{"card.dma_memory", "the information buffer has no address for the card", card_.address().text()});
  RODEO_TRY(write(reg("info_address_high"), static_cast<std::uint32_t>(*address >> 32)));
  RODEO_TRY(write(reg("info_address_low"), static_cast<std::uint32_t>(*address)));
  switch (settings_.source) {
    case DataSource::internal: RODEO_TRY(toggle_to(crorc::kChannelLoopback, true)); break;
    case DataSource::diu:
    case DataSource::siu: {
      RODEO_TRY(toggle_to(crorc::kChannelLoopback, false));
      const bool siu = settings_.source == DataSource::siu;
      RODEO_TRY(command(siu ? crorc::kCommandSiuLoop : crorc::kCommandDiuLoop));
      break;
    }
    default:
      RODEO_TRY(toggle_to(crorc::kChannelLoopback, false));
      RODEO_TRY(command(crorc::kCommandRdyrx));
      break;
  }
  RODEO_TRY(toggle_to(crorc::kRxToggle, true));
  if (settings_.source != DataSource::fee) RODEO_TRY(card_.modify(reg("data_generator"), crorc::kGeneratorRun, 1, channel_));
  return {};
}

/// Writes both halves and reads them back; repeats a write that the card lost.
Result<void> CrorcChannel::write_address(std::uint64_t address) {
  const auto high = static_cast<std::uint32_t>(address >> 32);
  const auto low = static_cast<std::uint32_t>(address);
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    std::array operations{operation(reg("superpage_address_high"), high), reading(reg("superpage_address_high")),
                          operation(reg("superpage_address_low"), low), reading(reg("superpage_address_low"))};
    RODEO_TRY(card_.function().exchange(operations));
    if (operations[1].value == high && operations[3].value == low) return {};
    counters_.add(DmaCounter::lost_writes);
  }
  return misbehaved(DmaCounter::lost_writes, fmt::format("channel {} did not take the address {:#x}", channel_, address));
}

Result<void> CrorcChannel::push_next() {
  const Superpage superpage = transfer_.front();
  const std::uint64_t address = *registration_.bus_address(superpage.offset, superpage.bytes);
  const std::lock_guard alone(pushes());
  RODEO_TRY(write_address(address));
  (void)transfer_.pop();
  in_flight_ = superpage;
  counters_.add(DmaCounter::superpages_pushed);
  // Do not repeat the push: the card may have taken the first one.
  std::array push{operation(reg("superpage_push"), superpage.bytes), reading(reg("superpage_push"))};
  RODEO_TRY(card_.function().exchange(push));
  if (crorc::kPushedBytes.of(static_cast<std::uint32_t>(push[1].value)) == superpage.bytes) return {};
  return misbehaved(DmaCounter::lost_writes, fmt::format("channel {} did not take the size {}", channel_, superpage.bytes));
}

Result<bool> CrorcChannel::collect() {
  if (!in_flight_) return false;
  const std::uint64_t word = completion_of(info_).load(std::memory_order_acquire);
  const auto bytes = static_cast<std::uint32_t>(word);
  const std::uint32_t count = static_cast<std::uint32_t>(word >> 32) & 0xff;
  if (count == ((next_count_ - 1) & 0xff)) return false;
  if (count != next_count_)
    return misbehaved(DmaCounter::count_jumps,
                      fmt::format("channel {} reported superpage {} in place of {}", channel_, count, next_count_));
  if (bytes > in_flight_->bytes)
    return misbehaved(DmaCounter::oversize, fmt::format("channel {} says that it wrote {} bytes into a superpage of {}",
                                                        channel_, bytes, in_flight_->bytes));
  deliver(*in_flight_, bytes, static_cast<int>(channel_));
  in_flight_.reset();
  next_count_ = (next_count_ + 1) & 0xff;
  return true;
}

Result<void> CrorcChannel::device_fill() {
  if (ready_has_room()) RODEO_TRY(collect());
  if (!in_flight_ && !transfer_.empty()) return push_next();
  return {};
}

Result<void> CrorcChannel::device_stop() {
  if (settings_.source == DataSource::fee) (void)command(crorc::kCommandEobtr);
  RODEO_TRY(card_.modify(reg("data_generator"), crorc::kGeneratorRun, 0, channel_));
  auto flushed = in_flight_ ? flush() : Result<void>{};
  RODEO_TRY(toggle_to(crorc::kRxToggle, false));
  return flushed;
}

Result<void> CrorcChannel::flush() {
  RODEO_TRY(card_.modify(reg("time_frame"), crorc::kFlush, 1, channel_));
  CardWait wait(kFlushPatience);
  Result<bool> collected = collect();
  while (collected && !*collected && !wait.over()) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    collected = collect();
  }
  RODEO_TRY(card_.modify(reg("time_frame"), crorc::kFlush, 0, channel_));
  return collected ? Result<void>{} : std::unexpected(std::move(collected.error()));
}

/// The reset removes the address of the superpage in flight from the card. The register read waits until earlier writes of
/// the card have arrived.
Result<void> CrorcChannel::device_silence() {
  RODEO_TRY(write(reg("csr"), crorc::kResetCard));
  RODEO_TRY(card_.read(reg("channel_csr"), channel_));
  return {};
}

void CrorcChannel::device_reclaim() {
  if (in_flight_) give_back(*in_flight_);
  in_flight_.reset();
}

Result<void> CrorcChannel::device_health(DmaHealth&) { return {}; }

}  // namespace rodeo::card
