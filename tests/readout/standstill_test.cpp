// A search for states in which a builder stops. Sizes of pages, windows and chunks, links, faults, lists and consumers are
// random. Every run must end, with counts that add up. The input's clock is stopped, so that no time-out decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "readout/full_fixture.h"
#include "readout/scenario_seeds.h"

namespace rodeo::test {
namespace {

/// A consumer that keeps the last fragments until new ones come.
class Hoarder final : public FragmentConsumer {
 public:
  explicit Hoarder(std::size_t most) : most_(most) {}
  void insert(FragmentPtr fragment) override {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(fragment));
    if (kept_.size() > most_) kept_.pop_front();
  }
  Status status() const override { return {}; }
  void let_go() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::deque<FragmentPtr> kept_;
};

struct Sizes {
  bool full = false;
  bool listed = false;
  std::uint32_t links = 1;
  std::uint32_t turn = 1;  ///< FULL: links per group
  std::uint32_t workers = 1;
  std::uint32_t window = 64;
  std::uint32_t events = 1000;
  std::uint32_t per_page = 1;  ///< events per page
  std::uint32_t resets = 0;    ///< events from one reset to the next; 0: none
  std::uint32_t sources = 1;   ///< GBT: number of cards
  std::size_t pages = 4;       ///< limit of the pages of a stream that are in use at a time
  std::size_t kept = 0;        ///< fragments that the consumer keeps
  std::size_t copies = 0;
  std::uint32_t bytes = 40;  ///< size of a long chunk
  std::uint32_t part = 0;    ///< long chunks come in parts of this size; 0: whole
  double is_long = 0;        ///< fraction of long chunks
  double flipped = 0;        ///< fraction of flipped chunks; the next chunk of the link is flipped, too
  double lost = 0;           ///< fraction of lost chunks and list entries
  std::uint32_t silent_link = ~0U;
  std::uint32_t silent_from = 0;
  std::uint32_t silent_for = 0;
  std::uint32_t lag = 0;       ///< events by which the last link lags
  std::uint32_t list_lag = 0;  ///< events by which the list lags; more than `events`: it comes at the end
};

Sizes draw(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto of = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[of(0, static_cast<std::uint32_t>(all.size() - 1))];
  };
  Sizes s;
  s.full = of(0, 2) != 0;
  s.listed = of(0, 2) != 0;
  s.turn = s.full ? of(1, 3) : 1;
  s.links = s.turn * of(1, 4);
  s.workers = of(1, std::min(3U, s.links / s.turn));
  s.window = s.full ? one_of(64U, 64U, 256U) : 256U;
  s.events = of(1, 4) * (2 * s.window + 700);
  s.per_page = one_of(1U, 1U, 3U, 16U);
  s.resets = of(0, 3) == 0 ? of(200, 900) : 0;
  s.sources = !s.full && s.workers == 1 && s.links > 1 ? of(1, 2) : 1;
  s.pages = one_of(2U, 3U, 8U, 30U);
  s.kept = of(0, static_cast<std::uint32_t>(s.pages - 1) / 2);
  s.copies = s.full ? one_of(0U, 0U, 4U) : 0;
  s.flipped = one_of(0., 0., 0.002, 0.02);
  s.lost = one_of(0., 0., 0.01);
  if (of(0, 1) == 0) {
    s.silent_link = of(0, s.links - 1);
    s.silent_from = of(0, s.events / 2);
    s.silent_for = of(1, s.events);
  }
  s.lag = of(0, 2) == 0 ? of(1, 2 * s.window) : 0;
  s.list_lag = one_of(0U, 0U, 10U, 300U, 1U << 20);
  s.bytes = one_of(40U, 41U, 1000U, 9000U);
  s.part = one_of(0U, 16U, 500U, 4096U);
  s.is_long = one_of(0.01, 0.05, 0.5);
  if (s.bytes > 1000) s.is_long = 0.01;
  return s;
}

/// One run: sends the data and checks the end.
class BuilderRun {
 public:
  explicit BuilderRun(std::uint32_t seed)
      : s_(draw(seed)), random_(seed), fids_(GbtFixture::make_fids(s_.links)), input_(fids_, sources()), consumer_(s_.kept) {
    for (std::uint32_t i = 0; i < s_.links; ++i)
      links_.push_back({fids_[i], fids_[i].default_link_id(), s_.full ? i / s_.turn : 0});
    input_.set_pages(s_.pages);
    const BuilderContext context{.source_id = SourceId{0x610100},
                                 .links = links_,
                                 .input = &input_,
                                 .consumer = &consumer_,
                                 .make_extractor = [] { return readout::make_field_extractor({}); },
                                 .make_checker = {}};
    constexpr std::chrono::milliseconds kTimeout{1};
    if (s_.full) {
      builder_ = std::make_unique<readout::FullBuilder>(readout::FullSettings{.workers = s_.workers,
                                                                              .timeout = kTimeout,
                                                                              .window = s_.window,
                                                                              .fragments = 64,
                                                                              .copies = s_.copies,
                                                                              .copy_bytes = 64,
                                                                              .trigger_list = s_.listed},
                                                        context);
    } else {
      readout::GbtSettings settings;
      settings.workers = s_.workers;
      settings.timeout = kTimeout;
      settings.window = s_.window;
      settings.trigger_list = s_.listed;
      builder_ = std::make_unique<readout::GbtBuilder>(settings, context);
    }
  }

  /// True if the run ended by itself, with counts that add up.
  bool ends() {
    send();
    builder_->start();
    input_.stop();
    std::future<void> joined = std::async(std::launch::async, [this] { builder_->join(); });
    const bool ended = joined.wait_for(patience()) == std::future_status::ready;
    if (!ended) {
      for (const FragmentBuilder::Worker& worker : builder_->status().workers)
        std::printf("%s waits for `%s`\n", worker.name.c_str(), worker.waits_for.c_str());
      builder_->give_up();
      input_.set_pages(~std::size_t{0});
    }
    joined.wait();
    const FragmentBuilder::Status status = builder_->status();
    std::uint64_t accounted = status.chunks_built;
    for (const NamedCounter& counter : status.lost) accounted += counter.value;
    EXPECT_EQ(status.chunks_received, sent_);
    EXPECT_EQ(status.chunks_received, accounted);
    consumer_.let_go();
    return ended;
  }

 private:
  std::vector<std::uint32_t> sources() const {
    if (s_.sources == 1) return {};
    std::vector<std::uint32_t> sources;
    for (std::uint32_t i = 0; i < s_.links; ++i) sources.push_back(i * s_.sources / s_.links);
    return sources;
  }
  bool happens(double share) { return share > 0 && std::uniform_real_distribution<double>()(random_) < share; }
  L1Id id(std::uint32_t event) const {
    return s_.resets == 0 ? L1Id{event} : L1Id::of(event / s_.resets, event % s_.resets);
  }
  bool brings(std::uint32_t link, std::uint32_t event) const {
    if (link == s_.silent_link && event >= s_.silent_from && event - s_.silent_from < s_.silent_for) return false;
    return !s_.full || link % s_.turn == event % s_.turn;
  }

  /// Adds the chunk to the page of its link. A chunk in parts ends the page.
  void add(std::vector<ScriptedRun>& runs, ScriptedRun& run, std::vector<std::byte> chunk) {
    if (s_.part == 0 || chunk.size() <= s_.part) return run.chunks.push_back(std::move(chunk));
    for (std::size_t at = 0; at < chunk.size(); at += s_.part) {
      const auto from = chunk.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t size = std::min<std::size_t>(s_.part, chunk.size() - at);
      if (!run.chunks.empty()) runs.push_back(std::exchange(run, {.fid = run.fid, .chunks = {}, .statuses = {}}));
      runs.push_back({.fid = run.fid,
                      .chunks = {{from, from + static_cast<std::ptrdiff_t>(size)}},
                      .statuses = {},
                      .more_follows = at + size < chunk.size()});
      if (happens(0.1)) input_.push(std::exchange(runs, {}));
    }
  }

  void send() {
    std::uint32_t listed = 0;
    const auto list_to = [&](std::uint32_t end) {
      std::vector<std::vector<std::byte>> packets;
      for (; listed < std::min(end, s_.events); ++listed) {
        if (happens(s_.lost)) continue;
        const formats::ProvableTrigger trigger = provable_.trigger(id(listed));
        formats::TtcPacket packet;
        packet.l1id = id(listed);
        packet.bcid = trigger.bcid;
        packet.trigger_type = trigger.trigger_type;
        packets.emplace_back(packet.size_bytes());
        packet.write(packets.back());
      }
      return packets;
    };
    if (s_.listed && s_.list_lag == 0) input_.push_triggers(list_to(s_.events));
    std::vector<bool> hurt(s_.links);
    for (std::uint32_t first = 0; first < s_.events + s_.lag; first += s_.per_page) {
      std::vector<ScriptedRun> runs;
      for (std::uint32_t link = 0; link < s_.links; ++link) {
        ScriptedRun run{.fid = fids_[link], .chunks = {}, .statuses = {}};
        const std::uint32_t behind = link + 1 == s_.links ? s_.lag : 0;
        for (std::uint32_t at = first; at < first + s_.per_page; ++at) {
          if (at < behind || at - behind >= s_.events || !brings(link, at - behind) || happens(s_.lost)) continue;
          std::vector<std::byte> chunk(happens(s_.is_long) ? s_.bytes : 40);
          provable_.write(chunk, fids_[link].default_link_id(), id(at - behind));
          const bool flips = hurt[link] || happens(s_.flipped);
          hurt[link] = flips && !hurt[link];  // two chunks in a row are flipped
          if (flips) chunk[random_() % 3] ^= std::byte{1} << (random_() % 8);
          add(runs, run, std::move(chunk));
          ++sent_;
        }
        if (!run.chunks.empty()) runs.push_back(std::move(run));
      }
      if (!runs.empty()) input_.push(runs);
      if (s_.listed && first > s_.list_lag) push_list(list_to(first - s_.list_lag));
    }
    if (!s_.listed) return;
    if (s_.list_lag <= s_.events)
      push_list(list_to(s_.events));
    else
      input_.stop_before(list_to(s_.events));
  }
  void push_list(const std::vector<std::vector<std::byte>>& packets) {
    if (!packets.empty()) input_.push_triggers(packets);
  }

  const Sizes s_;
  std::mt19937 random_;
  const formats::Provable provable_{FullFixture::kSeed};
  const std::vector<Fid> fids_;
  ScriptedInput input_;
  Hoarder consumer_;
  std::vector<BuilderLink> links_;
  std::unique_ptr<FragmentBuilder> builder_;
  std::uint64_t sent_ = 0;
};

TEST(Standstill, NoBuilderStandsWhateverTheSizes) {
  const auto [first, count] = scenario_seeds(80);
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_TRUE(BuilderRun(seed).ends()) << "RODEO_SCENARIOS=" << seed << ":1 repeats it";
  }
}

}  // namespace
}  // namespace rodeo::test
