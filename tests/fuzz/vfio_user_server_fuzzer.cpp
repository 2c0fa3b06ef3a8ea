// The vfio-user server of the emulated cards: a script of messages (right, wrong, truncated, joined, with descriptors), DMA
// turns, faults and vanishing memory for each kind of card. Every reply is well formed and in order; a client leaves nothing
// behind.
#include <cerrno>
#include <deque>
#include <memory>
#include <vector>

#include <sys/eventfd.h>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "emulator/crorc_card.h"
#include "emulator/cru_card.h"
#include "emulator/felix_card.h"
#include "fuzz/check.h"
#include "fuzz/script.h"
#include "trigger/authority.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
namespace vfio = formats::vfio_user;
namespace felix = card_registers::felix;
namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;

constexpr std::size_t kMemoryBytes = 256 << 10;
constexpr unsigned kMostSteps = 300;
constexpr unsigned kMostTurns = 40;

/// One client: its messages and the expected replies.
struct Client {
  std::unique_ptr<emulator::VfioUserSession> session;
  struct Expected {
    std::uint16_t id;
    std::uint16_t command;
  };
  std::deque<Expected> expected;
  bool in_step = true;  // all messages were whole with right headers: the replies are known
  std::vector<std::byte> held;
  base::ReceivedFds held_fds;
  std::uint16_t id = 0;
};

class Play {
 public:
  Play(const std::uint8_t* data, std::size_t size) : script_(data, size), memory_(memory_fd(kMemoryBytes)) {
    const emulator::PciFunction::Identity identity{.name = "card", .address = "0000:3b:00.0"};
    auto triggers = [&](std::uint64_t capacity) {
      return std::make_unique<trigger::TriggerSource>(authority_, "card", capacity);
    };
    emulator::EmulatedCardSettings settings;
    kind_ = script_.below(3);
    switch (kind_) {
      case 0: {
        settings.felix.links = 2;
        settings.felix.elinks_per_link = 3;
        card_ = std::make_unique<emulator::FelixCard>(identity, settings, triggers(64));
        map_ = &felix::kMap;
        break;
      }
      case 1:
        card_ = std::make_unique<emulator::CruCard>(identity, settings, triggers(1 << 20));
        map_ = &cru::kMap;
        break;
      default:
        card_ = std::make_unique<emulator::CrorcCard>(identity, settings);
        map_ = &crorc::kMap;
        break;
    }
    for (Client& client : clients_) connect(client);
  }

  void run() {
    for (unsigned step = 0; step < kMostSteps && !script_.ended(); ++step) one();
    for (Client& client : clients_) {
      deliver(client);
      client.session.reset();
    }
    FUZZ_CHECK(card_->report().counters.size() < 100);
  }

 private:
  Client& client() { return clients_[current_]; }

  void connect(Client& client) {
    client = Client{};
    client.session = card_->talk();
    say(client, vfio::Version{.capabilities = {.max_msg_fds = 8}});
  }

  /// One message, with flags and descriptors of the script; it is sent at once, or held and joined to the next one.
  void say(Client& client, const vfio::Request& request, bool plain = true) {
    const unsigned how = plain ? 0 : script_.byte();
    const std::uint32_t flags = (how & 1U) != 0 ? vfio::Header::kNoReply : 0;
    writer_.clear();
    writer_.request(++client.id, request, flags);
    unsigned fds = (how >> 1) & 3U;
    if (fds == 3) fds = script_.below(12);
    append(client, writer_.bytes(), fds, (how >> 3) & 3U);
    if (flags == 0) client.expected.push_back({client.id, vfio::read_header(writer_.bytes()).command});
    if ((how & 0x20U) == 0) deliver(client, (how & 0x40U) != 0);
  }

  void append(Client& client, std::span<const std::byte> bytes, unsigned fds, unsigned what) {
    client.held.insert(client.held.end(), bytes.begin(), bytes.end());
    for (unsigned i = 0; i < fds; ++i) {
      switch (what) {
        case 0: client.held_fds.fds.emplace_back(::dup(memory_.get())); break;
        case 1: client.held_fds.fds.emplace_back(::eventfd(0, EFD_CLOEXEC)); break;
        case 2: client.held_fds.fds.push_back(memory_fd(script_.byte() * std::size_t{1024})); break;
        default: client.held_fds.fds.push_back(memory_fd(0)); break;
      }
    }
  }

  void deliver(Client& client, bool cut = false) {
    const std::size_t first = cut && !client.held.empty() ? script_.number<std::uint16_t>() % client.held.size() : 0;
    hear(client, std::span(client.held).first(first));
    hear(client, std::span(client.held).subspan(first));
    client.held.clear();
    client.held_fds.fds.clear();
    if (client.in_step && !client.session->over()) FUZZ_CHECK(client.expected.empty());
  }

  void hear(Client& client, std::span<const std::byte> bytes) {
    emulator::VfioUserSession& session = *client.session;
    while (!bytes.empty() && !session.over()) {
      const auto room = session.room();
      FUZZ_CHECK(!room.empty() && room.size() <= vfio::max_message_bytes(vfio::kDefaultTransferBytes) + 16384);
      const std::size_t some = std::min(room.size(), bytes.size());
      std::copy_n(bytes.begin(), some, room.begin());
      session.received(some, client.held_fds);
      bytes = bytes.subspan(some);
      while (session.handle_message()) {
        if (session.reply_bytes() > 65536) take_replies(client);
      }
      take_replies(client);
    }
  }

  void take_replies(Client& client) {
    client.session->send_replies([&](std::span<const std::byte> bytes, std::span<const int> fds) {
      FUZZ_CHECK(!bytes.empty() && fds.size() <= 1);
      if (!fds.empty())
        FUZZ_CHECK(vfio::read_header(bytes).command == static_cast<std::uint16_t>(vfio::Command::device_get_region_info));
      while (!bytes.empty()) {
        FUZZ_CHECK(bytes.size() >= vfio::kHeaderBytes);
        const vfio::Header header = vfio::read_header(bytes);
        FUZZ_CHECK(header.size >= vfio::kHeaderBytes && header.size <= bytes.size());
        FUZZ_CHECK(header.is_reply() && (header.flags & ~(vfio::Header::kReply | vfio::Header::kError)) == 0);
        if (header.is_error()) {
          FUZZ_CHECK(header.size == vfio::kHeaderBytes && header.error > 0 && header.error < 4096);
        } else {
          FUZZ_CHECK(header.error == 0);
          check_payload(header, bytes.subspan(vfio::kHeaderBytes, header.size - vfio::kHeaderBytes));
        }
        if (client.in_step) {
          FUZZ_CHECK(!client.expected.empty());
          FUZZ_CHECK(client.expected.front().id == header.id && client.expected.front().command == header.command);
          client.expected.pop_front();
        }
        bytes = bytes.subspan(header.size);
      }
      return true;
    });
  }

  static void check_payload(const vfio::Header& header, std::span<const std::byte> payload) {
    switch (static_cast<vfio::Command>(header.command)) {
      case vfio::Command::version: FUZZ_CHECK(vfio::decode_version(payload).has_value()); break;
      case vfio::Command::device_get_info: FUZZ_CHECK(vfio::decode_device_info(payload).has_value()); break;
      case vfio::Command::device_get_region_info: FUZZ_CHECK(vfio::decode_region_info(payload).has_value()); break;
      case vfio::Command::device_get_irq_info: FUZZ_CHECK(vfio::decode_irq_info(payload).has_value()); break;
      case vfio::Command::region_read: FUZZ_CHECK(vfio::decode_region_data(payload).has_value()); break;
      case vfio::Command::dma_map:
      case vfio::Command::device_set_irqs:
      case vfio::Command::device_reset: FUZZ_CHECK(payload.empty()); break;
      default: break;
    }
  }

  vfio::RegionAccess place() {
    const unsigned how = script_.byte();
    vfio::RegionAccess access;
    if (how % 4 != 0) {
      const auto registers = map_->registers();
      const auto& reg = registers[script_.number<std::uint16_t>() % registers.size()];
      access = {.offset = reg.at(script_.byte() % reg.total()), .region = reg.bar, .count = reg.width_bytes};
    } else {
      access = {.offset = script_.number<std::uint32_t>() & 0xffffffU,
                .region = script_.byte() % 10U,
                .count = script_.number<std::uint16_t>()};
      if (script_.byte() % 4 == 0) access.offset &= 0xfffU;
    }
    return access;
  }

  void write(Client& client, const card_registers::Register& reg, std::uint32_t index, std::uint64_t value) {
    const auto bytes = std::as_bytes(std::span(&value, 1)).first(reg.width_bytes);
    say(client, vfio::RegionWrite{{.offset = reg.at(index), .region = reg.bar, .count = reg.width_bytes}, bytes});
  }

  /// A driver's steps to get data, with the script's numbers.
  void use_dma(Client& client) {
    const std::uint16_t on = 6;
    say(client, vfio::RegionWrite{{.offset = 4, .region = 7, .count = 2}, std::as_bytes(std::span(&on, 1))});
    append(client, {}, 1, 0);
    say(client, vfio::DmaMap{.flags = 3, .address = 0x10000, .size = kMemoryBytes});
    const std::uint32_t link = script_.below(kind_ == 0 ? 8 : kind_ == 1 ? 16 : 6);
    const std::uint64_t address = script_.number<std::uint16_t>() * std::uint64_t{32};
    const std::uint32_t size = script_.byte();
    const std::uint8_t switches = script_.byte();
    if (kind_ == 0) {
      write(client, felix::reg("dma_start"), link, address);
      write(client, felix::reg("dma_end"), link, address + size * 1024U);
      write(client, felix::reg("dma_read_pointer"), link, address + script_.byte() * 1024U);
      write(client, felix::reg("dma_control"), link, switches * 256U);
      write(client, felix::reg("dma_enable"), 0, script_.byte());
    } else if (kind_ == 1) {
      write(client, cru::reg("data_source"), 0, switches & 1U);
      write(client, cru::reg("datapath_generator"), script_.below(2), (switches & 2U) != 0 ? 0x80000002U : 0U);
      write(client, cru::reg("datapath_enable"), 0, 0x800000ffU);
      write(client, cru::reg("user_control"), 0, 1);
      write(client, cru::reg("superpage_address_low"), link, address);
      for (unsigned i = 0; i < 1U + (switches >> 4); ++i) write(client, cru::reg("superpage_push"), link, size);
      write(client, cru::reg("dma_control"), 0, (switches & 4U) != 0 ? 0x100U : 1U);
      write(client, cru::reg("superpage_size_fifo"), link, 0xbadcafe);
    } else {
      write(client, crorc::reg("info_address_low"), 0, 0x10000U + script_.byte() * 8U);
      write(client, crorc::reg("superpage_address_low"), 0, address);
      write(client, crorc::reg("superpage_push"), 0, size * 1024U);
      write(client, crorc::reg("data_generator"), 0, (switches & 1U) != 0 ? 1U << 31 : 0U);
      write(client, crorc::reg("channel_csr"), 0, (switches & 2U) != 0 ? 1U << 9 : 0U);
      if ((switches & 4U) != 0) write(client, crorc::reg("time_frame"), 0, 1U << 16);
    }
  }

  void turn(unsigned count) {
    for (unsigned i = 0; i < count && turns_ < kMostTurns; ++i, ++turns_) card_->turn();
  }

  void one() {
    Client& client = this->client();
    if (client.session->over()) return connect(client);
    switch (script_.below(22)) {
      case 0: return say(client, vfio::Version{.major = script_.byte(), .minor = script_.byte()}, false);
      case 1:
        return say(client,
                   vfio::DmaMap{.flags = script_.byte() & 7U,
                                .offset = script_.byte() * std::uint64_t{4096},
                                .address = script_.number<std::uint32_t>() * std::uint64_t{4096},
                                .size = script_.byte() * std::uint64_t{4096}},
                   false);
      case 2: {
        const std::uint32_t flags = script_.below(4);
        return say(client,
                   vfio::DmaUnmap{.flags = flags,
                                  .address = flags == 2 ? 0 : script_.number<std::uint32_t>() * std::uint64_t{4096},
                                  .size = flags == 2 ? 0 : script_.byte() * std::uint64_t{4096}},
                   false);
      }
      case 3: return say(client, vfio::DeviceInfo{}, false);
      case 4: return say(client, vfio::RegionInfo{.argsz = script_.byte(), .index = script_.below(12)}, false);
      case 5: return say(client, vfio::RegionIoFds{.index = script_.below(12)}, false);
      case 6: return say(client, vfio::IrqInfo{.index = script_.below(8)}, false);
      case 7: {
        const std::uint32_t flags = script_.byte();
        const std::uint32_t count = script_.below(10);
        const auto data = script_.bytes((flags & vfio::SetIrqs::kDataBool) != 0 ? count : 0);
        return say(
            client,
            vfio::SetIrqs{.flags = flags,
                          .index = script_.below(6),
                          .start = script_.below(10),
                          .count = (flags & vfio::SetIrqs::kDataBool) != 0 ? static_cast<std::uint32_t>(data.size()) : count,
                          .data = data},
            false);
      }
      case 8:
      case 9: return say(client, vfio::RegionRead{place()}, false);
      case 10:
      case 11: {
        auto access = place();
        const auto data = script_.bytes(access.count);
        access.count = static_cast<std::uint32_t>(data.size());
        return say(client, vfio::RegionWrite{access, data}, false);
      }
      case 12: return say(client, vfio::DeviceReset{}, false);
      case 13: {
        std::vector<vfio::SmallWrite> writes(script_.below(8));
        for (auto& small : writes) {
          static_cast<vfio::RegionAccess&>(small) = place();
          small.value = script_.number<std::uint64_t>();
        }
        writer_.clear();
        writer_.write_multi(++client.id, writes);
        append(client, writer_.bytes(), 0, 0);
        client.expected.push_back({client.id, static_cast<std::uint16_t>(vfio::Command::region_write_multi)});
        return deliver(client);
      }
      case 14: return say(client, vfio::DeviceFeature{}, false);
      case 15: {  // any bytes
        client.in_step = false;
        const unsigned fds = script_.below(4);
        const auto bytes = script_.bytes(script_.byte());
        append(client, bytes, fds, fds);
        return deliver(client);
      }
      case 16: {  // a header with any announced size
        client.in_step = false;
        const vfio::Header header{.id = 7,
                                  .command = static_cast<std::uint16_t>(script_.below(20)),
                                  .size = script_.number<std::uint32_t>() & 0x1fffffU,
                                  .flags = script_.byte()};
        append(client, std::as_bytes(std::span(&header, 1)), script_.below(4), 0);
        append(client, script_.bytes(script_.byte()), 0, 0);
        return deliver(client);
      }
      case 17: return turn(1 + script_.below(4));
      case 18: {
        const emulator::Fault fault{.kind = static_cast<emulator::FaultKind>(script_.below(12)),
                                    .link = script_.below(20),
                                    .value = static_cast<double>(script_.byte()),
                                    .duration = std::chrono::nanoseconds(script_.byte())};
        (void)card_->inject(fault);
        return;
      }
      case 19: current_ = 1 - current_; return;
      case 20: (void)!::ftruncate(memory_.get(), script_.byte() * 2048); return;
      default: use_dma(client); return turn(1);
    }
  }

  Script script_;
  base::UniqueFd memory_;
  unsigned kind_ = 0;
  trigger::TriggerAuthority authority_{trigger::TriggerSettings{}};
  const card_registers::RegisterMap* map_ = nullptr;
  std::unique_ptr<emulator::PciFunction> card_;
  std::array<Client, 2> clients_;
  std::size_t current_ = 0;
  unsigned turns_ = 0;
  vfio::MessageWriter writer_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = lowest_free_fd();
  Play(data, size).run();
  FUZZ_CHECK(lowest_free_fd() == before);
  return 0;
}
