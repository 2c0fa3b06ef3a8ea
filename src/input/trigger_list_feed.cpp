#include "input/trigger_list_feed.h"

#include <cassert>

#include "formats/trigger_plan.h"
#include "formats/ttc_packet.h"

namespace rodeo::input {
namespace {

constexpr std::uint32_t kPageBytes = 1024;  // 39 packets, more than a batch
constexpr std::size_t kPages = 4096;
constexpr std::size_t kReserve = 1;

}  // namespace

TriggerListFeed::TriggerListFeed()
    : stream_(kPages, {.bytes = kPageBytes, .runs = 4, .entries = 0}, "memory of the generated trigger list", kReserve) {}

void TriggerListFeed::send(const TriggerHistory& history, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t trigger = first; trigger < end; ++trigger) {
    const AcceptedTrigger& accepted = history[trigger];
    formats::TtcPacket packet;
    packet.l1id = accepted.l1id;
    packet.bcid = static_cast<std::uint16_t>(accepted.header >> 32 & 0xfffU);
    packet.trigger_type = static_cast<std::uint16_t>(accepted.header >> 48 & 0xffU);
    packet.orbit =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(static_cast<double>(accepted.time_ns) / formats::kOrbitNs));
    packet.l0id = static_cast<std::uint32_t>(trigger);
    packet.l1a_counter = (trigger + 1) & 0xffff'ffff'ffffU;
    const auto size = static_cast<std::uint32_t>(packet.size_bytes());
    const bool room = stream_.ensure(size, 1);
    assert(room && "busy() was asked");
    if (!room) return;
    packet.write({stream_.add_chunk(0, size, chunk_status::kOk), size});
  }
  stream_.set_page_clock(history[end - 1].time_ns);
  stream_.close_page();
}

}  // namespace rodeo::input
