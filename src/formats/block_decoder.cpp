#include "formats/block_decoder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace rodeo::formats {

/// State of one E-link: the next sequence number, and the pieces of the incomplete chunk.
/// Pieces point into the blocks of the current decode() call; at its end they are copied to the link's own memory (parked).
struct alignas(64) BlockDecoder::Link {
  static constexpr std::uint8_t kNoSequence = 0xff;
  static constexpr std::size_t kMostParts = 7;  // limit for pieces inside blocks; above it the chunk is parked

  struct Part {
    const std::byte* data;
    std::uint32_t size;
  };

  std::byte* parked;
  std::uint32_t size;  // size of the open chunk, cut to the maximum
  std::uint8_t next_sequence;
  std::uint8_t status;  // status of the open chunk
  std::uint8_t part_count;
  bool joined;  // the begin of a chunk was seen
  bool open;
  bool oversize;
  bool listed;  // the link is in to_park_
  std::array<Part, kMostParts> parts;
  std::uint64_t cut_bytes;  // bytes cut off the open chunk, if it is oversize
};

/// Sums of one decode() call, kept in registers.
struct BlockDecoder::Batch {
  DecodeBuffer& out;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t split = 0;
  std::uint64_t nulls = 0;
};

namespace {

template <typename Trailer>
std::uint32_t load(const std::byte* at) {
  typename Trailer::Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <typename Trailer>
constexpr std::uint32_t padded(std::uint32_t size) {
  return (size + Trailer::kBytes - 1) & ~(Trailer::kBytes - 1);
}

template <typename Trailer>
constexpr TrailerType type_of(std::uint32_t trailer) {
  return static_cast<TrailerType>(trailer >> Trailer::kTypeShift);
}

/// A trailer of this type without any flag, reserved bits included.
template <typename Trailer>
constexpr bool is_plain(std::uint32_t trailer, TrailerType type) {
  return (trailer & ~Trailer::kLengthMask) == static_cast<std::uint32_t>(type) << Trailer::kTypeShift;
}

}  // namespace

/// A block that is read from end to begin, because trailers follow their data.
template <typename Trailer>
struct BlockDecoder::FromEnd {
  const std::byte* begin;
  std::uint32_t end;  // end of the part that is not decoded yet

  std::uint32_t left() const { return end - kBlockHeaderBytes; }
  /// The trailer of the last piece, or of the piece that ends `before` bytes earlier; valid only if left() covers it.
  std::uint32_t trailer(std::uint32_t before = 0) const { return load<Trailer>(begin + end - before - Trailer::kBytes); }
  std::uint32_t length() const { return trailer() & Trailer::kLengthMask; }
  /// True if there is a last piece, of this type and without flags.
  bool ends_with(TrailerType type) const { return left() >= Trailer::kBytes && is_plain<Trailer>(trailer(), type); }

  /// Bytes of a piece with padding and trailer.
  static std::uint32_t extent(std::uint32_t size) { return padded<Trailer>(size) + Trailer::kBytes; }
  /// Takes the last piece, if it is complete.
  bool skip(std::uint32_t size) {
    const bool there = left() >= extent(size);
    if (there) end -= extent(size);
    return there;
  }
};

/// Consecutive whole chunks.
struct BlockDecoder::Wholes {
  std::uint32_t count = 0;
  std::uint32_t size = 0;  // size of each chunk, if all are equal
  std::uint32_t stride = 0;
  std::uint64_t bytes = 0;
  ChunkEntry* entries = nullptr;  // the chunks, if their sizes differ
};

namespace {

/// Trailers are read from the end of each block to its begin; the next read is at the end of the next block. Hardware
/// prefetchers do not predict this order. Prefetching this far ahead makes decoding from DRAM as fast as from cache
/// (measured: 10 to 2 ns per 40-byte chunk). For skipped blocks only the header is prefetched, twice as far ahead: the rest
/// is not read.
constexpr std::size_t kPrefetchBytes = 8 * kBlockUnitBytes;

/// Prefetches whole blocks of at least 1 KiB.
inline void prefetch(const std::byte* from, std::size_t bytes) {
  for (const std::byte* const end = from + bytes; from != end; from += kBlockUnitBytes) {
#pragma GCC unroll 16
    for (std::size_t line = 0; line < kBlockUnitBytes; line += 64) __builtin_prefetch(from + line);
  }
}

[[noreturn]] void refuse(std::string what) { throw SetupError(Error{"formats.block_decoder", std::move(what)}); }

}  // namespace

BlockDecoder::BlockDecoder(const Options& options, std::span<const std::uint16_t> elinks)
    : options_(options), link_count_(elinks.size()), elinks_(elinks.begin(), elinks.end()) {
  const BlockFormat& format = options.format;
  if (!format.valid()) refuse(fmt::format("blocks of {} bytes do not exist in this family", format.block_bytes));
  if (options.max_chunk_bytes == 0) refuse("the longest chunk must have at least one byte");
  // A link's parked memory does not start on the 4 KiB grid: otherwise short tails of many links would share a few cache
  // sets.
  parked_stride_ = (std::size_t{options.max_chunk_bytes} + 63) / 64 * 64 + 64;
  index_of_elink_.fill(kUnmapped);
  links_ = std::make_unique<Link[]>(link_count_);
  parked_ = std::make_unique_for_overwrite<std::byte[]>(link_count_ * parked_stride_);
  for (std::size_t i = 0; i < link_count_; ++i) {
    if (elinks[i] >= index_of_elink_.size()) refuse(fmt::format("E-link {} does not fit in 11 bits", elinks[i]));
    if (index_of_elink_[elinks[i]] != kUnmapped) refuse(fmt::format("E-link {} is named twice", elinks[i]));
    index_of_elink_[elinks[i]] = static_cast<LinkIndex>(i);
    links_[i].next_sequence = Link::kNoSequence;
    links_[i].parked = parked_.get() + i * parked_stride_;
  }
  to_park_.reserve(link_count_);
  if (options.parts != nullptr) open_parts_.resize(link_count_);

  const std::size_t most_pieces = (format.block_bytes - kBlockHeaderBytes) / format.trailer_bytes();
  pieces_.resize(most_pieces);
  // Each piece may become a run, and a gap may close a chunk before them.
  block_room_ = {most_pieces + 1, most_pieces, std::size_t{options.max_chunk_bytes} + format.block_bytes};
}

BlockDecoder::~BlockDecoder() = default;

void BlockDecoder::want(LinkIndex link, bool wanted) {
  if ((index_of_elink_[elinks_[link]] == link) == wanted) return;
  index_of_elink_[elinks_[link]] = wanted ? link : kUnmapped;
  wanted ? --unwanted_ : ++unwanted_;
  std::byte* const parked = links_[link].parked;
  links_[link] = {};
  links_[link].parked = parked;
  links_[link].next_sequence = Link::kNoSequence;
  if (options_.parts != nullptr) open_parts_[link].clear();
}

LinkIndex BlockDecoder::index_of(const Link& link) const { return static_cast<LinkIndex>(&link - links_.get()); }

DecodeBuffer::Capacity BlockDecoder::capacity_for(std::size_t blocks) const {
  const std::size_t longest = options_.max_chunk_bytes;
  if (blocks == 0) return {link_count_, 0, link_count_ * longest};
  // The bytes of joined chunks come from the page's blocks, or from the chunks open before it: at most one of each link that
  // has a block in the page.
  return {blocks * block_room_.runs, blocks * block_room_.entries,
          blocks * options_.format.block_bytes + (std::min(blocks - 1, link_count_) + 1) * longest};
}

std::size_t BlockDecoder::decode(std::span<const std::byte> blocks, DecodeBuffer& out) {
  return options_.format.family == BlockFamily::trailer16 ? decode_blocks<Trailer16>(blocks, out)
                                                          : decode_blocks<Trailer32>(blocks, out);
}

template <typename Trailer>
std::size_t BlockDecoder::decode_blocks(std::span<const std::byte> blocks, DecodeBuffer& out) {
  const std::size_t block_bytes = options_.format.block_bytes;
  const std::uint16_t marker = options_.format.marker();
  const std::byte* const begin = blocks.data();
  const std::byte* const end = begin + blocks.size() / block_bytes * block_bytes;
  const std::byte* block = begin;
  const std::size_t ahead = std::max<std::size_t>(kPrefetchBytes / block_bytes, 1) * block_bytes;
  const bool some_are_skipped = unwanted_ > 0;
  const auto is_skipped = [&](const std::byte* later) {
    return later < end && index_of_elink_[BlockHeader::read(later).elink()] == kUnmapped;
  };
  Batch batch{out};
  for (; block != end && out.has_room(block_room_); block += block_bytes) {
    if (some_are_skipped) __builtin_prefetch(block + 2 * ahead);
    if (!some_are_skipped || !is_skipped(block + ahead)) prefetch(block + ahead, block_bytes);
    const BlockHeader header = BlockHeader::read(block);
    if (header.marker() != marker) [[unlikely]] {
      counters_.add(BlockCounter::bad_marker);
      continue;
    }
    const LinkIndex index = index_of_elink_[header.elink()];
    if (index == kUnmapped) [[unlikely]] {
      counters_.add(BlockCounter::unmapped_blocks);
      continue;
    }
    Link& link = links_[index];
    check_sequence(link, header.sequence(), batch);
    if (!decode_regular<Trailer>(block, link, batch)) decode_any<Trailer>(block, link, batch);
  }
  park_all();
  counters_.add(BlockCounter::blocks, static_cast<std::size_t>(block - begin) / block_bytes);
  counters_.add(BlockCounter::chunks, batch.chunks);
  counters_.add(BlockCounter::chunk_bytes, batch.bytes);
  counters_.add(BlockCounter::split_chunks, batch.split);
  counters_.add(BlockCounter::null_trailers, batch.nulls);
  return static_cast<std::size_t>(block - begin);
}

inline void BlockDecoder::check_sequence(Link& link, std::uint32_t sequence, Batch& batch) {
  const std::uint32_t expected = link.next_sequence;
  link.next_sequence = static_cast<std::uint8_t>((sequence + 1) & 0x1fU);
  if (sequence == expected || expected == Link::kNoSequence) [[likely]]
    return;
  counters_.add(BlockCounter::sequence_gaps);
  counters_.add(BlockCounter::lost_blocks, (sequence - expected) & 0x1fU);
  if (link.open) {
    counters_.add(BlockCounter::cut_by_gap);
    close(link, chunk_status::kSoftwareTruncated, batch);
  }
}

/// Takes whole chunks of one size. Equal chunks have their trailers at equal distances, so the trailers are compared at
/// computed places, four at a time, without following a chain. False if the first chunk is too long.
template <typename Trailer>
inline bool BlockDecoder::decode_equal_wholes(FromEnd<Trailer>& block, Wholes& wholes) const {
  const std::uint32_t trailer = block.trailer();
  wholes.size = block.length();
  if (wholes.size > options_.max_chunk_bytes || !block.skip(wholes.size)) return false;
  wholes.stride = FromEnd<Trailer>::extent(wholes.size);
  wholes.count = 1;
  const auto differs = [&](std::uint32_t chunks) { return block.trailer(chunks * wholes.stride) ^ trailer; };
  while (block.left() >= 4 * wholes.stride && (differs(0) | differs(1) | differs(2) | differs(3)) == 0) {
    block.end -= 4 * wholes.stride;
    wholes.count += 4;
  }
  while (block.left() >= wholes.stride && differs(0) == 0) {
    block.end -= wholes.stride;
    ++wholes.count;
  }
  wholes.bytes = std::uint64_t{wholes.count} * wholes.size;
  return true;
}

/// Takes whole chunks of any size, one by one: each gets an entry. False if one is too long.
template <typename Trailer>
inline bool BlockDecoder::decode_unequal_wholes(FromEnd<Trailer>& block, ChunkEntry* entries_end, Wholes& wholes) const {
  wholes = {.entries = entries_end};
  while (block.ends_with(TrailerType::both)) {
    const std::uint32_t size = block.length();
    if (size > options_.max_chunk_bytes || !block.skip(size)) return false;
    *--wholes.entries = {block.end, size, chunk_status::kOk};
    wholes.bytes += size;
    ++wholes.count;
  }
  return true;
}

/// Appends the first piece of a block, which continues the link's open chunk. Returns false, and changes nothing, for any
/// other piece. `alone`: the block has no other piece.
template <typename Trailer>
inline bool BlockDecoder::append_head(FromEnd<Trailer>& block, bool alone, Link& link, Batch& batch) {
  const bool last = block.ends_with(TrailerType::last);
  if (!link.open || (!last && !(alone && block.ends_with(TrailerType::middle)))) return false;
  const std::uint32_t size = block.length();
  if (block.left() != FromEnd<Trailer>::extent(size)) return false;
  append(link, block.begin + kBlockHeaderBytes, size);
  if (last) close(link, chunk_status::kOk, batch);
  return true;
}

/// Decodes the usual block of a busy link: [last | middle] both* [first] null*, without flags. For any other block it
/// returns false and changes nothing.
template <typename Trailer>
inline bool BlockDecoder::decode_regular(const std::byte* begin, Link& link, Batch& batch) {
  FromEnd<Trailer> block{begin, options_.format.block_bytes};
  std::uint32_t nulls = 0;
  for (; type_of<Trailer>(block.trailer()) == TrailerType::null; ++nulls) {
    block.end -= Trailer::kBytes;
    if (block.left() == 0) return false;
  }

  const bool tail = block.ends_with(TrailerType::first);
  const std::uint32_t tail_size = tail ? block.length() : 0;
  if (tail && (!block.skip(tail_size) || block.left() == 0)) return false;
  const std::uint32_t tail_begin = block.end;

  Wholes wholes;
  if (block.ends_with(TrailerType::both)) {
    if (!decode_equal_wholes(block, wholes)) return false;
    if (block.ends_with(TrailerType::both)) {
      block.end = tail_begin;
      if (!decode_unequal_wholes(block, batch.out.entries_end(), wholes)) return false;
    }
  }
  const bool alone = wholes.count == 0 && !tail;
  // Until here only scratch memory was changed. If append_head() refuses, it changes nothing; after it the block is
  // accepted.
  if (block.left() == 0 ? link.open : !append_head(block, alone, link, batch)) return false;

  link.joined = true;
  batch.nulls += nulls;
  if (wholes.count != 0) {
    batch.chunks += wholes.count;
    batch.bytes += wholes.bytes;
    if (wholes.entries == nullptr) {
      batch.out.add(
          {begin + block.end, nullptr, wholes.size, wholes.stride, wholes.count, index_of(link), chunk_status::kOk, false});
    } else {
      batch.out.set_entries_end(wholes.entries);
      batch.out.add({begin, wholes.entries, 0, 0, wholes.count, index_of(link), chunk_status::kOk, false});
    }
  }
  if (tail) {
    link.open = true;
    append(link, begin + tail_begin, tail_size);
  }
  return true;
}

/// Decodes any block: collects the pieces from end to begin, then processes them in order.
template <typename Trailer>
void BlockDecoder::decode_any(const std::byte* block, Link& link, Batch& batch) {
  FromEnd<Trailer> rest{block, options_.format.block_bytes};
  Piece* const pieces_end = pieces_.data() + pieces_.size();
  Piece* first = pieces_end;
  while (rest.left() >= Trailer::kBytes) {
    const std::uint32_t trailer = rest.trailer();
    const TrailerType type = type_of<Trailer>(trailer);
    const bool has_data = type != TrailerType::null && type != TrailerType::out_of_band;
    if (!rest.skip(has_data ? rest.length() : 0)) break;
    *--first = {trailer, rest.end};
  }
  const bool bad = rest.left() != 0;
  const std::uint8_t extra = bad ? chunk_status::kSoftwareMalformed : chunk_status::kOk;
  if (bad) {
    counters_.add(BlockCounter::bad_trailer);
    if (link.open) close(link, chunk_status::kSoftwareTruncated | chunk_status::kSoftwareMalformed, batch);
  }

  const auto unterminated = [&] {
    if (!link.open) return;
    counters_.add(BlockCounter::unterminated);
    close(link, chunk_status::kSoftwareTruncated, batch);
  };
  for (std::span<const Piece> pieces(first, pieces_end); !pieces.empty();) {
    const Piece piece = pieces.front();
    std::size_t taken = 1;
    const std::byte* const data = block + piece.begin;
    const std::uint32_t size = piece.trailer & Trailer::kLengthMask;
    const auto status = static_cast<std::uint8_t>(status_of_trailer<Trailer>(piece.trailer) | extra);
    switch (type_of<Trailer>(piece.trailer)) {
      case TrailerType::both:
        unterminated();
        link.joined = true;
        taken = add_wholes<Trailer>(block, pieces, extra, link, batch);
        break;
      case TrailerType::first:
        unterminated();
        link.joined = true;
        link.open = true;
        link.status = status;
        append(link, data, size);
        break;
      case TrailerType::middle:
      case TrailerType::last: {
        const bool last = type_of<Trailer>(piece.trailer) == TrailerType::last;
        if (!link.open) {
          counters_.add(!link.joined ? BlockCounter::before_join
                        : last       ? BlockCounter::orphan_last
                                     : BlockCounter::orphan_middle);
          break;
        }
        link.status |= status;
        append(link, data, size);
        if (last) close(link, chunk_status::kOk, batch);
        break;
      }
      case TrailerType::timeout:
        if ((piece.trailer & Trailer::kTruncated) == 0) {
          counters_.add(BlockCounter::timeouts);
          break;
        }
        counters_.add(BlockCounter::given_up);
        link.joined = true;
        link.open = true;
        append(link, data, size);
        close(link, status | chunk_status::kTimeout, batch);
        break;
      case TrailerType::undefined:
        counters_.add(BlockCounter::undefined_trailer);
        if (link.open) close(link, chunk_status::kSoftwareTruncated | chunk_status::kSoftwareMalformed, batch);
        break;
      case TrailerType::null: ++batch.nulls; break;
      case TrailerType::out_of_band: counters_.add(BlockCounter::out_of_band); break;
    }
    pieces = pieces.subspan(taken);
  }
}

/// Makes one run of the leading whole chunks, at least one, and returns their number.
template <typename Trailer>
std::size_t BlockDecoder::add_wholes(const std::byte* block, std::span<const Piece> pieces, std::uint8_t extra_status,
                                     const Link& link, Batch& batch) {
  const auto is_whole = [](const Piece& piece) { return type_of<Trailer>(piece.trailer) == TrailerType::both; };
  const auto n = static_cast<std::size_t>(std::ranges::find_if_not(pieces, is_whole) - pieces.begin());
  const Piece& first = pieces.front();
  const bool uniform =
      std::ranges::all_of(pieces.first(n), [&](const Piece& piece) { return piece.trailer == first.trailer; });

  const std::uint32_t begin = first.begin;
  ChunkRun run{.data = block + begin, .count = static_cast<std::uint32_t>(n), .link = index_of(link)};
  const auto cut = [&](std::uint32_t trailer, std::uint8_t& status, std::uint64_t chunks) {
    const std::uint32_t size = trailer & Trailer::kLengthMask;
    status = static_cast<std::uint8_t>(status_of_trailer<Trailer>(trailer) | extra_status);
    if (size > options_.max_chunk_bytes) [[unlikely]] {
      counters_.add(BlockCounter::oversize, chunks);
      counters_.add(BlockCounter::cut_bytes, (size - options_.max_chunk_bytes) * chunks);
      status |= chunk_status::kSoftwareTruncated;
    }
    if (status != 0) [[unlikely]]
      count_flags(status, chunks);
    return std::min(size, options_.max_chunk_bytes);
  };
  if (uniform) {
    run.size = cut(first.trailer, run.status, n);
    run.stride = FromEnd<Trailer>::extent(first.trailer & Trailer::kLengthMask);
    batch.bytes += std::uint64_t{run.size} * n;
  } else {
    ChunkEntry* const entries = batch.out.allocate_entries(n);
    run.entries = entries;
    for (std::size_t i = 0; i < n; ++i) {
      entries[i].offset = pieces[i].begin - begin;
      entries[i].size = cut(pieces[i].trailer, entries[i].status, 1);
      batch.bytes += entries[i].size;
    }
  }
  batch.chunks += n;
  batch.out.add(run);
  return n;
}

inline void BlockDecoder::append(Link& link, const std::byte* data, std::uint32_t size) {
  const std::uint32_t room = options_.max_chunk_bytes - link.size;
  if (size > room) [[unlikely]] {
    link.cut_bytes += size - room;
    size = room;
    link.oversize = true;
    link.status |= chunk_status::kSoftwareTruncated;
  }
  if (link.part_count == Link::kMostParts) park(link);
  link.parts[link.part_count++] = {data, size};
  link.size += size;
  if (!link.listed) {
    link.listed = true;
    to_park_.push_back(index_of(link));
  }
}

/// Completes the open chunk as a run of its own.
inline void BlockDecoder::close(Link& link, std::uint8_t status, Batch& batch) {
  status |= link.status;
  if (options_.parts != nullptr) [[unlikely]] {
    note_parts(link);
    JoinedParts& open = open_parts_[index_of(link)];
    options_.parts->insert(options_.parts->end(), open.begin(), open.end());
    open.clear();
  }
  std::byte* const joined = batch.out.allocate_carry(link.size);
  std::byte* at = joined;
  for (std::uint8_t i = 0; i < link.part_count; ++i) {
    std::memcpy(at, link.parts[i].data, link.parts[i].size);
    at += link.parts[i].size;
  }
  batch.out.add({joined, nullptr, link.size, link.size, 1, index_of(link), status, false});
  batch.chunks += 1;
  batch.bytes += link.size;
  batch.split += 1;
  if (status != 0) [[unlikely]] {
    count_flags(status, 1);
    if (link.oversize) counters_.add(BlockCounter::oversize);
    counters_.add(BlockCounter::cut_bytes, std::exchange(link.cut_bytes, 0));
  }
  link.size = 0;
  link.status = chunk_status::kOk;
  link.part_count = 0;
  link.open = false;
  link.oversize = false;
}

/// Copies the bytes that the open chunk has up to now into the link's own memory.
void BlockDecoder::park(Link& link) {
  if (options_.parts != nullptr) [[unlikely]]
    note_parts(link);
  std::byte* at = link.parked;
  for (std::uint8_t i = 0; i < link.part_count; ++i) {
    const Link::Part& part = link.parts[i];
    if (part.data != at) std::memcpy(at, part.data, part.size);
    at += part.size;
  }
  link.parts[0] = {link.parked, link.size};
  link.part_count = 1;
}

/// Notes the pieces of the open chunk that are not noted yet. Parked pieces are noted already.
void BlockDecoder::note_parts(const Link& link) {
  for (std::uint8_t i = 0; i < link.part_count; ++i) {
    const Link::Part& part = link.parts[i];
    if (part.data != link.parked && part.size > 0) open_parts_[index_of(link)].emplace_back(part.data, part.size);
  }
}

void BlockDecoder::park_all() {
  for (const LinkIndex index : to_park_) {
    Link& link = links_[index];
    link.listed = false;
    if (link.open) park(link);
  }
  to_park_.clear();
}

void BlockDecoder::count_flags(std::uint8_t status, std::uint64_t chunks) {
  if ((status & chunk_status::kFirmwareTruncated) != 0) counters_.add(BlockCounter::firmware_truncated, chunks);
  if ((status & chunk_status::kFirmwareMalformed) != 0) counters_.add(BlockCounter::firmware_malformed, chunks);
  if ((status & chunk_status::kFirmwareCrc) != 0) counters_.add(BlockCounter::firmware_crc, chunks);
  if ((status & chunk_status::kBusy) != 0) counters_.add(BlockCounter::busy, chunks);
}

void BlockDecoder::finish(DecodeBuffer& out) {
  Batch batch{out};
  for (Link& link : std::span{links_.get(), link_count_}) {
    link.next_sequence = Link::kNoSequence;
    link.joined = false;
    if (!link.open) continue;
    counters_.add(BlockCounter::unfinished);
    close(link, chunk_status::kSoftwareTruncated, batch);
  }
  counters_.add(BlockCounter::chunks, batch.chunks);
  counters_.add(BlockCounter::chunk_bytes, batch.bytes);
  counters_.add(BlockCounter::split_chunks, batch.split);
}

}  // namespace rodeo::formats
