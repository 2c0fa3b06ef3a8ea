// A C-RORC: six channels of one link each, one superpage in flight, reports in the host's memory (card_registers/crorc.h,
// docs/reference/emulator.md).
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>

#include "card_registers/crorc.h"
#include "emulator/flash_chip.h"
#include "emulator/pci_function.h"
#include "emulator/rdh_link.h"

namespace rodeo::emulator {

class CrorcCard final : public PciFunction {
 public:
  CrorcCard(Identity identity, EmulatedCardSettings settings);
  ~CrorcCard() override;

 protected:
  bool work() override;
  bool is_idle() const override;
  void cut_off() override;
  bool client_left(ClientId client) override;
  void reset_card() override;
  void report_card(FunctionReport& report) const override;
  bool inject_card(const Fault& fault) override;

 private:
  /// `superpage.bytes` is 0 if none is in flight. Its client switched receiving on, or pushed the last superpage.
  struct Channel : RdhLink {
    std::uint32_t pushed_bytes = 0;  // size of the last superpage; superpage_push shows it until the next push
    std::uint8_t pushes = 0;
    std::uint8_t count = 0;  // number of the next report
    bool receiving = false;
    bool loopback = false;
    bool generator = false;
    std::deque<std::uint32_t> answers;
    std::uint64_t pages_at_start = 0;
    std::uint64_t rate_pages = 0;
    std::uint32_t rate = 0;
  };

  void define_registers();
  void reset_channel(Channel& channel);
  static void cut_off(Channel& channel);
  void command(Channel& channel, std::uint32_t code);
  void report_superpage(unsigned number, Channel& channel, DmaMaps::Use& use);
  bool complete_superpage(unsigned number, Channel& channel, DmaMaps::Use& use);
  bool fill(unsigned number, Channel& channel);

  std::array<Channel, card_registers::crorc::kLinks> channels_;
  FlashChip flash_;
  bool qsfp_ = true;
  std::uint64_t rate_at_ns_ = 0;
  alignas(64) std::array<std::byte, 8192> bounce_{};
  std::atomic<std::uint64_t> superpages_{0};
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<std::uint64_t> lost_superpages_{0};
  std::atomic<std::uint64_t> refused_pushes_{0};
};

}  // namespace rodeo::emulator
