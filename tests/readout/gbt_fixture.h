// A GBT builder between a scripted input and a collector of fragments.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "formats/provable.h"
#include "formats/ttc_packet.h"
#include "readout/builder/gbt_builder.h"
#include "readout/extractor/field_extractor.h"
#include "readout/scripted_input.h"

namespace rodeo::test {

/// A copy of a fragment as the first consumer sees it.
struct SeenFragment {
  L1Id l1id;
  Sequence sequence = 0;
  std::uint64_t global_id = 0;
  std::uint16_t bcid = 0;
  std::uint32_t status = 0;
  std::uint32_t chunks = 0;
  std::uint32_t missing = 0;
  std::uint32_t removed = 0;
  std::vector<std::uint32_t> missing_links;
  std::vector<std::uint32_t> removed_links;
  std::map<std::uint32_t, std::vector<std::byte>> data;  // the keys are link ids
  std::map<std::uint32_t, ChunkHeader> headers;
  std::vector<std::uint32_t> order;  // link ids in their order in the fragment
  bool well_formed = true;
  bool link_twice = false;
};

class FragmentCollector final : public FragmentConsumer {
 public:
  void insert(FragmentPtr fragment) override {
    SeenFragment seen;
    seen.l1id = fragment->l1id;
    seen.sequence = fragment->sequence;
    seen.global_id = fragment->global_id;
    seen.bcid = fragment->bcid;
    seen.status = fragment->status;
    seen.chunks = fragment->chunks;
    seen.missing = fragment->missing;
    seen.removed = fragment->removed;
    if (seen.missing != 0 || seen.removed != 0) {
      fragment->for_each_link(fragment->missing_links, [&](std::uint32_t id) { seen.missing_links.push_back(id); });
      fragment->for_each_link(fragment->removed_links, [&](std::uint32_t id) { seen.removed_links.push_back(id); });
    }
    seen.well_formed = fragment->for_each_chunk([&](const ChunkHeader& header, std::span<std::byte> bytes) {
      seen.link_twice = seen.link_twice || seen.data.count(header.link_id) != 0;
      seen.data[header.link_id].assign(bytes.begin(), bytes.end());
      seen.headers[header.link_id] = header;
      seen.order.push_back(header.link_id);
    });
    const std::lock_guard lock(mutex_);
    if (keep_first && kept_.empty()) kept_.push_back(fragment);
    fragments_.push_back(std::move(seen));
  }
  Status status() const override { return {}; }

  std::vector<SeenFragment> fragments() {
    const std::lock_guard lock(mutex_);
    return fragments_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return fragments_.size();
  }
  /// Fragments must not outlive their builder.
  void let_go() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }
  bool keep_first = false;

 private:
  std::mutex mutex_;
  std::vector<SeenFragment> fragments_;
  std::vector<FragmentPtr> kept_;
};

/// The time limit for things that must happen soon, scaled for slow builds.
inline std::chrono::milliseconds patience() {
  const char* scale = std::getenv("RODEO_TEST_TIMEOUT_SCALE");
  return std::chrono::milliseconds(static_cast<int>(20'000 * (scale != nullptr ? std::atof(scale) : 1.0)));
}

class GbtFixture {
 public:
  static constexpr std::uint64_t kSeed = 5;

  explicit GbtFixture(std::uint32_t links, const readout::GbtSettings& settings = {}, std::uint32_t l1id_bits = 32,
                      bool crc = false, std::vector<std::uint32_t> sources = {}, std::uint32_t counter = 0)
      : provable(kSeed, crc), bits(l1id_bits), fids(make_fids(links)), input(fids, std::move(sources)) {
    for (const Fid fid : fids) builder_links.push_back({fid, fid.default_link_id(), 0});
    BuilderContext context{
        .source_id = SourceId{0x610001},
        .links = builder_links,
        .input = &input,
        .consumer = &collector,
        .make_extractor = [=] { return readout::make_field_extractor({.l1id_bits = l1id_bits, .l1id_counter = counter}); },
        .make_checker = {}};
    if (crc) context.make_checker = [] { return readout::make_crc32_checker(); };
    builder = std::make_unique<readout::GbtBuilder>(settings, context);
  }

  static std::vector<Fid> make_fids(std::uint32_t links) {
    std::vector<Fid> fids;
    for (std::uint32_t i = 0; i < links; ++i) fids.push_back(Fid::of(0x61, 0, i / 8, i % 8));
    return fids;
  }

  std::uint32_t link_id(std::size_t link) const { return fids[link].default_link_id(); }

  std::vector<std::byte> chunk(std::size_t link, L1Id l1id, std::size_t size = 40) const {
    std::vector<std::byte> bytes(size);
    provable.write(bytes, link_id(link), l1id);
    if (bits < 32 && size >= 4) {  // a narrow counter sends only its low bits
      std::uint32_t id = 0;
      std::memcpy(&id, bytes.data(), 4);
      id &= (1U << bits) - 1;
      std::memcpy(bytes.data(), &id, 4);
    }
    return bytes;
  }

  ScriptedRun run(std::size_t link, L1Id first, std::uint32_t count, std::size_t size = 40) const {
    ScriptedRun made{.fid = fids[link], .chunks = {}, .statuses = {}};
    for (std::uint32_t i = 0; i < count; ++i) made.chunks.push_back(chunk(link, L1Id{first.value + i}, size));
    return made;
  }

  /// A page of the trigger's own list.
  void push_triggers(L1Id first, std::uint32_t count) {
    std::vector<std::vector<std::byte>> packets;
    for (std::uint32_t i = 0; i < count; ++i) {
      const L1Id l1id{first.value + i};
      const formats::ProvableTrigger trigger = provable.trigger(l1id);
      formats::TtcPacket packet;
      packet.l1id = l1id;
      packet.bcid = trigger.bcid;
      packet.trigger_type = trigger.trigger_type;
      packet.l1a_counter = i;
      packets.emplace_back(packet.size_bytes());
      packet.write(packets.back());
    }
    input.push_triggers(packets);
  }

  /// One page with `count` events of every link.
  void push_all(L1Id first, std::uint32_t count) {
    std::vector<ScriptedRun> runs;
    for (std::size_t link = 0; link < fids.size(); ++link) runs.push_back(run(link, first, count));
    input.push(runs);
  }

  void start() {
    builder->start();
    running = true;
  }

  void finish() {
    input.stop();
    if (running) builder->join();
    running = false;
  }

  ~GbtFixture() {
    if (running) finish();
    collector.let_go();
  }

  void wait_for_fragments(std::size_t n) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (collector.count() < n && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_GE(collector.count(), n);
  }

  /// Waits until all data are read, because in a run no worker is much behind another. The input's clock continues from
  /// `now`.
  void let_workers_catch_up(std::uint64_t& now) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (!input.idle() && std::chrono::steady_clock::now() < deadline) {
      input.set_clock(now += 20'000);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    ASSERT_TRUE(input.idle());
  }

  /// Lets the input's clock continue from `now` until there are n fragments.
  void let_time_pass(std::size_t n, std::uint64_t now = 1) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (collector.count() < n && std::chrono::steady_clock::now() < deadline) {
      input.set_clock(now += 1'000'000);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    ASSERT_GE(collector.count(), n);
  }

  std::uint64_t lost(std::string_view reason) const {
    for (const NamedCounter& counter : builder->status().lost) {
      if (counter.name == reason) return counter.value;
    }
    ADD_FAILURE() << "no counter " << reason;
    return 0;
  }

  /// Checks that hold for any input: every chunk has one place, the right one.
  void check_invariants() {
    const FragmentBuilder::Status status = builder->status();
    std::uint64_t lost_sum = 0;
    for (const NamedCounter& counter : status.lost) lost_sum += counter.value;
    EXPECT_EQ(status.chunks_received, status.chunks_built + lost_sum);
    const readout::ChunkBytes bytes_of_chunks = builder->chunk_bytes();
    EXPECT_EQ(bytes_of_chunks.received, bytes_of_chunks.built + bytes_of_chunks.lost_sum());
    std::uint64_t chunk_bytes = 0;
    std::uint64_t chunks = 0;
    std::uint64_t without_removed = 0;
    std::uint64_t missing = 0;
    std::uint64_t removed = 0;
    std::set<Sequence> sequences;
    for (const SeenFragment& seen : collector.fragments()) {
      EXPECT_TRUE(seen.well_formed);
      EXPECT_FALSE(seen.link_twice);
      EXPECT_TRUE(sequences.insert(seen.sequence).second) << "event built twice";
      EXPECT_EQ(seen.data.size(), seen.chunks);
      chunks += seen.chunks;
      // Every link is present, missing or removed.
      std::set<std::uint32_t> links(seen.missing_links.begin(), seen.missing_links.end());
      links.insert(seen.removed_links.begin(), seen.removed_links.end());
      for (const auto& [link_id, bytes] : seen.data) {
        links.insert(link_id);
        chunk_bytes += bytes.size();
      }
      EXPECT_EQ(seen.missing_links.size(), seen.missing);
      EXPECT_EQ(seen.removed_links.size(), seen.removed);
      EXPECT_EQ(links.size(), fids.size()) << "event " << seen.l1id.value;
      EXPECT_EQ(seen.data.size() + seen.missing + seen.removed, fids.size()) << "event " << seen.l1id.value;
      EXPECT_EQ((seen.status & fragment_status::kLinksRemoved) != 0, seen.removed != 0);
      without_removed += seen.removed != 0;
      missing += seen.missing;
      removed += seen.removed;
    }
    EXPECT_EQ(chunks, status.chunks_built);
    EXPECT_EQ(chunk_bytes, bytes_of_chunks.built);
    EXPECT_EQ(without_removed, status.without_removed);
    for (const FragmentBuilder::Link& link : status.links) {
      missing -= link.missing;
      removed -= link.left_out;
    }
    EXPECT_EQ(missing, 0U) << "the counters of all links add up to it";
    EXPECT_EQ(removed, 0U) << "likewise";
  }

  /// True if every chunk is the one that its link sent for this event.
  bool proves(const SeenFragment& seen) const {
    return std::all_of(seen.data.begin(), seen.data.end(), [&](const auto& entry) {
      std::vector<std::byte> expected(entry.second.size());
      provable.write(expected, entry.first, seen.l1id);
      if (bits < 32) return std::equal(expected.begin() + 4, expected.end(), entry.second.begin() + 4);
      return expected == entry.second;
    });
  }

  const formats::Provable provable;
  const std::uint32_t bits;
  const std::vector<Fid> fids;
  ScriptedInput input;
  FragmentCollector collector;
  std::vector<BuilderLink> builder_links;
  std::unique_ptr<readout::GbtBuilder> builder;
  bool running = false;
};

/// Checks that every fragment exists, is complete and has the right bytes.
inline void expect_complete(GbtFixture& fixture, std::size_t fragments) {
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), fragments);
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.status, 0U);
    EXPECT_EQ(fragment.chunks, fixture.fids.size());
    EXPECT_TRUE(fixture.proves(fragment)) << "L1 id " << fragment.l1id.value;
  }
}

/// Tests whose parameter is the number of workers.
class GbtWithWorkers : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  readout::GbtSettings settings() const {
    readout::GbtSettings made;
    made.workers = GetParam();
    made.window = 1024;
    return made;
  }
};

}  // namespace rodeo::test
