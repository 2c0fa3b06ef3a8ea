#include "bench/readout/prepared_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <stdexcept>

#include "base/clock.h"
#include "formats/block_decoder.h"
#include "formats/block_encoder.h"
#include "readout/builder/builder_common.h"

namespace rodeo::bench {

using namespace readout;

namespace {

constexpr std::size_t kPageGap = 64;  // kernels may read a little beyond a chunk

/// One run of a link in a cycle: its arrival, and its events.
struct PlannedRun {
  std::uint32_t arrival;  ///< the event of the cycle whose trigger its last chunk follows
  std::uint32_t link;
  std::uint32_t first;  ///< event of its first chunk, in the cycle
  std::uint32_t count;
};

}  // namespace

/// Cycles over runs.
class PreparedInput::RunStream final : public DataStream {
 public:
  RunStream(PreparedInput& input, std::span<const std::size_t> links) : input_(input) { prepare(links); }

  PollStatus poll(Page*& page) override {
    if (input_.stopped_.load(std::memory_order_relaxed)) return PollStatus::end;
    Page& next = *pages_[at_];
    next.references.fetch_add(1, std::memory_order_relaxed);  // pages are never rewritten, so earlier holders are safe
    page = &next;
    at_ = at_ + 1 == pages_.size() ? 0 : at_ + 1;
    return PollStatus::page;
  }
  void release(Page&) noexcept override {}
  std::uint64_t clock_ns() const override { return base::steady_now_ns(); }
  StreamCounters counters() const override { return {}; }

 private:
  void prepare(std::span<const std::size_t> links) {
    const PreparedSettings& settings = input_.settings_;
    const std::vector<PlannedRun> plan = input_.settings_.groups != 0 ? plan_groups(links) : plan_links(links);
    std::size_t chunks = 0;
    for (const PlannedRun& run : plan) chunks += run.count;
    const std::size_t bytes =
        chunks * settings.chunk_bytes + kPageGap * (2 + chunks * settings.chunk_bytes / settings.page_bytes);
    auto arena = base::Arena::create(bytes + kPageGap);
    if (!arena) throw SetupError(arena.error().within("prepared pages"));
    arena_ = std::move(*arena);
    runs_.reserve(plan.size());
    std::byte* out = arena_.data() + kPageGap;
    std::size_t page_begin = 0;
    std::size_t page_fill = 0;
    std::vector<std::pair<std::size_t, std::size_t>> bounds;
    for (const PlannedRun& run : plan) {
      const Fid fid = input_.fids_[links[run.link]];
      ChunkRun made;
      made.data = out;
      made.size = made.stride = settings.chunk_bytes;
      made.count = run.count;
      made.link = static_cast<LinkIndex>(run.link);
      for (std::uint32_t i = 0; i < run.count; ++i) {
        input_.provable_.write({out, settings.chunk_bytes}, fid.default_link_id(), input_.carried(run.first + i));
        out += settings.chunk_bytes;
      }
      runs_.push_back(made);
      page_fill += std::size_t{run.count} * settings.chunk_bytes;
      if (page_fill >= settings.page_bytes) {
        bounds.emplace_back(page_begin, runs_.size());
        page_begin = runs_.size();
        page_fill = 0;
        out += kPageGap;
      }
    }
    if (page_begin != runs_.size()) bounds.emplace_back(page_begin, runs_.size());
    for (const auto& [begin, end] : bounds) {
      auto page = std::make_unique<Page>();
      page->runs = std::span<const ChunkRun>(runs_).subspan(begin, end - begin);
      page->stream = this;
      pages_.push_back(std::move(page));
    }
    input_.memory_.push_back({arena_.data(), static_cast<std::size_t>(out - arena_.data())});
  }

  // Every link carries every event. The runs of a link end at the link's own phase, and arrive after the trigger of their
  // last event.
  std::vector<PlannedRun> plan_links(std::span<const std::size_t> links) const {
    const std::uint32_t events = input_.cycle_events();
    const std::uint32_t length = input_.settings_.run_length;
    std::vector<PlannedRun> plan;
    for (std::uint32_t link = 0; link < links.size(); ++link) {
      std::mt19937 random(static_cast<std::uint32_t>(input_.settings_.seed * 7919 + links[link]));
      const std::uint32_t phase = static_cast<std::uint32_t>(random() % length);
      for (std::uint32_t at = 0; at < events;) {
        const std::uint32_t count = std::min(at == 0 && phase != 0 ? phase : length, events - at);
        plan.push_back({at + count - 1, link, at, count});
        at += count;
      }
    }
    std::stable_sort(plan.begin(), plan.end(),
                     [](const PlannedRun& a, const PlannedRun& b) { return a.arrival < b.arrival; });
    return plan;
  }

  std::vector<PlannedRun> plan_groups(std::span<const std::size_t> links) const {
    const std::uint32_t events = input_.cycle_events();
    const std::uint32_t turn = input_.turn();
    std::vector<PlannedRun> plan;
    for (std::uint32_t link = 0; link < links.size(); ++link) {
      const std::uint32_t place = static_cast<std::uint32_t>(links[link] % turn);
      for (std::uint32_t event = place; event < events; event += turn) plan.push_back({event, link, event, 1});
    }
    std::stable_sort(plan.begin(), plan.end(),
                     [](const PlannedRun& a, const PlannedRun& b) { return a.arrival < b.arrival; });
    return plan;
  }

  PreparedInput& input_;
  base::Arena arena_;
  std::vector<ChunkRun> runs_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t at_ = 0;
};

/// Cycles over raw blocks and decodes a page of them at each poll, in the builder's thread.
class PreparedInput::BlockStream final : public DataStream {
 public:
  BlockStream(PreparedInput& input, std::span<const std::size_t> links) : input_(input) { prepare(links); }

  PollStatus poll(Page*& page) override {
    if (input_.stopped_.load(std::memory_order_relaxed)) return PollStatus::end;
    Decoded& next = decoded_[turn_];
    if (next.page.references.load(std::memory_order_acquire) != 0) return PollStatus::empty;
    turn_ = (turn_ + 1) % decoded_.size();
    next.buffer->clear();
    const std::size_t left = blocks_.size() - at_;
    at_ += decoder_->decode(blocks_.subspan(at_, std::min(left, input_.settings_.page_bytes)), *next.buffer);
    if (at_ == blocks_.size()) at_ = 0;
    next.page.runs = next.buffer->runs();
    next.page.references.store(1, std::memory_order_relaxed);
    page = &next.page;
    return PollStatus::page;
  }
  void want(LinkIndex link, bool wanted) override { decoder_->want(link, wanted); }
  void release(Page&) noexcept override {}
  std::uint64_t clock_ns() const override { return base::steady_now_ns(); }
  StreamCounters counters() const override { return {}; }

 private:
  static constexpr std::size_t kBlock = 1024;
  static constexpr std::uint32_t kSequences = 32;

  struct Decoded {
    std::unique_ptr<formats::DecodeBuffer> buffer;
    Page page;
  };

  void prepare(std::span<const std::size_t> links) {
    const std::uint32_t events = input_.cycle_events();
    const std::uint32_t chunk_bytes = input_.settings_.chunk_bytes;
    const formats::BlockFormat format{};
    // First plans each link's blocks, with the event that fills each block; then sorts the blocks of all links by these
    // events.
    struct Planned {
      std::uint32_t arrival;
      std::uint32_t link;
      std::size_t index;
    };
    std::vector<std::vector<std::byte>> encoded(links.size());
    std::vector<Planned> plan;
    std::vector<std::byte> chunk(chunk_bytes);
    std::vector<std::uint16_t> elinks;
    const std::uint32_t turn = input_.turn();
    for (std::uint32_t link = 0; link < links.size(); ++link) {
      elinks.push_back(static_cast<std::uint16_t>(links[link]));
      std::mt19937 random(static_cast<std::uint32_t>(input_.settings_.seed * 7919 + links[link]));
      std::vector<std::byte>& bytes = encoded[link];
      bytes.reserve((std::size_t{events / turn} * (chunk_bytes + 2) / (kBlock - 64) + 2 * kSequences) * kBlock);
      formats::BlockEncoder encoder(format, elinks.back());
      std::uint32_t blocks = 0;
      const auto next = [&](std::uint32_t event) {
        bytes.resize(bytes.size() + kBlock);
        plan.push_back({event, link, blocks++});
        return std::span<std::byte>(bytes).last(kBlock);
      };
      // A first block that ends early gives the link its phase.
      const std::uint32_t phase = static_cast<std::uint32_t>(random() % (kBlock / (chunk_bytes + 2) + 1));
      for (auto event = static_cast<std::uint32_t>(links[link] % turn); event < events; event += turn) {
        if (event / turn == phase && !encoder.full()) encoder.timeout();
        input_.provable_.write(chunk, input_.fids_[links[link]].default_link_id(), input_.carried(event));
        encoder.append(chunk, 0, [&] { return next(event); });
        if (!plan.empty() && plan.back().link == link) plan.back().arrival = event;
      }
      if (!encoder.full()) encoder.timeout();
      while (blocks % kSequences != 0) {  // the sequence number must continue when the cycle begins again
        encoder.begin(next(events - 1));
        encoder.timeout();
      }
    }
    std::stable_sort(plan.begin(), plan.end(), [](const Planned& a, const Planned& b) { return a.arrival < b.arrival; });
    auto arena = base::Arena::create(plan.size() * kBlock);
    if (!arena) throw SetupError(arena.error().within("prepared blocks"));
    arena_ = std::move(*arena);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      std::memcpy(arena_.data() + i * kBlock, encoded[plan[i].link].data() + plan[i].index * kBlock, kBlock);
    }
    blocks_ = {arena_.data(), plan.size() * kBlock};
    decoder_ = std::make_unique<formats::BlockDecoder>(formats::BlockDecoder::Options{.format = format}, elinks);
    for (Decoded& decoded : decoded_) {
      decoded.buffer = std::make_unique<formats::DecodeBuffer>(decoder_->capacity_for(input_.settings_.page_bytes / kBlock));
      decoded.page.stream = this;
    }
    input_.memory_.push_back(blocks_);
  }

  PreparedInput& input_;
  base::Arena arena_;
  std::span<const std::byte> blocks_;
  std::unique_ptr<formats::BlockDecoder> decoder_;
  std::array<Decoded, 4> decoded_;  // a builder may keep a page for some time
  std::size_t turn_ = 0;
  std::size_t at_ = 0;
};

PreparedInput::PreparedInput(const PreparedSettings& settings)
    : settings_(settings), provable_(settings.seed, settings.crc) {
  if (settings.links == 0 || settings.chunk_bytes < 8 || settings.run_length == 0)
    throw std::runtime_error("no links, no run or chunks below 8 bytes");
  const auto halves = static_cast<std::uint32_t>(std::countr_zero(turn()));
  const std::uint32_t odd =
      turn() >> halves;  // the odd factor of turn(): times 2^n with n >= halves, it is a multiple of turn()
  const std::size_t round_bytes =
      std::size_t{settings.groups == 0 ? settings.links : settings.groups} * settings.chunk_bytes * odd;
  for (bits_ = std::max(12U, halves); bits_ < 20 && (round_bytes << bits_) < settings.least_bytes; ++bits_) {
  }
  check_memory(round_bytes << bits_, "prepared pages", "take fewer links, or a power of two of them in each group");
  events_ = odd << bits_;
  for (std::uint32_t link = 0; link < settings.links; ++link)
    fids_.push_back(Fid::of(0x61, link / 2048, link / 8 % 256, link % 8));
}

PreparedInput::~PreparedInput() = default;

std::unique_ptr<DataStream> PreparedInput::open(std::span<const Fid> links) {
  std::vector<std::size_t> indices;
  for (const Fid fid : links) {
    indices.push_back(static_cast<std::size_t>(std::find(fids_.begin(), fids_.end(), fid) - fids_.begin()));
  }
  if (settings_.blocks) return std::make_unique<BlockStream>(*this, indices);
  return std::make_unique<RunStream>(*this, indices);
}

std::uint32_t PreparedInput::turn() const { return settings_.groups == 0 ? 1 : settings_.links / settings_.groups; }

std::uint32_t PreparedInput::group_of(std::size_t link) const { return static_cast<std::uint32_t>(link) / turn(); }

std::size_t PreparedInput::bytes() const {
  std::size_t sum = 0;
  for (const auto& piece : memory_) sum += piece.size();
  return sum;
}

bool PreparedInput::matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const {
  return chunk.size() == settings_.chunk_bytes && provable_.matches(chunk, link_id, carried(l1id.value));
}

}  // namespace rodeo::bench
