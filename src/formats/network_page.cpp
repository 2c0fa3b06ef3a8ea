#include "formats/network_page.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace rodeo::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "headers are copied as they are");

constexpr std::uint32_t kMarker = 0x31474E52;
constexpr std::uint8_t kUniform = 0;
constexpr std::uint8_t kTable = 1;
constexpr std::uint8_t kMoreFollows = 0x80;
constexpr std::size_t kEntryBytes = 4;
constexpr std::uint32_t kMostInTable = (1U << 24) - 1;

struct PageHeader {
  std::uint32_t marker;
  std::uint32_t bytes;
  std::uint64_t number;
  std::uint64_t clock_ns;
  std::uint32_t runs;
  std::uint32_t reserved;
};
static_assert(sizeof(PageHeader) == kNetworkPageHeaderBytes);

struct RunHeader {
  std::uint16_t link;
  std::uint8_t kind;
  std::uint8_t status;
  std::uint32_t chunks;
  std::uint32_t count;
  std::uint32_t size;
};
static_assert(sizeof(RunHeader) == kNetworkRunHeaderBytes);

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Copies chunks of kPieces registers of 16 bytes, the last one partial. All chunks but the last are copied in whole
// registers: the extra bytes read belong to the next chunk, and the next chunk overwrites the extra bytes written.
template <std::size_t kPieces>
void copy_pieces(std::byte* to, const std::byte* from, std::size_t size, std::size_t stride, std::uint32_t chunks) {
  for (std::uint32_t i = 1; i < chunks; ++i, to += size, from += stride) {
    __m128i pieces[kPieces];
    for (std::size_t k = 0; k < kPieces; ++k) pieces[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * k));
    for (std::size_t k = 0; k < kPieces; ++k) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * k), pieces[k]);
  }
  std::memcpy(to, from, size);
}

void copy(std::byte* to, const ChunkRun& run, std::uint32_t first, std::uint32_t chunks) {
  const std::byte* from = run.data + std::size_t{first} * run.stride;
  if (run.stride == run.size) {
    std::memcpy(to, from, std::size_t{chunks} * run.size);
    return;
  }
  if (chunks > 1 && run.size >= 16 && run.size <= 64 && run.stride > run.size) {
    switch ((run.size + 15) / 16) {
      case 1: return copy_pieces<1>(to, from, run.size, run.stride, chunks);
      case 2: return copy_pieces<2>(to, from, run.size, run.stride, chunks);
      case 3: return copy_pieces<3>(to, from, run.size, run.stride, chunks);
      default: return copy_pieces<4>(to, from, run.size, run.stride, chunks);
    }
  }
  for (std::uint32_t i = 0; i < chunks; ++i, to += run.size, from += run.stride) std::memcpy(to, from, run.size);
}

std::unexpected<DecodeError> refused(DecodeFault fault, std::size_t offset, const char* field, std::uint64_t found,
                                     std::uint64_t expected) {
  return std::unexpected(DecodeError{fault, offset, field, found, expected});
}

}  // namespace

// ---- writing

// The room for a new run.
std::size_t NetworkPageWriter::room() const {
  const std::size_t usable = memory_.size() / 8 * 8;
  return usable > end_ + kNetworkRunHeaderBytes ? usable - end_ - kNetworkRunHeaderBytes : 0;
}

std::byte* NetworkPageWriter::open(LinkIndex link, std::uint8_t kind, std::uint8_t status, std::uint32_t chunks,
                                   std::uint32_t count, std::uint32_t size) {
  last_ = end_;
  ++runs_;
  const RunHeader header{link, kind, status, chunks, count, size};
  std::memcpy(memory_.data() + last_, &header, sizeof header);
  return memory_.data() + last_ + sizeof header;
}

void NetworkPageWriter::close(std::size_t end) {
  data_end_ = end;
  end_ = padded(end);
  if (end_ != data_end_) std::memset(memory_.data() + data_end_, 0, end_ - data_end_);
}

bool NetworkPageWriter::append(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from) {
  assert(memory_.size() >= kLeastBytes);
  const std::size_t most = memory_.size() / 8 * 8 - kNetworkPageHeaderBytes - kNetworkRunHeaderBytes;
  while (from.chunk < run.count) {
    const std::size_t size = run.chunk(from.chunk).size();
    const bool table = run.entries != nullptr;
    const bool too_large = size > most - (table ? kEntryBytes : 0) || (table && size > kMostInTable);
    const bool in_parts = from.continues || run.more_follows || too_large;
    const std::uint32_t before = from.chunk;
    const bool gone_on = in_parts ? append_part(link, count, run, from)
                         : table  ? append_table(link, count, run, from)
                                  : append_uniform(link, count, run, from);
    count += from.chunk - before;
    if (!gone_on) return false;
  }
  return true;
}

// Appends chunks of one size and status.
bool NetworkPageWriter::append_uniform(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from) {
  const std::uint32_t wanted = run.count - from.chunk;
  const auto fitting = [&](std::size_t room) {
    // Empty chunks take no room; their number must not exceed the bytes of the run.
    if (run.size == 0) return std::min<std::uint32_t>(wanted, kNetworkRunHeaderBytes);
    if (std::size_t{wanted} * run.size <= room) return wanted;  // the usual case, without a division
    return static_cast<std::uint32_t>(room / run.size);
  };
  std::uint32_t chunks = 0;
  RunHeader last = last_ == 0 ? RunHeader{} : load<RunHeader>(memory_.data() + last_);
  if (last_ != 0 && run.size != 0 && last.link == link && last.kind == kUniform && last.status == run.status &&
      last.size == run.size && last.count + last.chunks == count) {
    chunks = fitting(memory_.size() / 8 * 8 - data_end_);
    copy(memory_.data() + data_end_, run, from.chunk, chunks);
    last.chunks += chunks;
    std::memcpy(memory_.data() + last_, &last, sizeof last);
    close(data_end_ + std::size_t{chunks} * run.size);
  } else {
    chunks = room() == 0 ? 0 : fitting(room());
    if (chunks == 0) return false;
    copy(open(link, kUniform, run.status, chunks, count, run.size), run, from.chunk, chunks);
    close(end_ + kNetworkRunHeaderBytes + std::size_t{chunks} * run.size);
  }
  from.chunk += chunks;
  return chunks == wanted || run.size == 0;
}

// Appends chunks of different sizes: as many as fit, up to the first one that must be split.
bool NetworkPageWriter::append_table(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from) {
  const std::size_t free = room();
  std::size_t bytes = 0;
  std::uint32_t chunks = 0;
  for (std::uint32_t i = from.chunk; i < run.count; ++i, ++chunks) {
    const std::size_t size = run.entries[i].size;
    if (size > kMostInTable || (chunks + std::size_t{1}) * kEntryBytes + bytes + size > free) break;
    bytes += size;
  }
  if (chunks == 0) return false;
  std::byte* table = open(link, kTable, 0, chunks, count, static_cast<std::uint32_t>(bytes));
  std::byte* to = table + chunks * kEntryBytes;
  for (std::uint32_t i = 0; i < chunks; ++i, table += kEntryBytes) {
    const ChunkEntry& entry = run.entries[from.chunk + i];
    const std::uint32_t word = entry.size | std::uint32_t{entry.status} << 24;
    std::memcpy(table, &word, sizeof word);
    std::memcpy(to, run.data + entry.offset, entry.size);
    to += entry.size;
  }
  close(static_cast<std::size_t>(to - memory_.data()));
  from.chunk += chunks;
  return true;
}

// Appends a chunk, or as much of it as fits. A run of a part is not joined with others.
bool NetworkPageWriter::append_part(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from) {
  const std::span<const std::byte> chunk = run.chunk(from.chunk);
  const std::size_t left = chunk.size() - from.byte;
  const std::size_t free = room();
  if (free == 0) return false;
  const std::size_t bytes = std::min(left, free);
  const bool ends = bytes == left;
  const std::uint8_t kind = ends && !run.more_follows ? kUniform : kUniform | kMoreFollows;
  std::byte* to = open(link, kind, run.chunk_status(from.chunk), 1, count, static_cast<std::uint32_t>(bytes));
  std::memcpy(to, chunk.data() + from.byte, bytes);
  close(end_ + kNetworkRunHeaderBytes + bytes);
  last_ = 0;
  from = ends ? RunPlace{from.chunk + 1} : RunPlace{from.chunk, from.byte + static_cast<std::uint32_t>(bytes), true};
  return ends;
}

std::span<const std::byte> NetworkPageWriter::finish(std::uint64_t number, std::uint64_t clock_ns) {
  const std::size_t bytes = end_;
  const PageHeader header{kMarker, static_cast<std::uint32_t>(bytes), number, clock_ns, runs_, 0};
  std::memcpy(memory_.data(), &header, sizeof header);
  *this = NetworkPageWriter(memory_);
  return memory_.first(bytes);
}

// ---- reading

NetworkPageReader::NetworkPageReader(std::size_t links, std::size_t page_bytes) : links_(links), page_bytes_(page_bytes) {
  runs_.reserve(page_bytes / kNetworkRunHeaderBytes);
  counts_.reserve(page_bytes / kNetworkRunHeaderBytes);
  entries_.reserve(page_bytes / kEntryBytes);
}

Decoded<NetworkPageHeader> NetworkPageReader::read(std::span<const std::byte> page) {
  runs_.clear();
  counts_.clear();
  entries_.clear();
  if (page.size() < kNetworkPageHeaderBytes)
    return refused(DecodeFault::truncated, 0, "page header", page.size(), kNetworkPageHeaderBytes);
  if (page.size() > page_bytes_) return refused(DecodeFault::too_large, 0, "page", page.size(), page_bytes_);
  const auto header = load<PageHeader>(page.data());
  if (header.marker != kMarker) return refused(DecodeFault::wrong_value, 0, "page marker", header.marker, kMarker);
  if (header.bytes != page.size()) return refused(DecodeFault::wrong_value, 4, "page size", header.bytes, page.size());
  if (header.clock_ns > kMostNetworkClockNs)
    return refused(DecodeFault::too_large, 16, "clock", header.clock_ns, kMostNetworkClockNs);
  std::size_t at = kNetworkPageHeaderBytes;
  for (std::uint32_t run = 0; run < header.runs; ++run) {
    const auto end = read_run(page, at);
    if (!end) {
      runs_.clear();
      counts_.clear();
      return std::unexpected(end.error());
    }
    at = *end;
  }
  if (at != page.size()) {
    runs_.clear();
    counts_.clear();
    return refused(DecodeFault::wrong_value, at, "end of the runs", at, page.size());
  }
  return NetworkPageHeader{header.number, header.clock_ns};
}

// Returns the end of the run that begins at `at`.
Decoded<std::size_t> NetworkPageReader::read_run(std::span<const std::byte> page, std::size_t at) {
  const std::size_t data = at + kNetworkRunHeaderBytes;
  if (data > page.size()) return refused(DecodeFault::truncated, at, "run header", page.size() - at, kNetworkRunHeaderBytes);
  const auto header = load<RunHeader>(page.data() + at);
  if (header.link >= links_) return refused(DecodeFault::too_large, at, "link", header.link, links_ - 1);
  if (header.chunks == 0) return refused(DecodeFault::too_small, at + 4, "number of chunks", 0, 1);
  if (header.chunks > page.size())
    return refused(DecodeFault::too_large, at + 4, "number of chunks", header.chunks, page.size());
  ChunkRun run{.data = page.data() + data, .count = header.chunks, .link = header.link, .status = header.status};
  std::size_t end = 0;
  if (header.kind == kTable) {
    if (header.status != 0)
      return refused(DecodeFault::wrong_value, at + 3, "status of a run with a table", header.status, 0);
    const auto table_end = read_table(page, data, run, header.size);
    if (!table_end) return table_end;
    end = *table_end;
  } else if (header.kind == kUniform || header.kind == (kUniform | kMoreFollows)) {
    if (header.kind != kUniform && header.chunks != 1)
      return refused(DecodeFault::wrong_value, at + 4, "chunks of a run that goes on", header.chunks, 1);
    const std::uint64_t bytes = std::uint64_t{header.chunks} * header.size;
    if (bytes > page.size() - data) return refused(DecodeFault::truncated, data, "chunks", page.size() - data, bytes);
    run.size = run.stride = header.size;
    run.more_follows = header.kind != kUniform;
    end = data + bytes;
  } else {
    return refused(DecodeFault::unknown, at + 2, "kind of a run", header.kind, kTable);
  }
  if (padded(end) > page.size())
    return refused(DecodeFault::truncated, end, "end of a run", page.size() - end, padded(end) - end);
  if (header.chunks > padded(end) - at)
    return refused(DecodeFault::too_large, at + 4, "number of chunks", header.chunks, padded(end) - at);
  runs_.push_back(run);
  counts_.push_back(header.count);
  return padded(end);
}

Decoded<std::size_t> NetworkPageReader::read_table(std::span<const std::byte> page, std::size_t at, ChunkRun& run,
                                                   std::uint32_t bytes) {
  const std::size_t table_bytes = run.count * kEntryBytes;
  const std::size_t room = page.size() - at;
  if (table_bytes > room) return refused(DecodeFault::truncated, at, "table of sizes", room, table_bytes);
  if (bytes > room - table_bytes)
    return refused(DecodeFault::truncated, at + table_bytes, "chunks", room - table_bytes, bytes);
  run.data = page.data() + at + table_bytes;
  std::uint64_t offset = 0;
  const std::size_t first = entries_.size();
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const auto word = load<std::uint32_t>(page.data() + at + i * kEntryBytes);
    entries_.push_back({static_cast<std::uint32_t>(offset), word & kMostInTable, static_cast<std::uint8_t>(word >> 24)});
    offset += word & kMostInTable;
    if (offset > bytes) break;
  }
  if (offset != bytes) return refused(DecodeFault::wrong_value, at, "sum of the sizes", offset, bytes);
  run.entries = entries_.data() + first;  // entries_ never reallocates: it has room for all words of a page
  run.status = 0;
  return at + table_bytes + bytes;
}

}  // namespace rodeo::formats
