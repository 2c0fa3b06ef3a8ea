#include "emulator/crorc_card.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "emulator/copies_done.h"
#include "formats/rdh.h"

namespace rodeo::emulator {
namespace {

namespace crorc = card_registers::crorc;

constexpr std::size_t kBudget = 512 << 10;
constexpr std::size_t kMostAnswers = 64;

}  // namespace

CrorcCard::CrorcCard(Identity identity, EmulatedCardSettings settings)
    : PciFunction(std::move(identity), std::move(settings), crorc::kMap, crorc::kBars, crorc::kLinks) {
  for (unsigned number = 0; number < crorc::kLinks; ++number) {
    channels_[number].source = RdhSource(settings_.rdh);
    channels_[number].source.identify(
        {.link = static_cast<std::uint8_t>(number), .fee_id = static_cast<std::uint16_t>(number)});
  }
  rate_at_ns_ = base::steady_now_ns();
  define_registers();
  reset_card();
  start();
}

CrorcCard::~CrorcCard() { stop(); }

void CrorcCard::define_registers() {
  RegisterFile& regs = registers();
  const auto set_all = [&](const card_registers::Register& reg, std::uint64_t value) {
    for (unsigned number = 0; number < crorc::kLinks; ++number) regs.set(reg, value, number);
  };
  const std::uint32_t serial = ascii_serial();
  set_all(crorc::reg("serial"), serial);
  flash_.hold(crorc::kFlashSerialWord, static_cast<std::uint16_t>(0xff00U | (serial & 0xffU)));
  flash_.hold(crorc::kFlashSerialWord + 1, static_cast<std::uint16_t>((serial & 0xff00U) | (serial >> 16 & 0xffU)));
  flash_.hold(crorc::kFlashSerialWord + 2, static_cast<std::uint16_t>((serial >> 16 & 0xff00U) | 0xffU));
  set_all(crorc::reg("firmware_hash"), 0x8e0d2ffd);
  set_all(crorc::reg("flash_status"), 1);
  set_all(crorc::reg("first_orbit"), settings_.rdh.first_orbit);
  set_all(crorc::reg("optical_power_0_1"), 5120U << 16 | 5010U);
  set_all(crorc::reg("optical_power_2_3"), 4980U << 16 | 5230U);
  set_all(crorc::reg("optical_power_4_5"), 5040U << 16 | 4870U);
  set_all(crorc::reg("time_frame"), 256);

  regs.on_write(crorc::reg("csr"), [this](std::uint32_t number, std::uint64_t value) {
    if (value == crorc::kResetCard) after_write([this, number] { reset_channel(channels_[number]); });
  });
  regs.on_read(crorc::reg("channel_csr"), [this](std::uint32_t number) -> std::uint64_t {
    const Channel& channel = channels_[number];
    return (channel.receiving ? crorc::kRxToggle.mask() : 0U) | (channel.loopback ? crorc::kChannelLoopback.mask() : 0U) |
           (channel.up ? 0U : crorc::kLinkDown.mask()) | (channel.answers.empty() ? 0U : crorc::kStatusNotEmpty.mask());
  });
  regs.on_write(crorc::reg("channel_csr"), [this](std::uint32_t number, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    after_write([this, number, word, client = current_client()] {
      Channel& channel = channels_[number];
      if (crorc::kRxToggle.of(word) != 0) {
        channel.receiving = !channel.receiving;
        channel.superpage.client = client;  // the former client would be wrong: its end may be noticed only later
        if (channel.receiving) channel.pages_at_start = channel.pages;
      }
      if (crorc::kChannelLoopback.of(word) != 0) channel.loopback = !channel.loopback;
    });
  });
  regs.on_write(crorc::reg("ddl_command"), [this](std::uint32_t number, std::uint64_t value) {
    command(channels_[number], static_cast<std::uint32_t>(value));
  });
  regs.on_read(crorc::reg("ddl_status"), [this](std::uint32_t number) -> std::uint64_t {
    auto& answers = channels_[number].answers;
    if (answers.empty()) return 0;
    const std::uint32_t answer = answers.front();
    answers.pop_front();
    return answer;
  });
  regs.on_write(crorc::reg("data_generator"), [this](std::uint32_t number, std::uint64_t value) {
    after_write([this, number, value] {
      channels_[number].generator = crorc::kGeneratorRun.of(static_cast<std::uint32_t>(value)) != 0;
    });
  });
  regs.on_read(crorc::reg("superpage_push"), [this](std::uint32_t number) -> std::uint64_t {
    return std::uint64_t{channels_[number].pushed_bytes} << 8 | channels_[number].pushes;
  });
  regs.on_write(crorc::reg("superpage_push"), [this](std::uint32_t number, std::uint64_t value) {
    Channel& channel = channels_[number];
    // One superpage in flight; its size fits into the 24 bits that read back.
    if (channel.superpage.bytes != 0 || value == 0 || value >= 1U << 24) {
      refused_pushes_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    channel.superpage.client = current_client();
    channel.superpage.address = registers().get(crorc::reg("superpage_address_high"), number) << 32 |
                                registers().get(crorc::reg("superpage_address_low"), number);
    channel.filled = 0;
    channel.superpage.bytes = channel.pushed_bytes = static_cast<std::uint32_t>(value);
    ++channel.pushes;
  });
  regs.on_write(crorc::reg("time_frame"), [this](std::uint32_t number, std::uint64_t value) {
    if (crorc::kFlush.of(static_cast<std::uint32_t>(value)) == 0) return;
    after_write([this, number] {
      Channel& channel = channels_[number];
      if (channel.superpage.bytes == 0) return;
      DmaMaps::Use use(maps());
      report_superpage(number, channel, use);
    });
  });
  regs.on_read(crorc::reg("packets_received"), [this](std::uint32_t number) -> std::uint64_t {
    return (channels_[number].pages - channels_[number].pages_at_start) & 0xffffffffU;
  });
  regs.on_read(crorc::reg("acquisition_rate"),
               [this](std::uint32_t number) -> std::uint64_t { return channels_[number].rate; });
  regs.on_read(crorc::reg("link_status"),
               [this](std::uint32_t) -> std::uint64_t { return qsfp_ ? crorc::kQsfpUp.mask() : 0; });
  regs.on_write(crorc::reg("i2c"), [this](std::uint32_t, std::uint64_t value) {
    if (value == crorc::kQsfpEnable) qsfp_ = true;
  });
  regs.on_write(crorc::reg("flash_command"), [this](std::uint32_t number, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    switch (word >> 24) {
      case crorc::kFlashSetAddress >> 24: flash_.set_address(crorc::kFlashAddress.of(word)); break;
      case crorc::kFlashBusWrite >> 24: flash_.write(static_cast<std::uint16_t>(word)); break;
      case crorc::kFlashBusRead >> 24: registers().set(crorc::reg("flash_data"), flash_.read(), number); break;
      default: break;  // the serial number is always valid
    }
  });
}

/// Answers for DIU and SIU. While the link is down, commands to its far end get no answer.
void CrorcCard::command(Channel& channel, std::uint32_t code) {
  const bool diu = code == crorc::kCommandDiuLoop;
  if (channel.answers.size() >= kMostAnswers || (!diu && !channel.up)) return;
  if ((code & 0xffU) == 0x02) {  // the SIU's interface status: online; its acknowledgement follows
    channel.answers.push_back(2U << 12 | (code & 0xf00U) | 0xc2U);
    channel.answers.push_back((code & 0xf00U) | 0x02U);
    return;
  }
  channel.answers.push_back(code << 8 | 0x1);  // acknowledges the command
}

void CrorcCard::reset_channel(Channel& channel) {
  channel.superpage.bytes = channel.pushed_bytes = channel.filled = 0;
  channel.pushes = channel.count = 0;
  channel.receiving = channel.loopback = channel.generator = false;
  channel.answers.clear();
  channel.source.restart();
  channel.books.cut_off();
}

void CrorcCard::cut_off(Channel& channel) {
  channel.superpage.bytes = channel.filled = 0;
  channel.receiving = false;
  channel.books.cut_off();
}

void CrorcCard::cut_off() {
  for (Channel& channel : channels_) cut_off(channel);
  running_ = false;
}

bool CrorcCard::client_left(ClientId client) {
  bool any = false;
  for (Channel& channel : channels_) {
    if (!channel.receiving || channel.superpage.client != client) continue;
    cut_off(channel);
    any = true;
  }
  return any;
}

void CrorcCard::reset_card() {
  cut_off();
  for (Channel& channel : channels_) {
    reset_channel(channel);
    channel.mend();
  }
}

/// The payload is written: reports the size, then the count.
void CrorcCard::report_superpage(unsigned number, Channel& channel, DmaMaps::Use& use) {
  copies_done();
  const bool given_back = complete_superpage(number, channel, use);
  channel.books.superpage_ends(given_back, channel.filled);
  (given_back ? superpages_ : lost_superpages_).fetch_add(1, std::memory_order_relaxed);
}

bool CrorcCard::complete_superpage(unsigned number, Channel& channel, DmaMaps::Use& use) {
  channel.superpage.bytes = 0;
  if (std::exchange(channel.lose, false)) return false;
  const std::uint32_t count = channel.reported_index(channel.count++);
  const std::uint64_t info = registers().get(crorc::reg("info_address_high"), number) << 32 |
                             registers().get(crorc::reg("info_address_low"), number);
  const auto memory = use.find(channel.superpage.client, info, sizeof(crorc::Completion));
  if (memory.size() < sizeof(crorc::Completion) || info % sizeof(crorc::Completion) != 0) {
    dma_faults_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  auto* const words = reinterpret_cast<std::uint32_t*>(memory.data());
  std::atomic_ref(words[0]).store(channel.filled, std::memory_order_release);
  std::atomic_ref(words[1]).store(count, std::memory_order_release);
  return true;
}

bool CrorcCard::fill(unsigned number, Channel& channel) {
  DmaMaps::Use use(maps());
  const bool dynamic =
      crorc::kDynamicOffset.of(static_cast<std::uint32_t>(registers().get(crorc::reg("configuration"), number))) != 0;
  const auto frame_register = static_cast<std::uint32_t>(registers().get(crorc::reg("time_frame"), number));
  const std::uint32_t time_frame = crorc::kTimeFrameLength.of(frame_register);
  const std::uint32_t before = channel.filled;
  DmaWriter writer(use, channel.superpage.client, bounce_, dma_faults_);
  while (channel.filled - before < kBudget) {
    const std::size_t bytes = channel.write_page(writer, dynamic, time_frame);
    if (bytes == 0) {
      report_superpage(number, channel, use);
      break;
    }
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    if (!channel.source.in_frame()) frames_.store(frames_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  return true;
}

bool CrorcCard::work() {
  const std::uint64_t now = base::steady_now_ns();
  // A turn is short and uses its channels' registers all the time, so it holds the mutex throughout.
  const std::lock_guard lock(mutex());
  const bool second_over = now - rate_at_ns_ >= 1'000'000'000U;
  bool any = false, running = false;
  for (unsigned number = 0; number < crorc::kLinks; ++number) {
    Channel& channel = channels_[number];
    if (second_over) {
      channel.rate = static_cast<std::uint32_t>(static_cast<double>(channel.pages - channel.rate_pages) * 1e9 /
                                                static_cast<double>(now - rate_at_ns_));
      channel.rate_pages = channel.pages;
    }
    channel.comes_up(now);
    running = running || channel.receiving;
    const bool fed = channel.generator || (channel.up && qsfp_ && !channel.loopback);
    if (!channel.receiving || !fed || channel.superpage.bytes == 0 || channel.stuck || !bus_master()) continue;
    any = fill(number, channel) || any;
  }
  if (second_over) rate_at_ns_ = now;
  running_.store(running, std::memory_order_relaxed);
  return any;
}

bool CrorcCard::is_idle() const { return std::ranges::none_of(channels_, &Channel::receiving); }

bool CrorcCard::inject_card(const Fault& fault) { return fault.link < crorc::kLinks && channels_[fault.link].inject(fault); }

void CrorcCard::report_card(FunctionReport& report) const {
  report.triggers = frames_;
  report.superpages = superpages_;
  FrameTotals frames;
  {
    const std::lock_guard lock(mutex());
    for (const Channel& channel : channels_) frames.add(channel.books);
  }
  report.chunks = frames.sent;
  report.bytes -= std::min(report.bytes, frames.bytes_lost);
  report.add("superpages_lost", lost_superpages_);
  frames.report(report);
  report.add("descriptors_refused", refused_pushes_);
}

}  // namespace rodeo::emulator
