// What the emulated cards have in common: configuration space, registers, clients' memory, interrupts, and the thread that does DMA.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "emulator/card_settings.h"
#include "emulator/config_space.h"
#include "emulator/device.h"
#include "emulator/dma_maps.h"
#include "emulator/fault.h"
#include "emulator/register_file.h"
#include "emulator/server.h"
#include "rodeo/input.h"

namespace rodeo::emulator {

/// What a function has done so far; any thread may ask.
struct FunctionReport {
  std::string name;       ///< of the card
  std::string type = {};  ///< "CRU", "C-RORC", "FELIX"
  std::string address;    ///< "0000:3b:00.0"
  unsigned endpoint = 0;
  std::size_t clients = 0;
  std::uint64_t superpages = 0;  ///< filled (CRU, C-RORC), or blocks written (FELIX)
  std::uint64_t bytes = 0;       ///< given to clients
  std::uint64_t triggers = 0;    ///< triggers or heartbeat frames that data were made for
  std::uint64_t chunks = 0;      ///< sent, of a CRU or C-RORC heartbeat frames; what was lost is in counters
  std::uint64_t requests = 0;
  bool running = false;
  // Of the triggers that it takes: Emulator::report() knows.
  double busy_seconds = 0;               ///< in which it had no room for a trigger
  std::uint64_t vetoed = 0;              ///< offered triggers that it had no room for
  std::uint64_t vetoed_alone = 0;        ///< of these, that everybody else had room for
  std::optional<double> dead_time = {};  ///< vetoed / offered; nothing where the authority is in another process
  /// Losses and oddities, by name; only those that are not 0.
  std::vector<NamedCounter> counters = {};
  void add(std::string_view counter, std::uint64_t value) {
    if (value > 0) counters.push_back({std::string(counter), value});
  }
};

/// One function with its server. A card derives from it, fills the register file in its constructor, and calls start() as
/// the last thing there, stop() as the first thing in its destructor.
class PciFunction : public Device {
 public:
  struct Identity {
    std::string name = {};
    std::string type = {};
    std::string address = {};
    unsigned endpoint = 0;
    unsigned links = 0;  ///< that can fail: 0 to links - 1
    card_registers::PciId pci = {};
    std::filesystem::path directory = {};  ///< of sockets and locks; empty: no socket and no thread, only talk() and turn()
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    int cpu = -1;  ///< for the DMA thread; -1: any
  };

  PciFunction(Identity identity, EmulatedCardSettings settings, const card_registers::RegisterMap& map,
              std::span<const card_registers::BarSize> bars, unsigned copies = 1);
  ~PciFunction() override;

  const Region& region(unsigned index) const final { return regions_[index]; }
  unsigned vectors() const final { return Interrupts::kMaxVectors; }
  void read(ClientId client, unsigned region, std::uint64_t offset, std::span<std::byte> bytes) final;
  void write(ClientId client, unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) final;
  void reset() final;
  void left(ClientId client) final;

  const Identity& identity() const { return identity_; }
  FunctionReport report() const;
  /// Whether DMA is going on. Any thread.
  bool running() const { return running_.load(std::memory_order_relaxed); }

  /// A conversation without a socket; the function must outlive it. Any thread.
  std::unique_ptr<VfioUserSession> talk();
  /// One turn of the DMA engine, where it has no thread of its own.
  void turn();

  /// DMA ends for good, and what was under way is lost under a name. Registers still answer. Any thread, once.
  void finish();

  /// Makes the fault happen now; false if this card does not have it. Any thread.
  bool inject(const Fault& fault);
  /// Between the faults removal and replug. Any thread.
  bool removed() const { return removed_.load(std::memory_order_relaxed); }

 protected:
  void start();
  void stop();

  /// The DMA engine's turn: does at most a megabyte or so of work and returns whether it did any. On the DMA thread.
  virtual bool work() = 0;
  /// After a turn that did nothing: whether nothing can be to do before a register is written. The thread then sleeps; where registers are
  /// memory, which nobody hears written, it looks once a millisecond while there are clients. On the DMA thread.
  virtual bool at_rest() const = 0;
  /// Nothing more is written, no trigger waits for this function any more, and what was under way is in the books as cut off. The DMA thread is not in
  /// work(), and will not be before reset_card(). Called with mutex() held.
  virtual void cut_off() = 0;
  /// DMA into the memory of this client, who is gone, ends, and what was under way is in the books as cut off. False if there was none. The DMA
  /// thread is not in work(). Called with mutex() held.
  virtual bool client_left(ClientId client) = 0;
  /// Everything back to what it is after power-on; registers have been restored. The DMA thread is not in work(). Called with mutex() held.
  virtual void reset_card() = 0;
  /// Adds what the card knows; `bytes`, `running` and the counter of DMA faults are there.
  virtual void report_card(FunctionReport& report) const = 0;
  /// Called with mutex() held, not while the DMA thread is in work().
  virtual bool inject_card(const Fault& fault) = 0;
  /// A BAR whose page is memory: what is in it is not in the register file. Nothing by default.
  virtual bool bar_memory(unsigned bar, std::uint64_t offset, std::span<std::byte> bytes, bool write);

  /// Guards the register file and what its behaviour touches. The DMA thread takes it for moments only.
  std::mutex& mutex() const { return mutex_; }
  RegisterFile& registers() { return registers_; }
  const RegisterFile& registers() const { return registers_; }
  Region& region_to_change(unsigned index) { return regions_[index]; }
  DmaMaps& maps() { return maps_; }
  Interrupts& interrupts() { return interrupts_; }
  bool bus_master() const { return bus_master_.load(std::memory_order_relaxed); }
  /// The longest packets that it may write to the host's memory, and ask it for: bytes.
  unsigned max_payload() const { return max_payload_.load(std::memory_order_relaxed); }
  unsigned max_read_request() const { return max_read_request_.load(std::memory_order_relaxed); }
  /// Whose access is being served: in register behaviour only.
  ClientId current_client() const { return current_client_; }
  /// In register behaviour: `action` runs when the write is done, with mutex() held and the DMA thread not in work(); the
  /// write is answered after it.
  void after_write(std::function<void()> action) { after_write_ = std::move(action); }
  /// Keeps the DMA thread out of work(). Never while mutex() is held by the caller.
  std::unique_lock<std::mutex> pause();

  /// The serial number as registers have it: four digits, the first in the lowest byte.
  std::uint32_t ascii_serial() const;

  const EmulatedCardSettings settings_;

  // Set by the card.
  std::atomic<bool> running_{false};
  std::atomic<std::uint64_t> bytes_{0};       // written
  std::atomic<std::uint64_t> dma_faults_{0};  // into nothing, which an IOMMU would stop

 private:
  void run();
  void rest(unsigned seen);
  void knock();
  void reset_locked();
  void look_at_configuration();
  void leave();

  Identity identity_;
  std::vector<Region> regions_;
  mutable std::mutex mutex_;
  std::mutex work_mutex_;
  std::atomic<int> work_waiting_{0};
  ConfigSpace config_;
  RegisterFile registers_;
  DmaMaps maps_;
  Interrupts interrupts_;
  std::atomic<bool> bus_master_{false};
  std::atomic<unsigned> max_payload_{128};
  std::atomic<unsigned> max_read_request_{128};
  bool gone_ = false;  // under work_mutex_: removed, or at the end
  std::atomic<bool> removed_{false};
  std::atomic<std::uint64_t> readers_lost_{0};
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> knocks_{0};  // things that may end the DMA thread's rest
  std::atomic<bool> resting_{false};
  std::mutex rest_mutex_;
  std::condition_variable rest_;
  ClientId current_client_ = 0;
  std::atomic<ClientId> next_talk_{ClientId{1} << 63};  // beyond those of the server
  std::function<void()> after_write_;
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

}  // namespace rodeo::emulator
