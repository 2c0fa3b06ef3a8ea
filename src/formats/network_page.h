// Pages of chunk runs in network format (docs/reference/formats/network-page.md).
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

/// A place in a run: the next chunk, and the number of its bytes already written.
struct RunPlace {
  std::uint32_t chunk = 0;
  std::uint32_t byte = 0;
  bool continues = false;  ///< the chunk began in an earlier run of the link, or in an earlier part
};

/// A higher clock value (146 years) is invalid.
inline constexpr std::uint64_t kMostNetworkClockNs = std::uint64_t{1} << 62;

/// Fills one page in the caller's memory, which has at least kLeastBytes and is aligned to 8. Never allocates.
class NetworkPageWriter {
 public:
  static constexpr std::size_t kLeastBytes = 256;

  explicit NetworkPageWriter(std::span<std::byte> memory) : memory_(memory) {}

  /// Copies as many chunks of a run as fit, from `from` on, and moves `from` behind them. True: all chunks of the run are in
  /// the page. `link`: position in the subscription; `count`: chunks of the link before this run. A chunk that is larger
  /// than an empty page is split. A run that continues the last one is merged with it. A run with more_follows is not
  /// counted: the next run has the same `count`.
  bool append(LinkIndex link, std::uint32_t count, const ChunkRun& run, RunPlace& from);

  std::size_t size_bytes() const { return end_; }
  std::uint32_t runs() const { return runs_; }

  /// The finished page, in the given memory. The writer is then empty.
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
  std::size_t end_ = kNetworkPageHeaderBytes;  // end of the runs, a multiple of 8
  std::uint32_t runs_ = 0;
  std::size_t last_ = 0;      // begin of the last run; 0: the page has no run
  std::size_t data_end_ = 0;  // end of the last run's data, before the padding
};

struct NetworkPageHeader {
  std::uint64_t number = 0;    ///< number of the page on this connection
  std::uint64_t clock_ns = 0;  ///< time since the connection began

  bool operator==(const NetworkPageHeader&) const = default;
};

/// Reads pages of one subscription; one thread. Runs point into the page and into tables of the reader, and are valid until
/// the next read().
class NetworkPageReader {
 public:
  /// No page may be larger than `page_bytes`: all memory is allocated here.
  NetworkPageReader(std::size_t links, std::size_t page_bytes);

  /// Accepts any bytes, aligned to 8. After an error there are no runs.
  Decoded<NetworkPageHeader> read(std::span<const std::byte> page);

  std::span<const ChunkRun> runs() const { return runs_; }
  /// For each run: the number of chunks of its link before it, modulo 2^32.
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
