// One worker of the GBT builder: reads its links' runs and spreads their chunks over the slices of open events, in one
// thread. Its peers learn of a slice only when it is ready (software ROD paper, section VIII, stage 1).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "readout/builder/builder_worker.h"
#include "readout/builder/event_window.h"
#include "readout/builder/gbt_link.h"
#include "readout/builder/rob_sequence.h"
#include "readout/builder/source_balance.h"

namespace rodeo::readout {

class GbtWorker final : public BuilderWorker, private EventWindowHost, private EventBcids {
 public:
  /// `rob` and `progress` are shared with the peers. `window`: number of open events, a power of two.
  GbtWorker(const Settings& settings, std::uint64_t window, std::span<const BuilderLink> links, WorkerEquipment equipment,
            std::unique_ptr<SliceStore> store, RobSequence& rob, Assembler& assembler, std::span<WorkerProgress> progress);

  /// Adds the worker's sources to the readers of the process. Call it before run().
  void share(ReaderTracks& tracks);

  FragmentBuilder::Link link_status(std::size_t link) const override;
  double pool_fill() const override;
  std::string memory() const { return window_.store().arena().description(); }

 private:
  void begin_thread() override;
  bool holds_back() override;
  bool resume_parked() override;
  void release_all_pages() override;
  void process_page(Page& page) override;
  void poll_list() override;
  void check_events(bool drained) override;
  void set_removed(std::size_t link, bool removed) override;
  void finish() override;
  void finish_links(bool give_up);

  bool process_up_to_limit(std::uint32_t source, SourceBalance::Place at, bool forced);
  bool needs_decision(std::size_t link);
  bool peers_may_resolve(std::size_t link);
  bool sources_may_resolve(std::size_t link);
  void wait_for_peers(std::size_t link);
  std::optional<std::size_t> waiting_link() const;
  bool any_reader_proceeds();
  void report_drained();
  void report_page_end();
  void report_page_begin();
  void end_page();
  bool short_of_buffers() const;
  void process_run(const ChunkRun& run);
  bool append_single_expected(GbtLink& link, const ChunkRun& run);
  std::uint32_t count_expected(const GbtLink& link, std::uint32_t first, std::uint32_t n) const;
  void append_expected(GbtLink& link, const ChunkRun& run, std::uint32_t first, std::uint32_t n, const std::uint16_t* bcids);
  void handle_single(GbtLink& link, const ChunkRun& run, std::uint32_t chunk, std::uint32_t at, bool corrupt);
  void deliver(GbtLink& link, Sequence sequence, const ChunkView& chunk, std::uint16_t flags);
  void apply_decisions(std::size_t link);
  void warn_of_strays(std::size_t link);
  void rejudge_all();
  void begin_window();
  Sequence oldest() const { return window_.begun() ? window_.oldest() : 0; }
  Sequence passed_by_peers() const;
  void follow_peers();
  void open_listed();
  void close_all();
  std::size_t position_of(const GbtLink& link) const { return static_cast<std::size_t>(&link - links_.get()); }

  std::uint16_t fill_event(Sequence sequence, const GbtLink& link, std::span<const std::byte> chunk,
                           OpenEvent& event) override;
  void on_cut(std::size_t bytes) override;
  void set_waiting(std::size_t with) override;
  std::optional<std::uint16_t> bcid(Sequence number) const override;

  RobSequence& rob_;
  Assembler& assembler_;
  const std::span<WorkerProgress> progress_;
  const std::unique_ptr<GbtLink[]> links_;
  std::vector<std::size_t> members_;  // position of each link in the sequencer
  EventWindow window_;
  SourceBalance balance_;

  AppendKernel kernel_ = nullptr;
  std::uint32_t kernel_size_ = 0;
  std::uint64_t version_ = 0;      // version of the sequencer at the last look at waiting chunks
  std::uint64_t rejudged_at_ = 0;  // event clock at that look
  std::uint32_t active_links_ = 0;
  std::size_t first_reader_ = 0;  // position of the worker's first source in the sequencer
  struct ChunkSegment {
    std::uint32_t resets = 0;
    std::uint32_t rounds = 0;
    Sequence base = 0;
  };
  ChunkSegment chunk_segment_;                                     // segment of the chunk that is being appended, for name()
  std::array<std::pair<std::uint64_t, Sequence>, 8> list_ends_{};  // pairs of event clock and end of the list at that time
  std::size_t list_end_count_ = 0;
  base::LogThrottle restarts_;
  base::LogThrottle strays_;
};

}  // namespace rodeo::readout
