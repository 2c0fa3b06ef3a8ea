// Pages of chunk runs, as they go over the network (docs/formats/network-page.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "rodeo/chunk.h"

namespace rodeo::formats {

inline constexpr std::size_t kNetworkPageHeaderBytes = 32;
inline constexpr std::size_t kNetworkRunHeaderBytes = 16;

/// A place in a run: the next chunk, and how much of it has gone before.
struct RunPlace {
  std::uint32_t chunk = 0;
  std::uint32_t byte = 0;
  bool continues = false;  ///< the chunk began in an earlier run of the link, or in an earlier part
};

/// A clock beyond it, 146 years, is none.
inline constexpr std::uint64_t kMostNetworkClockNs = std::uint64_t{1} << 62;

/// Fills one page. Memory is the caller's, at least kLeastBytes, at a multiple of 8, and nothing is allocated.
class NetworkPageWriter {
 public:
  static constexpr std::size_t kLeastBytes = 256;

  explicit NetworkPageWriter(std::span<std::byte> memory) : memory_(memory) {}

  /// Copies the chunks of a run from `from` on, as many as have room, and moves `from` behind them. True: all of them are in the page.
  /// `link`: position in the subscription; `count`: chunks of the link before this run. A chunk that an empty page has no room for goes in parts.
  /// What goes on where the run before ended, is written as one run with it. A run with more_follows does not count: the next has the same `count`.
  bool append(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from);

  std::size_t size_bytes() const { return end_; }
  std::uint32_t runs() const { return runs_; }

  /// The page as it is sent, of the memory. The writer is empty again.
  std::span<const std::byte> finish(std::uint64_t number, std::uint64_t clock_ns);

 private:
  bool append_uniform(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from);
  bool append_table(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from);
  bool append_part(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from);
  std::size_t room() const;
  std::byte* open(LinkIndex link, std::uint8_t kind, std::uint8_t status, std::uint32_t chunks, std::uint32_t count,
                  std::uint32_t size);
  void close(std::size_t end);

  std::span<std::byte> memory_;
  std::size_t end_ = kNetworkPageHeaderBytes;  // of the runs, a multiple of 8
  std::uint32_t runs_ = 0;
  std::size_t last_ = 0;      // where the last run begins; 0: there is none
  std::size_t data_end_ = 0;  // of the last run, before its zeros
};

struct NetworkPageHeader {
  std::uint64_t number = 0;    ///< of the connection's page
  std::uint64_t clock_ns = 0;  ///< since the connection began

  bool operator==(const NetworkPageHeader&) const = default;
};

/// Reads pages of one subscription; one thread. Runs point into the page and into tables of the reader, and are good until the next read().
class NetworkPageReader {
 public:
  /// No page is larger than `page_bytes`: all memory is taken here.
  NetworkPageReader(std::size_t links, std::size_t page_bytes);

  /// Survives any bytes, which lie at a multiple of 8. After an error there are no runs.
  Decoded<NetworkPageHeader> read(std::span<const std::byte> page);

  std::span<const ChunkRun> runs() const { return runs_; }
  /// Of each run: the chunks of its link that came before it, modulo 2^32.
  std::span<const std::uint32_t> counts() const { return counts_; }

 private:
  Decoded<std::size_t> read_run(std::span<const std::byte> page, std::size_t at);
  Decoded<std::size_t> read_table(std::span<const std::byte> page, std::size_t at, ChunkRun& run, std::uint32_t bytes);

  const std::size_t links_;
  const std::size_t page_bytes_;
  std::vector<ChunkRun> runs_;
  std::vector<std::uint32_t> counts_;
  std::vector<ChunkEntry> entries_;
};

}  // namespace rodeo::formats
