// One worker's walk through a recording: decodes blocks in the worker's own thread, in poll().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/counters.h"
#include "formats/block_decoder.h"
#include "formats/provable.h"
#include "input/chunk_limit.h"
#include "input/delivered.h"
#include "input/free_list.h"
#include "input/recording.h"
#include "input/stop_plan.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::input {

/// The rules for playing a recording; shared by all streams of an input. The application's thread sets start_ns and the
/// members after it.
struct Playback {
  double rate_hz = 0;                 ///< events per second; 0: as fast as they are taken
  bool loop = false;                  ///< plays the recording again and again, with new L1 ids
  RestampFunction restamp = nullptr;  ///< used in loops; nullptr: chunks are rewritten as `provable`
  formats::Provable provable{1};
  std::uint64_t memory_bytes = 0;  ///< memory of each stream for the rewritten chunks of a loop

  std::atomic<std::uint64_t> start_ns{0};  ///< 0: not started
  static constexpr std::uint64_t kNoStop = ~std::uint64_t{0};
  /// Place in bytes, over all passes: no stream plays beyond it until there is a plan.
  std::atomic<std::uint64_t> hold_at{kNoStop};
  StopPlan plan;                     ///< written before `planned`
  std::atomic<bool> planned{false};  ///< the streams end by the plan
};

/// Runs point into the mapped file, which is read-only; when looping, into copies in page memory.
class FileStream final : public DataStream, public ChunkLimit {
 public:
  /// `elinks[i]`: the number of link i in block headers. `link_ids[i]`: its id in provable chunks. Throws SetupError.
  FileStream(const Recording& recording, const Playback& playback, std::span<const std::uint16_t> elinks,
             std::span<const std::uint32_t> link_ids, bool trigger_list = false);

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;

  /// Recording time: the recording's events are taken as 10 us apart, or less if `rate` is higher, and spread over its
  /// blocks. So event time-outs follow the data, at any playing speed and with any ids. The time that a block takes to fill
  /// at a low rate does not count.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  void want(LinkIndex link, bool wanted) override { decoder_.want(link, wanted); }
  std::uint32_t max_chunk_bytes() const override { return recording_.max_chunk_bytes(); }
  bool plays_file() const override { return true; }
  std::uint64_t quiet_until() const override { return quiet_until_; }

  const formats::BlockCounters& block_counters() const { return decoder_.counters(); }
  /// Number of chunks that kept their L1 id: the recording does not have the id, or the plug-in threw.
  std::uint64_t not_restamped() const { return not_restamped_.get(); }
  /// Number of bytes walked, over all passes; any thread.
  std::uint64_t played_bytes() const { return played_.get(); }
  /// End of the bytes that are walked or about to be. If it is not beyond hold_at just after hold_at was set, it never will
  /// be.
  std::uint64_t claimed() const { return claimed_.load(); }

 private:
  struct FilePage : Page {
    FilePage(formats::DecodeBuffer::Capacity capacity, FileStream& of, std::byte* copy_to);
    formats::DecodeBuffer decoded;
    // In a loop: the runs, which point into `memory`. At the end of a run: the runs that are left.
    std::vector<ChunkRun> copies;
    std::byte* memory;
    FilePage* next_free = nullptr;
  };

  std::uint64_t allowed_bytes(std::uint64_t now_ns, bool planned) const;
  std::span<const ChunkRun> up_to_last_event(FilePage& page);
  bool decode_next(std::uint64_t allowed, bool planned, FilePage& page);
  PollStatus end_pass(bool stopped, Page*& out);
  std::span<const ChunkRun> restamped(FilePage& page, std::span<const ChunkRun> runs);
  void restamp(std::span<std::byte> chunk, LinkIndex link);
  PollStatus deliver(FilePage& page, std::span<const ChunkRun> runs, Page*& out);

  const Recording& recording_;
  const Playback& playback_;
  formats::BlockDecoder decoder_;
  std::vector<std::uint32_t> link_ids_;
  const double clock_ns_per_byte_;

  std::deque<FilePage> pages_;
  base::Arena memory_;
  std::unique_ptr<std::byte[]> last_memory_;
  FilePage last_page_;  // the chunks that the end of a pass leaves open: at most one for each link
  std::atomic<bool> last_page_free_{true};
  FreeList<FilePage> free_;

  std::uint64_t pass_ = 0;
  std::size_t at_ = 0;        // place in the recording
  bool pass_closed_ = false;  // the chunks that the end of the pass left open are delivered
  bool ended_ = false;
  std::uint64_t clock_ns_ = 0;
  std::uint64_t quiet_until_ = 0;
  std::vector<RecordedIds::Follower> followers_;
  std::vector<bool> done_;  // links that have gone beyond the last event of the plan
  const bool trigger_list_;

  Delivered delivered_;
  base::Gauge<std::uint64_t> not_restamped_;
  base::Gauge<std::uint64_t> played_;
  std::atomic<std::uint64_t> claimed_{0};
};

}  // namespace rodeo::input
