// The DMA channels of an emulated FELIX card: enabled descriptors, pointers of the circular memory, and blocks written
// there.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "card_registers/felix.h"
#include "emulator/copies_done.h"
#include "emulator/felix_card.h"

namespace rodeo::emulator {
namespace {

namespace felix = card_registers::felix;

constexpr std::size_t kTurnBytes = 512 << 10;  // most bytes of blocks in one turn of the DMA thread

}  // namespace

void FelixCard::begin(unsigned index) {
  Channel& channel = channels_[index];
  const std::uint64_t start = at(felix::reg("dma_start"), index).load(std::memory_order_acquire);
  const std::uint64_t end = at(felix::reg("dma_end"), index).load(std::memory_order_acquire);
  const std::uint64_t block = settings_.felix.format.block_bytes;
  const std::uint64_t control = at(felix::reg("dma_control"), index).load(std::memory_order_acquire);
  const bool from_host = (control & felix::kFromHost.mask()) != 0;
  const std::uint64_t packet = 4 * felix::kTlpWords.of(static_cast<std::uint32_t>(control));
  // On a real host, a packet that is too long is malformed: a fatal error. The emulator sends nothing then, and counts the
  // case.
  const bool too_long = packet > (from_host ? max_read_request() : max_payload());
  if (too_long) long_packets_.fetch_add(1, std::memory_order_relaxed);
  const bool fits = packet > 0 && !too_long && end > start && start % 64 == 0 &&
                    (from_host ? (end - start) % formats::kFromHostPacketBytes == 0
                               : (end - start) % block == 0 && end - start >= 2 * block);
  std::optional<ClientId> owner;
  if (fits) {
    DmaMaps::Use use(maps());
    owner = use.owner(start, end - start);
  }
  if (!owner || from_host != (index >= felix::kToHostDescriptors)) {
    bad_descriptors_.fetch_add(1, std::memory_order_relaxed);
    at(felix::reg("dma_enable")).fetch_and(~(std::uint64_t{1} << index), std::memory_order_relaxed);
    return;
  }
  channel.client = *owner;
  channel.start = channel.position = channel.read = start;
  channel.end = end;
  // A read pointer outside the memory frees nothing.
  const std::uint64_t read = at(felix::reg("dma_read_pointer"), index).load(std::memory_order_acquire);
  if (!from_host && read > start && read < end) channel.read = read;
  channel.lost_reader = !from_host && (read < start || read > end);
  if (channel.lost_reader) bad_read_pointers_.fetch_add(1, std::memory_order_relaxed);
  if (from_host) from_host_.clear();  // drops packets of a former owner
  channel.even_dma = channel.even_host = channel.told = false;
  channel.sent = channel.dropped = 0;
  channel.state = Channel::State::on;
  at(felix::reg("dma_position"), index).store(start, std::memory_order_release);
  at(felix::reg("dma_status"), index).store(0, std::memory_order_release);
}

/// The host sees the new position after the data.
void FelixCard::publish(unsigned index) {
  Channel& channel = channels_[index];
  copies_done();
  const std::uint64_t status =
      (channel.even_dma ? felix::kEvenDma.mask() : 0) | (channel.even_host ? felix::kEvenHost.mask() : 0);
  at(felix::reg("dma_status"), index).store(status, std::memory_order_release);
  at(felix::reg("dma_position"), index).store(channel.position, std::memory_order_release);
  if (!empty(channel) && !channel.told && (interrupt_enable_.load(std::memory_order_relaxed) >> index & 1U) != 0) {
    channel.told = true;
    interrupts().raise(index);
  }
}

bool FelixCard::update_channel(unsigned index) {
  Channel& channel = channels_[index];
  const bool enabled = (at(felix::reg("dma_enable")).load(std::memory_order_acquire) >> index & 1U) != 0;
  if (enabled && channel.state == Channel::State::off) {
    begin(index);
    return true;
  }
  if (enabled && channel.state == Channel::State::ending) channel.state = Channel::State::on;
  if (!enabled && channel.state == Channel::State::on) {
    if (!ends_in_order(index)) {
      end(index);
      return true;
    }
    channel.state = Channel::State::ending;
    ending_.restart();
  }
  if (!channel.running()) return false;
  const std::uint64_t read = at(felix::reg("dma_read_pointer"), index).load(std::memory_order_acquire);
  if (channel.lost_reader) {
    if (read < channel.start || read > channel.end) return false;
    channel.lost_reader = false;
    channel.read = read == channel.end ? channel.start : read;
    return true;
  }
  if (read == channel.read) return false;
  const bool cuts_packet = index >= felix::kToHostDescriptors && (read - channel.start) % formats::kFromHostPacketBytes != 0;
  if (read < channel.start || read > channel.end || cuts_packet) {
    bad_read_pointers_.fetch_add(1, std::memory_order_relaxed);
    channel.read = channel.position;  // the pointer is invalid: all memory counts as read
    channel.even_host = channel.even_dma;
    return false;
  }
  const std::uint64_t wrapped = read == channel.end ? channel.start : read;
  const std::uint64_t gap = at(felix::reg("dma_pointer_gap")).load(std::memory_order_relaxed);
  if (wrapped < channel.read && channel.read - wrapped > gap) {
    channel.even_host = !channel.even_host;
    publish(index);
  }
  channel.read = wrapped;
  channel.told = false;
  return true;
}

/// Counts the free bytes. If the parities differ: up to the read pointer. Else: to the end of the memory, then up to the
/// pointer.
std::uint64_t FelixCard::free_bytes(const Channel& channel) {
  if (channel.lost_reader) return 0;
  if (channel.even_dma != channel.even_host && channel.read >= channel.position) return channel.read - channel.position;
  return channel.end - channel.position + (channel.read - channel.start);
}

std::uint64_t FelixCard::triggers_that_fit() const {
  std::array<double, felix::kToHostDescriptors> per_trigger{};
  std::array<std::uint64_t, felix::kToHostDescriptors> open{};
  double all = 0;
  for (unsigned link = 0; link < settings_.felix.links; ++link) {
    const unsigned channel = channel_of_[link].load(std::memory_order_relaxed);
    per_trigger[channel] += source_.bytes_per_trigger(link);
    open[channel] += source_.open_blocks(link) * settings_.felix.format.block_bytes;
    all += source_.bytes_per_trigger(link) / settings_.felix.links_per_group;
  }
  double fit = std::max(1.0, kTurnBytes / std::max(all, 1.0));
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    const Channel& channel = channels_[i];
    if (!channel.running() || per_trigger[i] == 0) continue;
    const std::uint64_t room = channel.stuck ? 0 : free_bytes(channel);
    fit = std::min(fit, room > open[i] ? static_cast<double>(room - open[i]) / per_trigger[i] : 0.0);
  }
  return static_cast<std::uint64_t>(fit);
}

BlockFate FelixCard::block(unsigned link, std::span<const std::byte> block) {
  Channel& channel = channels_[channel_of_[link].load(std::memory_order_relaxed)];
  if (!channel.running()) {
    channel.dropped.store(channel.dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    blocks_dropped_.store(blocks_dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return BlockFate::dropped;
  }
  if (channel.memory.size() < block.size()) {
    channel.memory =
        use_->find(channel.client, channel.position, std::min<std::uint64_t>(channel.end - channel.position, kTurnBytes));
  }
  BlockFate fate = BlockFate::sent;
  if (channel.memory.size() >= block.size()) {
    if (reinterpret_cast<std::uintptr_t>(channel.memory.data()) % 64 == 0) {
      kernels_.copy_block(channel.memory.data(), block.data(), block.size());
    } else {
      std::memcpy(channel.memory.data(), block.data(), block.size());
    }
    channel.memory = channel.memory.subspan(block.size());
  } else if (!use_->write(channel.client, channel.position, block)) {
    // A block may cross the border of two maps. An IOMMU would stop a write into unmapped memory.
    dma_faults_.fetch_add(1, std::memory_order_relaxed);
    fate = BlockFate::unmapped;
  }
  channel.position += block.size();
  if (channel.position == channel.end) {
    channel.position = channel.start;
    channel.even_dma = !channel.even_dma;
    channel.memory = {};
  }
  if (fate == BlockFate::unmapped) return fate;
  channel.sent.store(channel.sent.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bytes_.store(bytes_.load(std::memory_order_relaxed) + block.size(), std::memory_order_relaxed);
  return fate;
}

void FelixCard::lost(unsigned link) {
  channels_[channel_of_[link].load(std::memory_order_relaxed)].dropped.fetch_add(1, std::memory_order_relaxed);
}

/// Bytes of all blocks that may be open on the links of a channel.
std::uint64_t FelixCard::open_bytes(unsigned channel) const {
  std::uint64_t blocks = 0;
  for (unsigned link = 0; link < settings_.felix.links; ++link) {
    if (channel_of_[link].load(std::memory_order_relaxed) == channel) blocks += source_.open_blocks(link);
  }
  return blocks * settings_.felix.format.block_bytes;
}

/// True if the to-host memory has room for a message that comes back; until then the message waits in the host.
bool FelixCard::room_to_loop_back(const formats::FromHostPacket& packet, unsigned to_host) const {
  const Channel& channel = channels_[to_host];
  const std::uint64_t message = from_host_.begun(packet.elink) + packet.bytes;
  // A block has room for data, except for its header and two trailers (16 bytes).
  const std::uint64_t block = settings_.felix.format.block_bytes;
  const std::uint64_t blocks = message / (block - 16) + 2;
  return !channel.stuck && free_bytes(channel) >= open_bytes(to_host) + blocks * block;
}

/// False: there is no room for the message that comes back.
bool FelixCard::handle_packet(const formats::FromHostPacket& packet, std::uint64_t now_ns) {
  const unsigned link = packet.elink >> 6;
  const unsigned elink = packet.elink & 0x3fU;
  if (link >= settings_.felix.links) {
    from_host_bad_packets_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  const unsigned to_host = channel_of_[link].load(std::memory_order_relaxed);
  const bool comes_back = source_.loops_back(link, elink) && channels_[to_host].running();
  if (comes_back && packet.last && !room_to_loop_back(packet, to_host)) return false;
  const auto message = from_host_.add(packet);
  from_host_too_long_.store(from_host_.too_long(), std::memory_order_relaxed);
  if (!message) return true;
  from_host_messages_.fetch_add(1, std::memory_order_relaxed);
  if (!comes_back) return true;
  channels_[to_host].memory = {};  // invalid after memory of the host's packets was looked up
  source_.loop_back(link, elink, *message, *this, now_ns);
  looped_back_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// Takes the host's packets for front-ends as fast as they arrive, up to a limit per turn. True if there were any.
bool FelixCard::read_from_host(std::uint64_t now_ns) {
  bool any = false;
  for (unsigned i = felix::kToHostDescriptors; i < felix::kDescriptors; ++i) {
    Channel& channel = channels_[i];
    if (!channel.running() || empty(channel) || !bus_master()) continue;
    bool looped_back = false;
    {
      DmaMaps::Use use(maps());
      use_ = &use;
      for (Channel& one : channels_) one.memory = {};
      const std::uint64_t before = looped_back_.load(std::memory_order_relaxed);
      for (std::size_t turn = 0; turn < kTurnBytes && !empty(channel); turn += formats::kFromHostPacketBytes) {
        std::array<std::byte, formats::kFromHostPacketBytes> bytes;
        if (!use.read(channel.client, channel.position, bytes)) {
          dma_faults_.fetch_add(1, std::memory_order_relaxed);
        } else if (const auto packet = formats::read_from_host(bytes, settings_.felix.from_host_length); !packet) {
          from_host_bad_packets_.fetch_add(1, std::memory_order_relaxed);
        } else if (!handle_packet(*packet, now_ns)) {
          break;
        }
        from_host_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
        channel.position += bytes.size();
        if (channel.position == channel.end) {
          channel.position = channel.start;
          channel.even_dma = !channel.even_dma;
        }
        any = true;
      }
      use_ = nullptr;
      looped_back = looped_back_.load(std::memory_order_relaxed) != before;
    }
    publish(i);
    if (!looped_back) continue;
    // A long message may have filled blocks.
    for (unsigned to_host = 0; to_host < felix::kToHostDescriptors; ++to_host) {
      if (channels_[to_host].running()) publish(to_host);
    }
    publish_books();
  }
  return any;
}

}  // namespace rodeo::emulator
