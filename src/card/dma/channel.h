// A DMA channel moves superpages to the card and back for one owner; the contract is the same for CRU, C-RORC and FELIX
// (readoutcard-paper §IV.F).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "card/card.h"
#include "card/dma/fixed_queue.h"
#include "card/dma/memory.h"
#include "card/dma/registration.h"
#include "card/dma/superpage.h"
#include "card/firmware.h"
#include "card/pci/lock.h"
#include "card/pci/owner_process.h"

namespace rodeo::card {

enum class DmaState : unsigned char {
  stopped,
  started,
  failed
};  // failed: the card broke the rules; stop() ends this state
enum class DataSource : unsigned char { fee, ddg, internal, siu, diu };
enum class ResetLevel : unsigned char { nothing, internal, internal_siu };

std::string_view name_of(DmaState state);
std::string_view name_of(DataSource source);
/// The source of this name, in any case; nothing for an unknown name.
std::optional<DataSource> data_source_of(std::string_view name);

struct DmaSettings {
  DataSource source =
      DataSource::internal;                 // CRU: fee, ddg, internal; C-RORC: fee, siu, diu, internal; FELIX: fee, internal
  std::uint32_t links = 0;                  // CRU: bit per link; 0: all links that are enabled in the card
  std::uint32_t page_bytes = 8192;          // DMA pages; only 8192 is defined
  bool check_firmware = true;               // refuse firmware that is not in the table
  const FirmwareTable* firmware = nullptr;  // table with local additions; nullptr: the built-in table
  std::optional<bool> upstream_lock = {};  // true: also binds the name that upstream's tools lock; by default for real cards
};

enum class DmaCounter : unsigned char {
  superpages_pushed,
  superpages_filled,
  superpages_partial,
  superpages_unused,
  bytes,
  size_unknown,
  count_jumps,
  index_mismatches,
  oversize,
  position_errors,
  lost_writes,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(DmaCounter::count)> kDmaCounters{{
    {"superpages_pushed", "superpages", "superpages given to the card"},
    {"superpages_filled", "superpages", "superpages that came back with data"},
    {"superpages_partial", "superpages", "superpages that came back with data, but not full"},
    {"superpages_unused", "superpages", "superpages that came back without data at a stop"},
    {"bytes", "bytes", "bytes that the card wrote"},
    {"size_unknown", "superpages", "superpages whose size the firmware does not report; they count as full"},
    {"count_jumps", "errors", "the card said that more superpages are done than it had"},
    {"index_mismatches", "errors", "the number beside a superpage's size was not the next one"},
    {"oversize", "errors", "the card said that it wrote more than the superpage holds"},
    {"position_errors", "errors", "the card's write position was outside its memory or went too far"},
    {"lost_writes", "errors", "a register did not hold what was written to it"},
}};

/// Further signs of the transfer's health. Numbers that a card does not have are absent.
struct DmaHealth {
  std::optional<std::uint64_t> dropped_packets;
  std::vector<std::uint32_t> fifo_empty;  // per link (CRU): times that the link had data and no superpage
  std::optional<double> temperature_celsius;
  bool fifos_healthy = true;  // no link ran out of superpages since the last call
};

/// For any thread; calls are serialised. Every wait for the card has a limit. If the card breaks the rules, fill() returns
/// an Error, the state is `failed`, and a counter has the cause. Superpages move only in fill(), in the caller's thread. In
/// a forked child the copy of a channel has no effect: calls return card.forked, queues are empty, and the destructor leaves
/// card, memory and locks to the parent.
class DmaChannel {
 public:
  /// Checks that the card has this channel and this source: card.bad_dma, card.unknown_type. Does not access the card and
  /// needs no memory; open() calls it first.
  static Result<void> check(const Card& card, unsigned channel, DataSource source);
  /// Checks the firmware (card.firmware), takes the channel's lock (card.locked if it has an owner), stops DMA that a former
  /// owner may have left running, registers the memory. `card` and `memory` must outlive the channel. Other objects and
  /// processes may use the card's registers at the same time.
  static Result<std::unique_ptr<DmaChannel>> open(Card& card, unsigned channel, const SharedMemory& memory,
                                                  const DmaSettings& settings = {});
  virtual ~DmaChannel() = default;
  DmaChannel(const DmaChannel&) = delete;
  DmaChannel& operator=(const DmaChannel&) = delete;

  /// Resets the card's DMA and starts it; takes 210 ms for a CRU. No effect if started.
  Result<void> start();
  /// Stops DMA and refuses pushes. Filled superpages, also those filled in part, go to the ready queue with ready = true,
  /// the others with ready = false. No effect if stopped. If the card cannot be kept from writing, no superpage comes back:
  /// the state is `failed`, and a further stop() tries again. The state also stays `failed` after a card.timeout of an
  /// emulated card whose process then ends: open the card again.
  Result<void> stop();
  /// Error card.not_stopped unless stopped.
  Result<void> reset(ResetLevel level);
  /// `stopped` in a forked child, whatever the parent does.
  DmaState state() const { return mutex_.here() ? state_.load(std::memory_order_acquire) : DmaState::stopped; }

  /// Puts a superpage into the transfer queue.
  PushStatus push(const Superpage& superpage);
  /// Gives superpages of the transfer queue to the card while it has room, and collects filled ones.
  Result<void> fill();
  std::optional<Superpage> front() const;
  std::optional<Superpage> pop();
  /// Bytes that are already in the superpage that will be ready next; they may be read now. FELIX only, else 0.
  std::uint32_t growing() const;

  std::size_t transfer_room() const;
  std::size_t transfer_capacity() const;
  bool transfer_empty() const;  // no superpage waits for the card
  std::size_t ready_size() const;
  std::size_t ready_capacity() const;
  bool ready_full() const { return ready_size() >= ready_capacity(); }
  /// The number of superpages that the card has.
  std::size_t outstanding() const;

  std::uint64_t read(DmaCounter counter) const { return counters_.read(counter); }
  /// Reads registers of the card; not for a data path.
  Result<DmaHealth> health();

  /// Superpages of this card are multiples of granule(), and at most largest() bytes long.
  virtual std::uint32_t granule() const { return kSuperpageGranule; }
  virtual std::uint32_t largest() const { return std::uint32_t{1} << 30; }

  Card& card() const { return card_; }
  unsigned channel() const { return channel_; }
  std::span<std::byte> memory() const { return memory_.bytes; }

 protected:
  DmaChannel(Card& card, unsigned channel, const SharedMemory& memory, const DmaSettings& settings)
      : card_(card), channel_(channel), memory_(memory), settings_(settings) {}

  // The part of each card type; called with the mutex held.
  virtual Result<void> device_open() = 0;
  virtual Result<void> device_start() = 0;
  /// Ends transfers and moves filled superpages to the ready queue.
  virtual Result<void> device_stop() = 0;
  /// Makes sure that the card cannot write to its superpages any more, and that its earlier writes have arrived. Called
  /// after device_stop(), also if that has failed, and before device_reclaim().
  virtual Result<void> device_silence() = 0;
  /// The card may still write, and no IOMMU stops it: gives the registrations of further memory to the keeper.
  virtual void device_leave() {}
  virtual Result<void> device_reset(ResetLevel level) = 0;
  virtual Result<void> device_fill() = 0;
  virtual PushStatus check_push(const Superpage&) const { return PushStatus::done; }
  virtual void pushed(const Superpage&) {}
  virtual void popped(const Superpage&) {}
  virtual std::uint32_t device_growing() const { return 0; }
  virtual std::size_t device_outstanding() const = 0;
  virtual Result<void> device_health(DmaHealth& health) = 0;
  /// Takes all superpages from the card's queues and passes each to give_back().
  virtual void device_reclaim() = 0;

  void set_capacities(std::size_t transfer, std::size_t ready, std::size_t in_card);
  bool ready_has_room() const { return ready_.size() < ready_limit_; }
  std::size_t ready_room() const { return ready_limit_ > ready_.size() ? ready_limit_ - ready_.size() : 0; }
  void deliver(Superpage superpage, std::uint32_t received, int link);
  void give_back(Superpage superpage);
  std::unexpected<Error> misbehaved(DmaCounter counter, std::string what);

  Card& card_;
  unsigned channel_;
  SharedMemory memory_;
  DmaSettings settings_;
  Registration registration_;
  FixedQueue<Superpage> transfer_;
  base::CounterBlock<DmaCounter> counters_;

 private:
  Result<void> acquire_locks();
  Result<void> register_memory();
  bool card_has_ended();
  void wall_off();

  /// The result of `look`, with the mutex held; `nothing` in a forked child.
  template <typename T, typename Look>
  T own(T nothing, const Look& look) const {
    const auto held = mutex_.hold();
    return held ? look() : nothing;
  }

  mutable pci::OwnMutex mutex_{card_.address().text()};
  std::atomic<DmaState> state_{DmaState::stopped};
  Error failure_;
  FixedQueue<Superpage> ready_;
  std::size_t ready_limit_ = 0;
  std::vector<std::uint32_t> last_fifo_empty_;
  std::vector<pci::ByteLock> byte_locks_;
  std::vector<pci::NameLock> name_locks_;
};

}  // namespace rodeo::card
