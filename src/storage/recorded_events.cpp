#include "storage/recorded_events.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "formats/block_decoder.h"
#include "formats/rdh.h"
#include "formats/rdh_frame_decoder.h"
#include "formats/recording_info.h"
#include "formats/superpage_check.h"
#include "formats/superpage_dump.h"

namespace rodeo::storage {

using namespace formats;

namespace {

/// Turns the L1 ids of a link into numbers that continue when the bits wrap. Each id becomes the number nearest to `near`.
class Unwrapped {
 public:
  explicit Unwrapped(std::uint32_t bits) : bits_(bits) {}
  std::int64_t operator()(std::uint32_t id, std::int64_t near) const {
    const std::int64_t period = std::int64_t{1} << bits_;
    std::int64_t step = (static_cast<std::int64_t>(id) - near) & (period - 1);
    if (step >= period / 2) step -= period;
    return near + step;
  }

 private:
  std::uint32_t bits_;
};

/// Takes chunks in file order, and groups them at the end.
class TableMaker {
 public:
  using Pieces = std::span<const std::span<const std::byte>>;

  TableMaker(std::span<const std::byte> file, L1IdField field) : file_(file), field_(field), unwrapped_(field.bits) {}

  /// The pieces that the decoder found:
  JoinedParts parts;

  /// Takes and empties the buffer. `id_of`: returns the id of a chunk, if it has one.
  template <typename IdOf>
  void add_all(DecodeBuffer& buffer, std::span<const std::uint16_t> links, IdOf&& id_of) {
    std::size_t part = 0;
    for (const ChunkRun& run : buffer.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto bytes = run.chunk(i);
        const bool in_file = bytes.data() >= file_.data() && bytes.data() < file_.data() + file_.size();
        const std::size_t first = part;
        if (!in_file) {
          for (std::size_t seen = 0; seen < bytes.size(); ++part) seen += parts[part].size();
        }
        const Pieces pieces = in_file ? Pieces(&bytes, 1) : Pieces(parts).subspan(first, part - first);
        add(links[run.link], run.chunk_status(i), pieces, id_of(bytes));
      }
    }
    parts.clear();
    buffer.clear();
  }

  std::uint64_t without_id() const { return without_id_; }

  /// Returns the events in the order of their ids, and the chunks of each event in the order of links.
  RecordingTable group() {
    std::ranges::sort(chunks_);
    RecordingTable table;
    table.pieces.reserve(pieces_.size());
    const std::uint32_t mask = field_.mask();
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const Chunk& chunk = chunks_[i];
      if (i == 0 || chunk.event != chunks_[i - 1].event) {
        table.events.push_back({.first_piece = table.pieces.size(), .l1id = static_cast<std::uint32_t>(chunk.event) & mask});
      }
      std::size_t piece = chunk.first_piece();
      do table.pieces.push_back(pieces_[piece]);
      while (pieces_[piece++].more != 0);
    }
    return table;
  }

 private:
  /// Sorts by event, link, and order in the file.
  struct Chunk {
    std::uint64_t event = 0;  ///< L1 id, continued when its bits wrap
    std::uint64_t link_and_piece = 0;

    static constexpr int kPieceBits = 48;
    std::uint64_t first_piece() const { return link_and_piece & ((std::uint64_t{1} << kPieceBits) - 1); }
    auto operator<=>(const Chunk&) const = default;
  };

  void add(std::uint16_t link, std::uint8_t status, Pieces chunk, std::optional<std::uint32_t> id) {
    if (!id) {
      ++without_id_;
      return;
    }
    const auto last = last_.find(link);
    const std::int64_t number = unwrapped_(*id, last == last_.end() ? newest_ : last->second);
    last_[link] = newest_ = number;
    chunks_.push_back(
        {static_cast<std::uint64_t>(number) + kZero, std::uint64_t{link} << Chunk::kPieceBits | pieces_.size()});
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      pieces_.push_back({.place = static_cast<std::uint64_t>(chunk[i].data() - file_.data()),
                         .bytes = static_cast<std::uint32_t>(chunk[i].size()),
                         .link = link,
                         .status = status,
                         .more = static_cast<std::uint8_t>(i + 1 < chunk.size() ? 1 : 0)});
    }
    if (chunk.empty()) pieces_.push_back({.link = link, .status = status});
  }

  static constexpr std::uint64_t kZero = std::uint64_t{1} << 62;  // ids may wrap downwards at the begin
  std::span<const std::byte> file_;
  L1IdField field_;
  Unwrapped unwrapped_;
  std::vector<Chunk> chunks_;
  std::vector<RecordedPiece> pieces_;
  std::uint64_t without_id_ = 0;
  std::map<std::uint16_t, std::int64_t> last_;
  std::int64_t newest_ = 0;
};

void name(std::string& list, std::uint64_t count, std::string_view what) {
  if (count > 0) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, what);
}

constexpr L1IdField kOrbit{};

std::optional<IndexedRecording> identity(std::span<const std::byte> file, const L1IdField& field,
                                         const std::optional<FileState>& state) {
  if (!state || state->bytes != file.size()) return std::nullopt;
  return IndexedRecording{.bytes = state->bytes,
                          .modified_ns = state->modified_ns,
                          .ends_crc = ends_crc(file),
                          .l1id_offset = field.offset,
                          .l1id_bits = field.bits};
}

}  // namespace

Result<RecordingTable> read_block_recording(std::span<const std::byte> file, const L1IdField& field,
                                            const std::function<void()>& between) {
  const BlockFormat format = RODEO_TRY(detect_block_format(file));
  const auto blocks = file.first(file.size() / format.block_bytes * format.block_bytes);
  const auto elinks = elinks_of(blocks, format);
  const auto id_of = [&](std::span<const std::byte> bytes) {
    return field.in(bytes) ? std::optional(field.read(bytes)) : std::nullopt;
  };
  constexpr std::size_t kBlocksAtOnce = 16;
  // The length of chunks is not known in advance: if one is too long for the memory, the file is read again with more
  // memory.
  constexpr std::uint32_t kMore = 16;
  for (std::uint64_t longest = 64 * 1024;; longest *= kMore) {
    const std::uint64_t most = std::min<std::uint64_t>({longest, file.size(), UINT32_MAX});
    TableMaker maker(blocks, field);
    BlockDecoder decoder({.format = format, .max_chunk_bytes = static_cast<std::uint32_t>(most), .parts = &maker.parts},
                         elinks);
    DecodeBuffer buffer(decoder.capacity_for(kBlocksAtOnce) + decoder.capacity_for(0));
    std::size_t calls = 0;
    for (std::size_t at = 0; at < blocks.size();) {
      if (++calls % 1024 == 0) between();
      at += decoder.decode(blocks.subspan(at, std::min(kBlocksAtOnce * format.block_bytes, blocks.size() - at)), buffer);
      maker.add_all(buffer, elinks, id_of);
    }
    decoder.finish(buffer);
    maker.add_all(buffer, elinks, id_of);
    if (decoder.counters().read(BlockCounter::oversize) != 0 && most == longest) continue;
    RecordingTable table = maker.group();
    for (std::size_t i = 0; i < kBlockCounters; ++i) {
      const auto counter = static_cast<BlockCounter>(i);
      if (is_anomaly(counter) || counter == BlockCounter::unfinished)
        name(table.damage, decoder.counters().read(counter), kBlockCounterInfo[i].help);
    }
    name(table.damage, file.size() - blocks.size(), "bytes behind the last whole block");
    name(table.damage, maker.without_id(), "chunks too short for an L1 id");
    return table;
  }
}

namespace {

/// The frames of one endpoint of a dump.
struct EndpointFrames {
  std::vector<std::uint8_t> links;
  std::vector<std::uint16_t> numbers;  ///< the links' numbers in the table
  std::optional<RdhFrameDecoder> decoder;
};

/// The endpoints of a dump with their links. A link keeps its own number, unless two endpoints have a link of the same
/// number: then 256 is added for each earlier endpoint.
std::vector<EndpointFrames> endpoints_of(std::span<const std::byte> file, const DumpEndpoints& known) {
  std::vector<std::bitset<256>> seen(known.count());
  for_each_page(file, [&](std::size_t at) {
    const Rdh page = Rdh::read(file.data() + at);
    seen[known.of(page)].set(page.link_id());
    return true;
  });
  std::bitset<256> all;
  bool same = false;
  for (const auto& links : seen) {
    same = same || (all & links).any();
    all |= links;
  }
  std::vector<EndpointFrames> endpoints(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::size_t link = 0; link < 256; ++link) {
      if (!seen[i].test(link)) continue;
      endpoints[i].links.push_back(static_cast<std::uint8_t>(link));
      endpoints[i].numbers.push_back(static_cast<std::uint16_t>(link + (same ? 256 * i : 0)));
    }
  }
  return endpoints;
}

}  // namespace

Result<RecordingTable> read_page_dump(std::span<const std::byte> file, const std::function<void()>& between) {
  const DumpEndpoints known(file);
  std::vector<EndpointFrames> endpoints = endpoints_of(file, known);
  if (endpoints.front().links.empty()) {
    return std::unexpected(Error{"data.no_page", "the dump has no page with a header: its bytes belong to no event", "",
                                 "a CRU's internal generator sends such data; `rodeo data verify` checks them"});
  }
  constexpr std::uint32_t kLongestFrame = 8 << 20;
  const auto longest = static_cast<std::uint32_t>(std::min<std::size_t>(kLongestFrame, file.size()));
  TableMaker maker(file, kOrbit);
  DecodeBuffer::Capacity room{};
  for (EndpointFrames& endpoint : endpoints) {
    endpoint.decoder.emplace(RdhFrameDecoder::Options{.max_chunk_bytes = longest, .parts = &maker.parts}, endpoint.links);
    const auto own = endpoint.decoder->room() + endpoint.decoder->finish_room();
    room.runs = std::max(room.runs, own.runs);
    room.carry_bytes = std::max(room.carry_bytes, own.carry_bytes);
  }
  DecodeBuffer buffer(room);
  const auto take = [&](const EndpointFrames& endpoint) {
    maker.add_all(buffer, endpoint.numbers, [](std::span<const std::byte> bytes) {
      return bytes.size() >= kRdhBytes ? std::optional(Rdh::read(bytes.data()).orbit()) : std::nullopt;
    });
  };
  // Consecutive pages of one link count as a superpage.
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint8_t link = 0;
  std::uint32_t from_endpoint = 0;
  std::uint64_t skipped = 0;
  std::size_t calls = 0;
  SuperpageCheck orders({.time_frame_orbits = 0, .most_findings = 0});
  const auto decode = [&] {
    if (++calls % 1024 == 0) between();
    const auto superpage = file.subspan(begin, end - begin);
    if (!superpage.empty()) orders.check(link, superpage, from_endpoint);
    EndpointFrames& endpoint = endpoints[from_endpoint];
    for (std::size_t from = 0; from < superpage.size();) {
      from += endpoint.decoder->decode(link, superpage, from, buffer);
      take(endpoint);
    }
  };
  for_each_page(file, [&](std::size_t at) {
    const Rdh page = Rdh::read(file.data() + at);
    if (at != end || page.link_id() != link || known.of(page) != from_endpoint || end == 0) {
      decode();
      skipped += at - end;
      begin = at;
      link = static_cast<std::uint8_t>(page.link_id());
      from_endpoint = known.of(page);
    }
    end = std::min<std::size_t>(at + page.offset_next(), file.size());
    return true;
  });
  decode();
  skipped += file.size() - end;
  std::array<std::uint64_t, kRdhFrameCounters> counts{};
  for (EndpointFrames& endpoint : endpoints) {
    endpoint.decoder->finish(buffer);
    take(endpoint);
    for (std::size_t i = 0; i < kRdhFrameCounters; ++i)
      counts[i] += endpoint.decoder->counters().read(static_cast<RdhFrameCounter>(i));
  }
  RecordingTable table = maker.group();
  for (std::size_t i = 0; i < kRdhFrameCounters; ++i) {
    const auto counter = static_cast<RdhFrameCounter>(i);
    if (is_anomaly(counter) && counter != RdhFrameCounter::skipped_bytes)
      name(table.damage, counts[i], kRdhFrameCounterInfo[i].help);
  }
  orders.finish();
  constexpr auto kOrbits = SuperpageCounter::orbit;
  name(table.damage, orders.count(kOrbits), kSuperpageCounterInfo[static_cast<std::size_t>(kOrbits)].help);
  name(table.damage, skipped, "bytes that are in no page");
  return table;
}

std::optional<RecordingTable> load_recording_index(const std::string& path, std::span<const std::byte> file,
                                                   const L1IdField& field) {
  const auto index = base::MappedFile::open(index_path(path));
  if (!index) return std::nullopt;
  const auto owner = identity(file, field, state_of(path));
  if (!owner) return std::nullopt;
  auto table = decode_recording_index(index->bytes(), *owner);
  if (!table || !index->check()) return std::nullopt;
  return *std::move(table);
}

bool keep_recording_index(const std::string& path, std::span<const std::byte> file, const L1IdField& field,
                          const FileState& before, const RecordingTable& table) {
  const auto now = state_of(path);
  if (now != before) return false;
  const auto owner = identity(file, field, now);
  return owner && put_index(path, encode_recording_index(*owner, table));
}

}  // namespace rodeo::storage
