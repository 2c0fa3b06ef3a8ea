// Joins chunks that an input delivers in parts (ChunkRun::more_follows). After it, every run holds whole chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/mapping.h"
#include "input/free_list.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// Counts of joining; any thread may read.
struct JoinCounts {
  base::Gauge<std::uint64_t> joined_chunks;
  /// Chunks longer than the limit, or without an end; they are delivered as truncated.
  base::Gauge<std::uint64_t> cut_chunks;
  base::Gauge<std::uint64_t> cut_bytes;  ///< bytes that arrived beyond the limit
};

/// A page without parts passes through unchanged. Other pages are divided: each stretch of whole chunks becomes a page, and
/// so does each joined chunk, in memory of this stream. Chunks of a link keep their order. Memory is reserved at
/// construction, and used as far as chunks are long.
class JoinedStream final : public DataStream {
 public:
  struct Settings {
    std::uint32_t max_chunk_bytes = 0;  ///< longer chunks are cut and marked
    std::size_t memory_bytes = 0;  ///< memory of the joined chunks that are delivered at a time; one chunk is always allowed
    std::size_t pages = 256;       ///< pages delivered at a time, of each kind
  };
  /// 64 MiB of memory, or more if one chunk of each link and four further chunks need it: a builder may wait with one chunk
  /// of each link for the next chunks.
  static Settings settings(std::uint32_t max_chunk_bytes, std::size_t links);

  /// `links`: number of links in the stream. Throws SetupError base.memory: no address space for the chunks.
  JoinedStream(std::unique_ptr<DataStream> stream, std::size_t links, Settings settings);
  ~JoinedStream() override;

  PollStatus poll(Page*& out) override;
  void release(Page& page) noexcept override;
  /// The clock of the input; it stands still while a page of the input is only partly delivered.
  std::uint64_t clock_ns() const override;
  StreamCounters counters() const override;
  double memory_fill() const override;
  std::uint32_t sources() const override { return stream_->sources(); }
  std::uint32_t source_of(LinkIndex link) const override { return stream_->source_of(link); }
  bool source_ended(std::uint32_t source) const override;
  void hold(std::uint32_t source, bool held) override;
  void want(LinkIndex link, bool wanted) override { stream_->want(link, wanted); }

  /// Stops reading from the input. poll() delivers the arrived parts of open chunks, marked as truncated; then the stream
  /// ends. Returns false if it was called before. For the thread of poll().
  bool give_up() { return !std::exchange(given_up_, true); }

  const JoinCounts& counts() const { return counts_; }

 private:
  enum class Kind : std::uint8_t { chunk, stretch };
  struct OwnPage : Page {
    Kind kind = Kind::chunk;
  };
  /// A chunk that is joined or being joined.
  struct Chunk : OwnPage {
    ChunkRun run;
    std::byte* memory = nullptr;
    std::size_t touched = 0;  // used bytes of the memory
    Chunk* next_free = nullptr;
  };
  /// Consecutive runs of an input page that hold whole chunks.
  struct Stretch : OwnPage {
    ChunkRun rest;  // the rest of a run whose first chunk was the end of a joined chunk
    Page* of = nullptr;
    Stretch* next_free = nullptr;
  };
  struct Source {
    Page* page = nullptr;  // page with runs left
    std::size_t at = 0;    // index of the next run
    bool first_taken = false;
    bool held = false;
    std::size_t begun = 0;  // number of links in the middle of a chunk
  };

  bool in_parts(const Page& page) const;
  bool advance(Source& source, Page*& out);
  bool whole(const ChunkRun& run) const { return !run.more_follows && open_[run.link] == nullptr; }
  Chunk* begin_chunk(LinkIndex link);
  void append(Chunk& chunk, const ChunkRun& part);
  void hand_out(Source& source, LinkIndex link, Page*& out);
  bool end_chunk(bool over, Page*& out);
  void collect_returned();
  void trim();

  const Settings settings_;
  std::unique_ptr<DataStream> stream_;
  base::Mapping memory_;
  std::vector<Source> sources_;
  std::vector<Chunk*> open_;  // the chunk that is being joined, for each link
  std::unique_ptr<Chunk[]> chunks_;
  std::unique_ptr<Stretch[]> stretches_;
  std::vector<Chunk*> free_;  // the chunk that came back last is taken first
  FreeList<Chunk> returned_;
  FreeList<Stretch> free_stretches_;
  std::size_t touched_ = 0;  // used bytes of all chunks' memory
  bool given_up_ = false;
  mutable std::uint64_t clock_ns_ = 0;
  base::Gauge<std::size_t> out_chunks_;
  base::Gauge<std::size_t> out_bytes_;
  base::Gauge<std::uint64_t> without_end_;  // chunks that the input does not count
  JoinCounts counts_;
};

}  // namespace rodeo::input
