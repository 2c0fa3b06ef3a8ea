#include "emulator/felix_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/pattern.h"
#include "formats/draw.h"
#include "formats/fid.h"
#include "formats/ttc_packet.h"

namespace rodeo::emulator {

using formats::BlockEncoder;
using formats::Provable;

FelixSource::FelixSource(FelixSourceSettings settings)
    : settings_(settings),
      provable_(settings.seed, settings.crc, settings.l1id_bits),
      pacer_(settings.link_bits_per_second / 10,
             std::size_t{settings.links} * (settings.full_mode ? 1 : settings.elinks_per_link)) {
  const unsigned per_link = settings_.full_mode ? 1 : settings_.elinks_per_link;
  const std::size_t control = settings_.loopback ? kControlElinks : 0;
  const std::size_t count = settings_.links * (per_link + control) + (settings_.ttc_link ? 1 : 0);
  memory_.resize(count * settings_.format.block_bytes / sizeof(Line));
  auto* const memory = reinterpret_cast<std::byte*>(memory_.data());
  if (settings_.crc) chunk_.resize(std::max(settings_.chunk_bytes, settings_.chunk_bytes_max) + 64);
  elinks_.reserve(count);
  const auto add = [&](std::uint16_t number) {
    elinks_.push_back({BlockEncoder(settings_.format, number), static_cast<unsigned>(number >> 6),
                       static_cast<unsigned>(number & 0x3f),
                       formats::fid_of_card_elink(settings_.detector, settings_.connector, number).default_link_id(),
                       memory + elinks_.size() * settings_.format.block_bytes});
  };
  unsigned to_enable = settings_.elinks == 0 ? settings_.links * per_link : settings_.elinks;
  for (unsigned link = 0; link < settings_.links; ++link) {
    for (unsigned elink = 0; elink < per_link; ++elink) add(static_cast<std::uint16_t>(link << 6 | elink));
    const unsigned here = std::min(to_enable, per_link);
    to_enable -= here;
    enabled_[link] = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    up_[link] = true;
  }
  detector_elinks_ = elinks_.size();
  for (unsigned link = 0; link < settings_.links; ++link) {
    for (unsigned elink = kFirstControlElink; elink < kFirstControlElink + control; ++elink) {
      add(static_cast<std::uint16_t>(link << 6 | elink));
      enabled_[link] |= std::uint64_t{1} << elink;
    }
  }
  if (settings_.ttc_link) {
    add(kTtcElink);
    enabled_[0] |= std::uint64_t{1} << kTtcElink;
  }
}

double FelixSource::bytes_per_trigger(unsigned link) const {
  const double block = settings_.format.block_bytes;
  const double trailer = settings_.format.trailer_bytes();
  const auto most = static_cast<double>(std::max(settings_.chunk_bytes, settings_.chunk_bytes_max));
  // A chunk has one trailer, and another one for each further block that it spans; the block header counts in proportion.
  const double of_chunk = (most + 2 * trailer) * block / (block - 4 - 2 * trailer);
  double bytes = of_chunk * (settings_.full_mode ? 1 : settings_.elinks_per_link);
  if (settings_.ttc_link && link == 0) bytes += (28 + 2 * trailer) * block / (block - 4 - 2 * trailer);
  return bytes;
}

std::size_t FelixSource::open_blocks(unsigned link) const {
  return (settings_.full_mode ? 1 : settings_.elinks_per_link) + (settings_.loopback ? kControlElinks : 0) +
         (settings_.ttc_link && link == 0 ? 1 : 0);
}

std::size_t FelixSource::chunk_bytes_of(std::uint64_t key) const {
  if (settings_.chunk_bytes_max <= settings_.chunk_bytes) return settings_.chunk_bytes;
  return settings_.chunk_bytes +
         (key >> 32) * (settings_.chunk_bytes_max - settings_.chunk_bytes + 1) / (std::uint64_t{1} << 32);
}

/// 8b/10b sends one character per byte. A GBT E-link adds two characters to a chunk; a FULL link adds two words of four, and
/// pads to a word.
double FelixSource::wire_bytes(std::size_t chunk_bytes) const {
  return settings_.full_mode ? static_cast<double>(((chunk_bytes + 3) & ~std::size_t{3}) + 8)
                             : static_cast<double>(chunk_bytes + 2);
}

std::uint64_t FelixSource::triggers_on_links(std::uint64_t now_ns) const {
  if (!pacer_.paced()) return ~std::uint64_t{0};
  return pacer_.most(now_ns, wire_bytes(std::max(settings_.chunk_bytes, settings_.chunk_bytes_max))) *
         settings_.links_per_group;
}

/// Occupies a lane with the chunks of keys_.
void FelixSource::occupy(std::size_t lane, std::uint64_t now_ns) {
  double bytes = 0;
  if (settings_.chunk_bytes_max <= settings_.chunk_bytes) {
    bytes = static_cast<double>(keys_.size()) * wire_bytes(settings_.chunk_bytes);
  } else {
    for (const std::uint64_t key : keys_) bytes += wire_bytes(chunk_bytes_of(key));
  }
  pacer_.carry(lane, now_ns, bytes);
}

void FelixSource::emit(Elink& elink, BlockSink& sink, bool goes_on) {
  const std::span<std::byte> block(elink.memory, settings_.format.block_bytes);
  BlockFate fate = BlockFate::lost;
  if (std::exchange(lose_[elink.link], false)) {
    ++blocks_lost_;
    sink.lost(elink.link);
  } else {
    const bool corrupt = std::exchange(corrupt_[elink.link], false);
    if (corrupt) elink.memory[2] ^= std::byte{0xff};
    fate = sink.block(elink.link, block);
    if (corrupt && fate == BlockFate::sent) {
      ++blocks_corrupted_;
      fate = BlockFate::corrupted;
    }
  }
  elink.books.ends(fate, goes_on, books_);
}

void FelixSource::begin_block(Elink& elink) {
  elink.encoder.begin({elink.memory, settings_.format.block_bytes});
  elink.begun_ns = now_ns_;
}

void FelixSource::push(Elink& elink, std::span<const std::byte> chunk, BlockSink& sink, std::uint8_t status) {
  BlockEncoder& encoder = elink.encoder;
  if (encoder.full()) begin_block(elink);
  elink.books.begins(1);
  while (!encoder.push(chunk, status)) {
    emit(elink, sink, true);
    begin_block(elink);
  }
  if (encoder.full()) emit(elink, sink, false);
}

/// Writes bytes `from` to `from + bytes` of a chunk of `whole` bytes.
void FelixSource::write_part(std::byte* to, std::size_t from, std::size_t bytes, std::uint64_t header, std::uint64_t key,
                             std::size_t whole) const {
  const auto word = [&](std::size_t index) {
    return index == 0 ? header : key + (index == 1 ? whole : (index - 1) * Provable::kStep);
  };
  // Writes parts of words, the header, and the word with the size.
  const auto piece = [&] {
    const std::uint64_t value = word(from / 8) >> (8 * (from % 8));
    const std::size_t here = std::min(bytes, 8 - from % 8);
    std::memcpy(to, &value, here);
    to += here;
    from += here;
    bytes -= here;
  };
  while (bytes > 0 && (from < Provable::kDeclaredBytes || from % 8 != 0)) piece();
  const std::size_t words = bytes / 8;
  if (words > 0) {
    kernels_.words(to, words, word(from / 8));
    to += 8 * words;
    from += 8 * words;
    bytes -= 8 * words;
  }
  if (bytes > 0) piece();
}

/// Writes the first `bytes` of a chunk of `whole` bytes, without CRC, directly into the block.
void FelixSource::push_provable(Elink& elink, std::size_t bytes, std::size_t whole, std::uint64_t header, std::uint64_t key,
                                BlockSink& sink, std::uint8_t status) {
  BlockEncoder& encoder = elink.encoder;
  header = Provable::of_size(header, whole);
  elink.books.begins(1);
  std::size_t from = 0;
  for (bool complete = false; !complete;) {
    if (encoder.full()) begin_block(elink);
    const std::size_t part = std::min(bytes - from, encoder.room_for_part());
    complete = part == bytes - from;
    write_part(encoder.position(), from, part, header, key, whole);
    encoder.wrote_part(part, complete, status);
    from += part;
    if (encoder.full()) emit(elink, sink, !complete);
  }
}

/// Writes whole chunks of equal size from trigger `first` on, as many as the open block holds; returns their number.
/// `kBytes` 0: use `bytes`.
template <std::size_t kBytes, typename TrailerWord>
std::size_t FelixSource::append_wholes(Elink& elink, std::size_t first, std::size_t bytes) {
  if constexpr (kBytes > 0) bytes = kBytes;
  BlockEncoder& encoder = elink.encoder;
  const std::size_t count = std::min(encoder.wholes_that_fit(bytes), headers_.size() - first);
  const std::size_t stride = encoder.whole_stride(bytes);
  const auto trailer = static_cast<TrailerWord>(encoder.trailer_of_whole(bytes));
  std::byte* at = encoder.position();
  for (std::size_t i = first; i < first + count; ++i) {
    Provable::fill(at, bytes, headers_[i], keys_[i]);
    for (std::size_t pad = bytes; pad < stride - sizeof trailer; ++pad) at[pad] = std::byte{0};
    std::memcpy(at + stride - sizeof trailer, &trailer, sizeof trailer);
    at += stride;
  }
  encoder.wrote_wholes(count, bytes);
  elink.books.begins(count);
  return count;
}

std::size_t FelixSource::append_wholes(Elink& elink, std::size_t first) {
  const bool narrow = settings_.format.family == formats::BlockFamily::trailer16;
  // 40 bytes is the usual chunk size in measurements of GBT links.
  if (settings_.chunk_bytes == 40)
    return narrow ? append_wholes<40, std::uint16_t>(elink, first, 40) : append_wholes<40, std::uint32_t>(elink, first, 40);
  return narrow ? append_wholes<0, std::uint16_t>(elink, first, settings_.chunk_bytes)
                : append_wholes<0, std::uint32_t>(elink, first, settings_.chunk_bytes);
}

void FelixSource::append_provable(Elink& elink, BlockSink& sink) {
  BlockEncoder& encoder = elink.encoder;
  const std::size_t count = headers_.size();
  kernels_.keys(provable_, elink.link_id, l1ids_, keys_.data());
  const bool uniform = settings_.chunk_bytes_max <= settings_.chunk_bytes && !settings_.crc &&
                       settings_.chunk_bytes >= Provable::kHeaderBytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (uniform && !faults_[elink.link].any() && !encoder.full()) {
      const std::size_t done = append_wholes(elink, i);
      if (encoder.full()) emit(elink, sink, false);
      if (done > 0) {
        i += done - 1;
        continue;
      }
    }
    push_faulty(elink, i, chunk_bytes_of(keys_[i]), sink);
  }
}

/// Writes the chunk of one trigger, with the faults of its link.
void FelixSource::push_faulty(Elink& elink, std::size_t trigger, std::size_t bytes, BlockSink& sink) {
  ChunkFaults& faults = faults_[elink.link];
  const std::uint64_t header = faulty_header(faults, headers_[trigger], keys_[trigger]);
  const bool truncated = std::exchange(faults.truncate, false);
  const std::uint8_t status = truncated ? chunk_status::kFirmwareTruncated : chunk_status::kOk;
  const std::size_t sent = truncated ? bytes / 2 : bytes;
  if (!settings_.crc) return push_provable(elink, sent, bytes, header, keys_[trigger], sink, status);
  const std::span chunk(chunk_.data(), bytes);
  provable_.write(chunk, elink.link_id, L1Id{l1ids_[trigger]});
  if (header != headers_[trigger]) {
    const std::uint64_t wrong = Provable::of_size(header, bytes);
    std::memcpy(chunk.data(), &wrong, std::min(bytes, sizeof wrong));
    provable_.seal(chunk);  // a front end computes a correct CRC over wrong numbers
  }
  push(elink, chunk.first(sent), sink, status);
}

std::uint64_t FelixSource::faulty_header(ChunkFaults& faults, std::uint64_t header, std::uint64_t key) {
  constexpr unsigned kBcidAt = 32;
  constexpr std::uint64_t kBunches = 3564;
  if (std::exchange(faults.flip_l1id, false)) {
    header ^= std::uint64_t{1} << formats::draw::below(formats::draw::mix(key), settings_.l1id_bits);
    ++l1ids_flipped_;
  }
  if (std::exchange(faults.shift_bcid, false) || faults.shift_bcids) {
    const std::uint64_t bcid = header >> kBcidAt & 0xfff;
    header ^= (bcid ^ (bcid + 1) % kBunches) << kBcidAt;
    ++bcids_shifted_;
  }
  return header;
}

void FelixSource::append_ttc(std::span<const trigger::TriggerRange> triggers, BlockSink& sink) {
  Elink& elink = elinks_.back();
  std::array<std::byte, formats::TtcPacket::kTaggedBytes> bytes;
  for (const trigger::TriggerRange& range : triggers) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const L1Id l1id{range.l1id_of(i)};
      const auto trigger = provable_.trigger(formats::payload_id(range.id_of(i)));
      formats::TtcPacket packet;
      packet.l1id = l1id;
      packet.bcid = trigger.bcid;
      packet.trigger_type = trigger.trigger_type;
      packet.orbit = range.orbit;
      packet.l0id = static_cast<std::uint32_t>(range.sequence + i);
      packet.l1a_counter = (range.sequence + i) & 0xffffffffffffU;
      push(elink, std::span(bytes).first(packet.write(bytes)), sink);
    }
  }
}

/// Prepares the triggers for the links of this turn.
void FelixSource::prepare(std::span<const trigger::TriggerRange> triggers, unsigned turn) {
  headers_.clear();
  l1ids_.clear();
  for (const trigger::TriggerRange& range : triggers) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const L1Id l1id = formats::payload_id(range.id_of(i));
      if (settings_.links_per_group > 1 && l1id.l1() % settings_.links_per_group != turn) continue;
      l1ids_.push_back(l1id.value);
      headers_.push_back(provable_.header(l1id));
    }
  }
  keys_.resize(headers_.size());
}

void FelixSource::append(std::span<const trigger::TriggerRange> triggers, BlockSink& sink, std::uint64_t now_ns) {
  now_ns_ = now_ns;
  oldest_ns_ = std::min(oldest_ns_, now_ns);
  for (unsigned turn = 0; turn < settings_.links_per_group; ++turn) {
    prepare(triggers, turn);
    if (headers_.empty()) continue;
    // Serves one E-link after the other, so that its open block stays in the nearest cache.
    for (std::size_t i = turn; i < detector_elinks_; i += settings_.links_per_group) {
      Elink& elink = elinks_[i];
      if ((enabled_[elink.link] >> elink.bit & 1U) == 0) continue;
      if (!up_[elink.link]) {
        books_.link_down += headers_.size();
        continue;
      }
      books_.begun += headers_.size();
      append_provable(elink, sink);
      if (pacer_.paced()) occupy(i, now_ns);
    }
  }
  if (!settings_.ttc_link || (enabled_[0] >> kTtcElink & 1U) == 0) return;
  std::uint64_t count = 0;
  for (const trigger::TriggerRange& range : triggers) count += range.count;
  if (!up_[0]) {
    books_.link_down += count;
    return;
  }
  books_.begun += count;
  append_ttc(triggers, sink);
}

bool FelixSource::loops_back(unsigned link, unsigned elink) const {
  return settings_.loopback && elink >= kFirstControlElink && (enabled_[link] >> elink & 1U) != 0 && up_[link];
}

void FelixSource::loop_back(unsigned link, unsigned elink, std::span<const std::byte> message, BlockSink& sink,
                            std::uint64_t now_ns) {
  now_ns_ = now_ns;
  oldest_ns_ = std::min(oldest_ns_, now_ns);
  ++books_.begun;
  push(elinks_[detector_elinks_ + std::size_t{link} * kControlElinks + (elink - kFirstControlElink)], message, sink);
}

void FelixSource::flush(BlockSink& sink, std::uint64_t begun_ns) {
  oldest_ns_ = kNone;
  for (Elink& elink : elinks_) {
    if (elink.encoder.full()) continue;
    if (elink.begun_ns > begun_ns) {
      oldest_ns_ = std::min(oldest_ns_, elink.begun_ns);
      continue;
    }
    elink.encoder.timeout();
    emit(elink, sink, false);
  }
}

void FelixSource::clear() {
  oldest_ns_ = kNone;
  for (Elink& elink : elinks_) {
    const auto number = elink.encoder.elink();
    elink.encoder = BlockEncoder(settings_.format, number);
    elink.books.ends(BlockFate::cut_off, false, books_);
  }
}

}  // namespace rodeo::emulator
