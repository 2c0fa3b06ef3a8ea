// The driver's end of vfio-user with a hostile server: the script decides the server's answers (right, refused, cut, for
// another request, with other descriptors), its requests, and the driver's calls. Every error has its code; no access leaves
// a region; nothing stays open.
#include <sys/socket.h>

#include <array>
#include <string_view>
#include <vector>

#include "base/fd_socket.h"
#include "card/pci/vfio_user_client.h"
#include "formats/vfio_user.h"
#include "fuzz/check.h"
#include "fuzz/script.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
namespace pci = card::pci;
namespace vfio = formats::vfio_user;

constexpr std::size_t kMostBytes = 64 << 10;  // limit of the answers: the socket accepts them without a reader
constexpr std::size_t kMemoryBytes = 64 << 10;

bool known(const Error& error) {
  constexpr std::array<std::string_view, 7> kCodes{"card.gone",       "card.timeout",    "card.protocol", "card.refused",
                                                   "card.bad_access", "card.dma_memory", "card.map"};
  return std::ranges::find(kCodes, error.code) != kCodes.end() && !error.what.empty();
}

enum class Act : std::uint8_t { read, write, post, exchange, map, dma_map, dma_unmap, interrupt, reset, bus_master, count };

/// All answers of the server, sent before the first request.
class HostileServer {
 public:
  HostileServer(base::UniqueFd socket, Script& script) : socket_(std::move(socket)), script_(script) {}

  void answer(vfio::Command command, std::uint32_t detail = 0) {
    const vfio::Header to{.id = id_++, .command = static_cast<std::uint16_t>(command), .size = 16};
    writer_.clear();
    fds_ = 0;
    const unsigned how = script_.byte();
    const bool wrong = how >= 0x80;
    if (!wrong) {
      right(to, detail);
    } else {
      switch (how % 8) {
        case 0: writer_.error(to, script_.byte()); break;
        case 1: writer_.reply({.id = static_cast<std::uint16_t>(to.id + script_.byte()), .command = to.command}); break;
        case 2: writer_.reply({.id = to.id, .command = static_cast<std::uint16_t>(script_.below(20))}); break;
        case 3: {  // a right answer with one wrong byte
          right(to, detail);
          std::vector<std::byte> bytes(writer_.bytes().begin(), writer_.bytes().end());
          bytes[script_.byte() % bytes.size()] = std::byte{script_.byte()};
          return send(bytes);
        }
        case 4: {  // truncated, or longer than announced
          right(to, detail);
          std::vector<std::byte> bytes(writer_.bytes().begin(), writer_.bytes().end());
          bytes.resize(bytes.size() + script_.byte() - 64U < 4096 ? bytes.size() + script_.byte() : bytes.size() / 2);
          return send(bytes);
        }
        case 5:  // first a request of the server
          writer_.request(script_.byte(), vfio::DeviceInfo{}, script_.byte() & 0x10U);
          right(to, detail);
          break;
        case 6:
          fds_ = script_.byte() % 33U;
          right(to, detail);
          break;
        default: return send(script_.bytes(script_.byte()));
      }
    }
    send(writer_.bytes());
  }

  void end() { (void)::shutdown(socket_.get(), SHUT_WR); }

 private:
  void right(const vfio::Header& to, std::uint32_t detail) {
    switch (static_cast<vfio::Command>(to.command)) {
      case vfio::Command::version:
        return writer_.reply(to, vfio::Version{.minor = script_.byte(),
                                               .capabilities = {.max_data_xfer_size = script_.byte() * std::uint64_t{64},
                                                                .write_multiple = script_.byte() % 2 == 0}});
      case vfio::Command::device_get_info:
        return writer_.reply(to, vfio::DeviceInfo{.flags = 3, .regions = script_.byte(), .irqs = script_.byte()});
      case vfio::Command::device_get_region_info: {
        std::vector<vfio::Area> areas(script_.below(4));
        for (auto& area : areas)
          area = {.offset = script_.byte() * std::uint64_t{1024},
                  .size = script_.number<std::uint16_t>() * std::uint64_t{16}};
        if (!areas.empty()) fds_ = 1;
        const vfio::RegionInfo info{.flags = script_.below(8),
                                    .index = detail,
                                    .size = script_.byte() * std::uint64_t{4096},
                                    .offset = script_.byte() * std::uint64_t{2048}};
        return writer_.reply(to, info, areas, 4096);
      }
      case vfio::Command::device_get_irq_info:
        return writer_.reply(
            to, vfio::IrqInfo{.flags = script_.below(4), .index = detail, .count = script_.number<std::uint16_t>()});
      case vfio::Command::region_read: {
        const auto room = writer_.reply_read(to, {.offset = 0, .region = 0, .count = detail});
        for (auto& byte : room) byte = std::byte{script_.byte()};
        return;
      }
      default: return writer_.reply(to);
    }
  }

  void send(std::span<const std::byte> bytes) {
    if (bytes.empty() || sent_ + bytes.size() > kMostBytes) return;
    sent_ += bytes.size();
    std::vector<base::UniqueFd> fds;
    std::vector<int> numbers;
    for (std::size_t i = 0; i < fds_; ++i) {
      fds.push_back(memory_fd(script_.byte() * std::size_t{1024}));
      numbers.push_back(fds.back().get());
    }
    (void)base::send_all(socket_.get(), bytes, numbers, std::chrono::nanoseconds{0});
  }

  base::UniqueFd socket_;
  Script& script_;
  vfio::MessageWriter writer_;
  std::uint16_t id_ = 0;
  std::size_t fds_ = 0;
  std::size_t sent_ = 0;
};

struct Step {
  Act act;
  unsigned region;
  std::uint64_t offset;
  std::uint32_t bytes;
};

/// The number and kinds of answers that the driver waits for.
void answer_step(HostileServer& server, const Step& step) {
  using vfio::Command;
  switch (step.act) {
    case Act::read: return server.answer(Command::region_read, step.bytes);
    case Act::write: return server.answer(Command::region_write);
    case Act::exchange: server.answer(Command::region_read, 4); return server.answer(Command::region_read, 4);
    case Act::dma_map: return server.answer(Command::dma_map);
    case Act::dma_unmap: return server.answer(Command::dma_unmap);
    case Act::interrupt: return server.answer(Command::device_set_irqs);
    case Act::reset: return server.answer(Command::device_reset);
    case Act::bus_master: server.answer(Command::region_read, 2); return server.answer(Command::region_write);
    case Act::post:
    case Act::map:
    case Act::count: return;
  }
}

Result<void> map_and_touch(pci::Function& function, const Step& step) {
  const auto info = function.region(step.region);
  if (!info) return std::unexpected(info.error());
  for (const auto& range : info->mappable)
    FUZZ_CHECK(range.bytes <= info->bytes && range.offset <= info->bytes - range.bytes);
  const pci::MappableRange range = info->mappable.empty() ? pci::MappableRange{step.offset, step.bytes}
                                                          : info->mappable[step.offset % info->mappable.size()];
  const auto memory = function.map(step.region, range);
  if (!memory) return std::unexpected(memory.error());
  FUZZ_CHECK(memory->bytes() == range.bytes);
  for (const std::uint64_t offset : {std::uint64_t{0}, range.bytes - 1}) {
    if (const auto one = memory->at<std::uint8_t>(offset)) (void)one.load();
  }
  return {};
}

Result<void> act(pci::Function& function, const Step& step, int memory) {
  std::array<std::byte, 8> value{};
  const auto some = std::span(value).first(std::min<std::size_t>(step.bytes, value.size()));
  switch (step.act) {
    case Act::read: return function.read(step.region, step.offset, some);
    case Act::write: return function.write(step.region, step.offset, some);
    case Act::post: {
      std::array<pci::RegionOperation, 3> writes{{{step.region, step.offset, 4, true, 1},
                                                  {step.region, step.offset, 4, true, 2},
                                                  {step.region, step.offset, 8, true, 3}}};
      return function.exchange(writes);
    }
    case Act::exchange: {
      std::array<pci::RegionOperation, 3> operations{{{step.region, step.offset, 4, true, 1},
                                                      {step.region, step.offset, 4, false, 0},
                                                      {step.region, step.offset, 4, false, 0}}};
      return function.exchange(operations);
    }
    case Act::map: return map_and_touch(function, step);
    case Act::dma_map: {
      alignas(4096) static std::array<std::byte, kMemoryBytes> buffer;
      return function.dma_map(buffer, memory, 0, step.offset);
    }
    case Act::dma_unmap: return function.dma_unmap(step.offset, kMemoryBytes);
    case Act::interrupt: {
      const auto fd = function.interrupt(step.bytes);
      if (!fd) return std::unexpected(fd.error());
      FUZZ_CHECK(*fd >= 0);
      return {};
    }
    case Act::reset: return function.reset();
    case Act::bus_master: return function.set_bus_master(step.bytes % 2 == 0);
    case Act::count: break;
  }
  return {};
}

void play(Script script) {
  std::array<int, 2> ends{};
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  base::UniqueFd ours(ends[0]);
  HostileServer server(base::UniqueFd(ends[1]), script);
  std::vector<Step> steps(script.below(12));
  for (Step& step : steps) {
    step = {.act = static_cast<Act>(script.below(static_cast<unsigned>(Act::count))),
            .region = script.below(10),
            .offset = script.byte() * std::uint64_t{script.byte() % 2 == 0 ? 4096U : 4U},
            .bytes = 1U << script.below(5)};
  }
  server.answer(vfio::Command::version);
  server.answer(vfio::Command::device_get_info);
  for (unsigned region = 0; region < 9; ++region) server.answer(vfio::Command::device_get_region_info, region);
  for (const unsigned irqs : {2U, 1U}) server.answer(vfio::Command::device_get_irq_info, irqs);
  for (const Step& step : steps) answer_step(server, step);
  server.end();

  const auto function =
      pci::open_vfio_user(std::move(ours), "card", pci::Address{}, {.patience = std::chrono::milliseconds{200}});
  if (!function) {
    FUZZ_CHECK(known(function.error()));
    return;
  }
  const base::UniqueFd memory = memory_fd(kMemoryBytes);
  std::string broken;
  for (const Step& step : steps) {
    const auto done = act(**function, step, memory.get());
    if (done) continue;
    FUZZ_CHECK(known(done.error()));
    const bool asks =
        done.error().code != "card.bad_access" && done.error().code != "card.dma_memory" && done.error().code != "card.map";
    if (!broken.empty() && asks) FUZZ_CHECK(done.error().what == broken);
    if (done.error().code == "card.gone" || done.error().code == "card.timeout") broken = done.error().what;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = lowest_free_fd();
  play(Script(data, size));
  FUZZ_CHECK(lowest_free_fd() == before);
  return 0;
}
