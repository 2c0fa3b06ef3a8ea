// A FELIX FLX-712 endpoint: circular DMA by positions in plain memory, blocks of provable chunks (card_registers/felix.h,
// docs/reference/emulator.md).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "base/mapping.h"
#include "card_registers/felix.h"
#include "emulator/felix_source.h"
#include "emulator/link_light.h"
#include "emulator/pci_function.h"
#include "emulator/trigger_taking.h"
#include "formats/from_host.h"
#include "trigger/source.h"

namespace rodeo::emulator {

class FelixCard final : public PciFunction, private BlockSink {
 public:
  /// The card owns the trigger source; it must not be shared.
  FelixCard(Identity identity, EmulatedCardSettings settings, std::unique_ptr<trigger::TriggerSource> triggers);
  ~FelixCard() override;

 protected:
  bool work() override;
  bool is_idle() const override;
  void cut_off() override;
  bool client_left(ClientId client) override;
  void reset_card() override;
  void report_card(FunctionReport& report) const override;
  bool inject_card(const Fault& fault) override;
  bool bar_memory(unsigned bar, std::uint64_t offset, std::span<std::byte> bytes, bool write) override;

 private:
  struct Channel {
    enum class State : std::uint8_t {
      off,
      on,
      ending
    };  // ending: disabled, but still written to until its triggers are done

    bool running() const { return state != State::off; }

    State state = State::off;
    ClientId client = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t position = 0;
    std::uint64_t read = 0;  // the last read pointer seen
    bool even_dma = false;
    bool even_host = false;
    bool told = false;  // an interrupt was raised, and the host has not read data since
    bool stuck = false;
    bool lost_reader = false;  // the read pointer was outside the memory when the channel was enabled
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> dropped{0};  // number as the register shows it, lost blocks included
    std::span<std::byte> memory;            // memory from `position` on; valid while a Use lives
  };

  static constexpr std::size_t kMostFromHostMessage = 64 << 10;

  using Wanted = TriggerTaking::Wanted;
  Wanted wanted() const;
  void links_come_up(std::uint64_t now_ns);
  bool read_from_host(std::uint64_t now_ns);
  bool handle_packet(const formats::FromHostPacket& packet, std::uint64_t now_ns);
  bool room_to_loop_back(const formats::FromHostPacket& packet, unsigned to_host) const;
  std::uint64_t open_bytes(unsigned channel) const;
  bool check_room(std::uint64_t triggers);
  void write_blocks(std::uint64_t triggers, std::uint64_t now_ns, std::uint64_t flush_begun_ns);
  bool end_channels();

  std::atomic_ref<std::uint64_t> at(const card_registers::Register& reg, unsigned index = 0);
  bool handle_requests();
  bool handle_commands();
  bool update_channel(unsigned index);
  bool ends_in_order(unsigned index);
  bool end_cut_off();
  void clear_source();
  bool open_blocks_fit() const;
  void begin(unsigned index);
  void end(unsigned index);
  void publish(unsigned index);
  static std::uint64_t free_bytes(const Channel& channel);
  /// True if the reading side has no data to read.
  static bool empty(const Channel& channel) {
    return channel.position == channel.read && channel.even_dma == channel.even_host;
  }
  std::uint64_t triggers_that_fit() const;
  BlockFate block(unsigned link, std::span<const std::byte> block) override;
  void lost(unsigned link) override;
  void publish_books(std::uint64_t triggers = 0);
  void set_temperature(double celsius);
  void define_registers();

  FelixKernels kernels_ = felix_kernels();
  FelixSource source_;
  std::unique_ptr<trigger::TriggerSource> triggers_;
  std::vector<trigger::TriggerRange> ranges_;
  std::array<Channel, card_registers::felix::kMaxDescriptors> channels_;
  std::array<std::atomic<unsigned>, FelixSource::kMaxLinks> channel_of_{};
  std::array<std::atomic<std::uint64_t>, FelixSource::kMaxLinks> enabled_{};
  std::array<LinkLight, FelixSource::kMaxLinks> lights_{};
  std::atomic<std::uint64_t> interrupt_enable_{0};
  std::atomic<bool> generating_{true};
  std::atomic<bool> full_{false};
  base::UniqueFd bar0_fd_;
  base::Mapping bar0_;
  DmaMaps::Use* use_ = nullptr;  // set in work() only
  TriggerTaking taking_{*triggers_};
  OwnTime ending_;  // time since the driver ordered a channel to end
  formats::FromHostMessages from_host_{kMostFromHostMessage};
  std::atomic<std::uint64_t> from_host_bytes_{0};
  std::atomic<std::uint64_t> from_host_messages_{0};
  std::atomic<std::uint64_t> from_host_bad_packets_{0};
  std::atomic<std::uint64_t> from_host_too_long_{0};
  std::atomic<std::uint64_t> looped_back_{0};
  std::atomic<std::uint64_t> bad_descriptors_{0};
  std::atomic<std::uint64_t> long_packets_{0};
  std::atomic<std::uint64_t> bad_read_pointers_{0};
  // Counts of the source for other threads; all are of the same moment.
  mutable std::mutex books_mutex_;
  ChunkBooks books_;
  std::uint64_t triggers_seen_ = 0;
  std::atomic<std::uint64_t> blocks_lost_{0};
  std::atomic<std::uint64_t> blocks_corrupted_{0};
  std::atomic<std::uint64_t> l1ids_flipped_{0};
  std::atomic<std::uint64_t> bcids_shifted_{0};
  std::atomic<std::uint64_t> blocks_dropped_{0};
  std::atomic<std::uint64_t> occupied_us_{0};
  std::atomic<std::uint64_t> triggers_cut_off_{0};
};

}  // namespace rodeo::emulator
