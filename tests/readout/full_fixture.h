// A FULL-mode builder with a scripted input: groups of links that carry the events of one stream in turn.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "readout/builder/full_builder.h"
#include "readout/gbt_fixture.h"

namespace rodeo::test {

/// By default each link sends the chunks of the events of its turn.
class FullFixture {
 public:
  explicit FullFixture(std::uint32_t links, std::uint32_t groups, const readout::FullSettings& settings = {},
                       std::uint32_t l1id_bits = 32)
      : fids(GbtFixture::make_fids(links)), input(fids), turn(links / groups), bits(l1id_bits) {
    for (std::uint32_t i = 0; i < links; ++i) builder_links.push_back({fids[i], fids[i].default_link_id(), i / turn});
    const BuilderContext context{
        .source_id = SourceId{0x610100},
        .links = builder_links,
        .input = &input,
        .consumer = &collector,
        .make_extractor = [l1id_bits] { return readout::make_field_extractor({.l1id_bits = l1id_bits}); },
        .make_checker = {}};
    builder = std::make_unique<readout::FullBuilder>(settings, context);
  }
  ~FullFixture() {
    if (running) finish();
    collector.let_go();
  }

  void start() {
    builder->start();
    running = true;
  }
  void finish() {
    input.stop();
    builder->join();
    running = false;
  }

  /// The chunk of one event of a group, on the link that has its turn.
  ScriptedRun event(std::uint32_t group, L1Id l1id, std::size_t size = 1000) const {
    const std::size_t link = group * turn + l1id.value % turn;
    ScriptedRun run{.fid = fids[link], .chunks = {std::vector<std::byte>(size)}, .statuses = {}};
    provable.write(run.chunks[0], fids[link].default_link_id(), l1id);
    if (bits < 32) {
      const std::uint32_t id = l1id.value & ((1U << bits) - 1);
      std::memcpy(run.chunks[0].data(), &id, 4);
    }
    return run;
  }
  void push_events(std::uint32_t group, std::uint32_t first, std::uint32_t end, std::uint32_t ecr = 0) {
    for (std::uint32_t l1 = first; l1 < end; ++l1) input.push({event(group, L1Id::of(ecr, l1))});
  }

  void push_triggers(std::uint32_t count) { input.push_triggers(triggers(count)); }
  static std::vector<std::vector<std::byte>> triggers(std::uint32_t count) {
    std::vector<std::vector<std::byte>> packets;
    for (std::uint32_t l1 = 0; l1 < count; ++l1) {
      const formats::ProvableTrigger trigger = formats::Provable(kSeed).trigger(L1Id{l1});
      formats::TtcPacket packet;
      packet.l1id = L1Id{l1};
      packet.bcid = trigger.bcid;
      packet.trigger_type = trigger.trigger_type;
      packets.emplace_back(packet.size_bytes());
      packet.write(packets.back());
    }
    return packets;
  }
  /// Waits until all pushed chunks are read.
  void wait_for(std::uint64_t chunks) const {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (builder->status().chunks_received < chunks && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(builder->status().chunks_received, chunks);
  }

  std::uint64_t lost(std::string_view reason) const {
    for (const NamedCounter& counter : builder->status().lost) {
      if (counter.name == reason) return counter.value;
    }
    return ~std::uint64_t{0};
  }

  /// Counts complete events, and collects the L1 ids of empty ones.
  void sort_out() {
    std::uint64_t lost_sum = 0;
    const FragmentBuilder::Status status = builder->status();
    for (const NamedCounter& counter : status.lost) lost_sum += counter.value;
    EXPECT_EQ(status.chunks_received, status.chunks_built + lost_sum);
    const readout::ChunkBytes bytes_of_chunks = builder->chunk_bytes();
    EXPECT_EQ(bytes_of_chunks.received, bytes_of_chunks.built + bytes_of_chunks.lost_sum());
    std::uint64_t chunk_bytes = 0;
    for (const SeenFragment& seen : collector.fragments()) {
      for (const auto& [link, bytes] : seen.data) chunk_bytes += bytes.size();
      EXPECT_TRUE(seen.well_formed);
      if (seen.chunks == 0) {
        EXPECT_TRUE(empty.insert(seen.l1id).second);
        EXPECT_EQ(seen.missing + seen.removed, 1U);
        const std::uint32_t why = seen.missing != 0 ? fragment_status::kTimeout : fragment_status::kLinksRemoved;
        EXPECT_EQ(seen.status, why | fragment_status::kDummy);
        continue;
      }
      ++whole;
      for (const auto& [link, bytes] : seen.data) {
        std::vector<std::byte> expected(bytes.size());
        provable.write(expected, link, seen.l1id);
        EXPECT_TRUE(std::equal(expected.begin() + 4, expected.end(), bytes.begin() + 4)) << seen.l1id.value;
      }
    }
    EXPECT_EQ(chunk_bytes, bytes_of_chunks.built);
  }

  static constexpr std::uint64_t kSeed = 9;
  const formats::Provable provable{kSeed};
  const std::vector<Fid> fids;
  ScriptedInput input;
  FragmentCollector collector;
  const std::uint32_t turn;
  const std::uint32_t bits;
  std::vector<BuilderLink> builder_links;
  std::unique_ptr<readout::FullBuilder> builder;
  std::size_t whole = 0;
  std::set<L1Id> empty;
  bool running = false;
};

}  // namespace rodeo::test
