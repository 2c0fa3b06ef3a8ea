// A CRU endpoint: superpages by link, a size FIFO, heartbeat frames (card_registers/cru.h, docs/reference/emulator.md).
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "card_registers/cru.h"
#include "emulator/link_pacer.h"
#include "emulator/pci_function.h"
#include "emulator/rdh_link.h"
#include "emulator/trigger_taking.h"
#include "trigger/source.h"

namespace rodeo::emulator {

class CruCard final : public PciFunction {
 public:
  CruCard(Identity identity, EmulatedCardSettings settings, std::unique_ptr<trigger::TriggerSource> triggers);
  ~CruCard() override;

 protected:
  bool work() override;
  bool is_idle() const override;
  void cut_off() override;
  bool client_left(ClientId client) override;
  void reset_card() override;
  void report_card(FunctionReport& report) const override;
  bool inject_card(const Fault& fault) override;

 private:
  static constexpr unsigned kLinks = card_registers::cru::kDmaLinks;

  /// The state of one link. mutex() guards the members that registers share.
  struct Link : RdhLink {
    // Shared with the registers:
    std::uint32_t address_high = 0;
    std::uint32_t address_low = 0;
    std::deque<SuperpageDescriptor> waiting;
    std::deque<std::uint32_t> sizes;  // the size FIFO
    std::uint32_t done = 0;
    std::uint8_t index = 0;
    std::uint64_t empty = 0;
    std::atomic<std::uint64_t> dropped_frames{0};
    bool was_down = false;
    std::uint32_t held = 0;  // superpages that never return to the host: one for each lost one
    // Only the DMA thread uses these:
    bool open = false;  // `superpage` is being filled
    bool starved = false;
  };

  void define_dma();
  void define_board();
  void define_i2c();
  void define_links();
  void define_trigger_emulation();
  void define_slow_control();
  void identify_links();
  void begin_run();
  void start_dma();
  void stop_dma();
  void reset_links();
  void push(std::uint32_t link, std::uint32_t pages);
  void close(Link& link);
  bool fill(unsigned number, Link& link, DmaMaps::Use& use, std::size_t budget);
  std::size_t write_pattern(Link& link, DmaMaps::Use& use, std::size_t budget);
  bool link_enabled(unsigned number) const;
  bool link_fed(unsigned number) const;
  bool link_active(unsigned number) const;
  bool frames_due(const Link& link) const;
  void accept_frames();
  void jump(std::uint64_t sequence);
  void catch_up(Link& link) const;
  bool frames_left() const;
  void drop_frames(Link& link);
  void skip_frames(unsigned number);
  void cut_off_due();
  void cut_off_frames();
  /// Call with mutex() held.
  FrameTotals totals() const;
  double run_seconds() const;
  std::uint64_t ctp_triggers(const card_registers::Register& divisor) const;
  std::uint32_t datapath(const card_registers::Register& reg) const;
  void set_temperature(double celsius);

  const unsigned endpoint_;
  std::unique_ptr<trigger::TriggerSource> triggers_;
  TriggerTaking taking_{*triggers_};  // from the start of the run until all its triggers have frames; under mutex()
  std::vector<trigger::TriggerRange> ranges_;
  std::array<Link, kLinks> links_;
  LinkPacer pacer_;
  std::atomic<std::uint64_t> occupied_us_{0};
  bool dma_on_ = false;  // mutex() guards this and the following members
  bool internal_ = false;
  bool data_taking_ = false;
  bool random_event_size_ = false;  // setting of the example user logic
  OwnTime standstill_;              // time since the last page
  bool dynamic_offset_ = false;
  std::uint32_t enabled_ = 0;
  std::uint32_t generator_ = 0;
  std::uint32_t time_frame_length_ = 0;
  std::uint64_t start_ns_ = 0;  // start of the run
  std::uint64_t power_on_ns_ = 0;
  // With paced triggers, a frame has its trigger's sequence number, so cards of one authority share the orbits.
  std::uint64_t frames_due_ = 0;               // one past the last due frame
  std::uint64_t first_due_ = 0;                // since this frame the triggers have no gap
  std::uint64_t frames_done_ = 0;              // frames reported to the authority
  std::uint64_t newest_frame_ = 0;             // newest frame; earlier frames are counted in triggers_seen_
  std::atomic<std::uint64_t> first_frame_{0};  // first frame of the run
  ClientId reader_ = 0;                        // owner of the DMA
  unsigned next_link_ = 0;
  std::uint64_t rate_at_ns_ = 0;
  std::uint64_t rate_pages_ = 0;
  std::uint32_t packet_hz_ = 0;
  std::uint64_t rate_dropped_ = 0;
  std::uint32_t drop_hz_ = 0;
  alignas(64) std::array<std::byte, 16384> bounce_{};
  std::atomic<std::uint64_t> swt_words_lost_{0};
  std::atomic<std::uint64_t> superpages_{0};
  std::atomic<std::uint64_t> triggers_seen_{0};  // heartbeats with frames, counted once for all links
  std::atomic<std::uint64_t> frames_{0};         // number of frames, counted per link
  std::atomic<std::uint64_t> pages_{0};
  std::atomic<std::uint64_t> refused_pushes_{0};
  std::atomic<std::uint64_t> lost_superpages_{0};
  std::atomic<std::uint64_t> dropped_pages_{0};
  std::atomic<std::uint64_t> dropped_frames_{0};
  std::atomic<std::uint64_t> frames_link_down_{0};
  std::atomic<std::uint64_t> frames_cut_off_{0};  // frames that were due but never begun
};

}  // namespace rodeo::emulator
