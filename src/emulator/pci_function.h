// The common part of emulated cards: configuration space, registers, clients' memory, interrupts, and the DMA thread.
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

/// The work of a function up to now. Any thread may ask for it.
struct FunctionReport {
  std::string name;       ///< name of the card
  std::string type = {};  ///< "CRU", "C-RORC", "FELIX"
  std::string address;    ///< "0000:3b:00.0"
  unsigned endpoint = 0;
  std::size_t clients = 0;
  std::uint64_t superpages = 0;  ///< superpages filled (CRU, C-RORC), or blocks written (FELIX)
  std::uint64_t bytes = 0;       ///< bytes written to clients' memory
  std::uint64_t triggers = 0;    ///< triggers or heartbeat frames for which data were made
  std::uint64_t chunks = 0;      ///< chunks sent; for a CRU or C-RORC heartbeat frames. Lost chunks are in `counters`
  std::uint64_t requests = 0;
  bool running = false;
  // Values about the triggers; Emulator::report() sets them.
  double busy_seconds = 0;               ///< time without room for a trigger
  std::uint64_t vetoed = 0;              ///< offered triggers for which the function had no room
  std::uint64_t vetoed_alone = 0;        ///< vetoed triggers for which all other functions had room
  std::optional<double> dead_time = {};  ///< vetoed / offered; empty if the authority is in another process
  /// Losses and anomalies by name, without zeros.
  std::vector<NamedCounter> counters = {};
  void add(std::string_view counter, std::uint64_t value) {
    if (value > 0) counters.push_back({std::string(counter), value});
  }
};

/// One function with its server. The constructor of a derived card fills the register file, and calls start() as its last
/// statement; the destructor calls stop() as its first one.
class PciFunction : public Device {
 public:
  struct Identity {
    std::string name = {};
    std::string type = {};
    std::string address = {};
    unsigned endpoint = 0;
    unsigned links = 0;  ///< number of links that can have faults: 0 to links - 1
    card_registers::PciId pci = {};
    /// Directory of sockets and locks; empty: no socket and no thread, only talk() and turn().
    std::filesystem::path directory = {};
    base::IdlePolicy idle = base::IdlePolicy::sleep;
    int cpu = -1;  ///< CPU of the DMA thread; -1: any
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
  /// True while DMA is running. Any thread.
  bool running() const { return running_.load(std::memory_order_relaxed); }

  /// Makes a client session without a socket; the function must outlive it. Any thread.
  std::unique_ptr<VfioUserSession> talk();
  /// One turn of the DMA engine, if it has no thread of its own.
  void turn();

  /// Ends DMA for good; data in progress are lost and counted. Registers still answer. Any thread; call it once.
  void finish();

  /// Makes the fault happen now; false if this card has no such fault. Any thread.
  bool inject(const Fault& fault);
  /// True between the faults removal and replug. Any thread.
  bool removed() const { return removed_.load(std::memory_order_relaxed); }

 protected:
  void start();
  void stop();

  /// One turn of the DMA engine, about a megabyte of work at most; returns whether there was any work. On the DMA thread.
  virtual bool work() = 0;
  /// After a turn without work: true if no work can come before a register is written. The thread then sleeps. Writes to
  /// registers that are plain memory cannot wake the thread, so it looks at them once a millisecond while there are clients.
  /// On the DMA thread.
  virtual bool is_idle() const = 0;
  /// Ends all writing, and releases the triggers; data in progress are counted as cut off. The DMA thread is not in work(),
  /// and does not enter it before reset_card(). Called with mutex() held.
  virtual void cut_off() = 0;
  /// Ends DMA into the memory of this client, which has left; data in progress are counted as cut off. False if there was no
  /// such DMA. The DMA thread is not in work(). Called with mutex() held.
  virtual bool client_left(ClientId client) = 0;
  /// Restores the state after power-on; registers are already restored. The DMA thread is not in work(). Called with mutex()
  /// held.
  virtual void reset_card() = 0;
  /// Adds the card's own values. The caller handles `bytes`, `running` and the counter of DMA faults.
  virtual void report_card(FunctionReport& report) const = 0;
  /// Called with mutex() held, not while the DMA thread is in work().
  virtual bool inject_card(const Fault& fault) = 0;
  /// Accesses a BAR that is plain memory, outside the register file. False: the BAR is not plain memory (the default).
  virtual bool bar_memory(unsigned bar, std::uint64_t offset, std::span<std::byte> bytes, bool write);

  /// Guards the register file and all members that its behaviour uses. The DMA thread holds it only briefly.
  std::mutex& mutex() const { return mutex_; }
  RegisterFile& registers() { return registers_; }
  const RegisterFile& registers() const { return registers_; }
  Region& region_to_change(unsigned index) { return regions_[index]; }
  DmaMaps& maps() { return maps_; }
  Interrupts& interrupts() { return interrupts_; }
  bool bus_master() const { return bus_master_.load(std::memory_order_relaxed); }
  /// The longest packets that the function may write to the host's memory, or request from it, in bytes.
  unsigned max_payload() const { return max_payload_.load(std::memory_order_relaxed); }
  unsigned max_read_request() const { return max_read_request_.load(std::memory_order_relaxed); }
  /// The client whose access is being handled; in register behaviour only.
  ClientId current_client() const { return current_client_; }
  /// For register behaviour: `action` runs after the write, with mutex() held and the DMA thread not in work(). The write is
  /// answered after the action.
  void after_write(std::function<void()> action) { after_write_ = std::move(action); }
  /// Keeps the DMA thread out of work(). The caller must not hold mutex().
  std::unique_lock<std::mutex> pause();

  /// The serial number as registers show it: four ASCII digits, the first in the lowest byte.
  std::uint32_t ascii_serial() const;

  const EmulatedCardSettings settings_;

  // The card sets these:
  std::atomic<bool> running_{false};
  std::atomic<std::uint64_t> bytes_{0};       // bytes written
  std::atomic<std::uint64_t> dma_faults_{0};  // writes to unmapped memory, which an IOMMU would stop

 private:
  void run();
  void rest(unsigned seen);
  void knock();
  void reset_locked();
  void copy_configuration();
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
  bool gone_ = false;  // guarded by work_mutex_; true: removed, or at the end
  std::atomic<bool> removed_{false};
  std::atomic<std::uint64_t> readers_lost_{0};
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> knocks_{0};  // counts events that may end the DMA thread's sleep
  std::atomic<bool> resting_{false};
  std::mutex rest_mutex_;
  std::condition_variable rest_;
  ClientId current_client_ = 0;
  std::atomic<ClientId> next_talk_{ClientId{1} << 63};  // these numbers are above the numbers of the server
  std::function<void()> after_write_;
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

}  // namespace rodeo::emulator
