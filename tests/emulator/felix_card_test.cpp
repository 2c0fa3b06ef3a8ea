#include "emulator/felix_card.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <span>

#include "emulator/card_fixture.h"
#include "emulator/felix_host.h"
#include "formats/ttc_packet.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
using emulator::FaultKind;

class FelixCardTest : public CardTest {
 protected:
  static std::vector<std::uint16_t> elinks(unsigned links, unsigned per_link) {
    std::vector<std::uint16_t> numbers;
    for (unsigned link = 0; link < links; ++link) {
      for (unsigned elink = 0; elink < per_link; ++elink) numbers.push_back(static_cast<std::uint16_t>(link << 6 | elink));
    }
    return numbers;
  }

  /// Reads until `chunks` chunks have been checked.
  static void run(FelixHost& host, FelixProver& prover, std::uint64_t chunks) {
    ASSERT_TRUE(wait_until([&] {
      prover.prove(host.take());
      return prover.chunks() >= chunks;
    })) << prover.chunks();
  }
};

TEST_F(FelixCardTest, SaysWhatItIs) {
  start(settings(felix()));
  VfioClient client(socket());
  const auto reg = [&](const card_registers::Register& one, unsigned index = 0) {
    return client.read<std::uint64_t>(one.bar, one.at(index));
  };
  EXPECT_EQ(reg(felix::reg("card_type")), felix::kCardType712);
  EXPECT_EQ(reg(felix::reg("firmware_mode")), 0U);
  EXPECT_EQ(reg(felix::reg("links")), 2U);
  EXPECT_EQ(reg(felix::reg("elinks_enabled"), 1), 7U);
  EXPECT_EQ(reg(felix::reg("elinks_enabled"), 2), 0U);
  EXPECT_EQ(reg(felix::reg("link_status"), 1), 1U);
  const double celsius = static_cast<double>(reg(felix::reg("temperature"))) * 503.975 / 4096 - 273.15;
  EXPECT_NEAR(celsius, 48, 0.2);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::temperature, .value = 91}).has_value());
  EXPECT_NEAR(static_cast<double>(reg(felix::reg("temperature"))) * 503.975 / 4096 - 273.15, 91, 0.2);
}

TEST_F(FelixCardTest, EveryChunkOfManyLapsIsWhatItShouldBe) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 200'000);  // eight laps
  EXPECT_EQ(prover.wrong(), 0U);
  EXPECT_EQ(prover.gaps(), 0U);
  ASSERT_TRUE(host.disable());
}

TEST_F(FelixCardTest, NothingIsWrittenBeyondTheReadPointer) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 16);
  ASSERT_TRUE(host.enable());
  ASSERT_TRUE(
      wait_until([&] { return (host.client.read<std::uint64_t>(2, felix::reg("dma_busy_status").offset) & 1U) != 0; }));
  std::this_thread::sleep_for(20ms);
  const std::vector<std::byte> before(host.memory.data(), host.memory.data() + (1 << 16));
  const auto position = host.position();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(host.position(), position);
  EXPECT_EQ(std::memcmp(before.data(), host.memory.data(), before.size()), 0);
  EXPECT_EQ(host.client.read<std::uint64_t>(2, felix::reg("dma_busy_status").offset) & 1U, 1U) << "the channel is busy";
}

TEST_F(FelixCardTest, WhatAnEndCutsOffIsCountedAndNotSent) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 16);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  ASSERT_TRUE(
      wait_until([&] { return (host.client.read<std::uint64_t>(2, felix::reg("dma_busy_status").offset) & 1U) != 0; }));
  // The host makes no room: the card cannot send all accepted triggers.
  ASSERT_TRUE(host.disable());
  prover.prove(host.take());
  prover.finish();
  const auto report = emulator_->report();
  const auto counter = [&](std::string_view name) { return counter_value(report.functions[0].counters, name); };
  EXPECT_EQ(prover.wrong() + prover.gaps(), 0U);
  EXPECT_EQ(report.functions[0].chunks, prover.chunks());
  EXPECT_GT(counter("triggers_cut_off"), 0U);
  EXPECT_EQ(6 * report.trigger.accepted, prover.chunks() + counter("chunks_cut_off") + 6 * counter("triggers_cut_off"));
}

TEST_F(FelixCardTest, ChunksInBlocksThatAreLostWereNotSent) {
  auto card = felix();
  card.flush = 1h;  // blocks are sent only when they are full, or at the end
  start(settings(card));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  const auto counter = [&](std::string_view name) { return counter_value(emulator_->report().functions[0].counters, name); };
  const auto read_until = [&](auto condition) {
    return wait_until([&] {
      prover.prove(host.take());
      return condition();
    });
  };
  ASSERT_TRUE(host.enable());
  for (const auto& [kind, blocks] :
       {std::pair{FaultKind::dropped_superpage, "blocks_lost"}, std::pair{FaultKind::corrupt_rdh, "blocks_corrupted"}}) {
    for (const unsigned link : {0U, 1U}) {
      run(host, prover, prover.chunks() + 20'000);
      ASSERT_TRUE(emulator_->inject("felix", {.kind = kind, .link = link}).has_value());
      ASSERT_TRUE(read_until([&] { return counter(blocks) == link + 1; })) << "the link's next block has not come yet";
    }
  }
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::link_down, .link = 1}).has_value());
  run(host, prover, prover.chunks() + 100'000);
  host.client.write<std::uint64_t>(2, felix::reg("generator_control").offset, 0);
  ASSERT_TRUE(read_until([&] { return emulator_->report().trigger.followers.at(0).ready == 0; }));
  prover.prove(host.take());  // this makes room for the open blocks; no other data come
  ASSERT_TRUE(host.disable());
  prover.prove(host.take());
  prover.finish();
  const auto report = emulator_->report();
  const std::uint64_t lost = counter("chunks_lost") + counter("chunks_corrupted");
  EXPECT_EQ(counter("blocks_lost"), 2U);
  EXPECT_EQ(counter("blocks_corrupted"), 2U);
  EXPECT_GT(lost, 4U) << "a full block holds 24 chunks of 40 bytes";
  EXPECT_GT(counter("chunks_link_down"), 0U);
  EXPECT_EQ(report.functions[0].chunks, prover.chunks());
  EXPECT_EQ(6 * report.functions[0].triggers, prover.chunks() + lost + counter("chunks_link_down"));
  // After the last block of a link that went down, no further block shows a gap.
  EXPECT_EQ(
      prover.counters().read(formats::BlockCounter::cut_by_gap) + prover.counters().read(formats::BlockCounter::unfinished),
      counter("chunks_cut_short"));
  EXPECT_EQ(prover.wrong(), prover.counters().read(formats::BlockCounter::cut_by_gap))
      << "a truncated chunk is not a proven chunk";
}

TEST_F(FelixCardTest, BlocksThatAreOpenAtTheEndGoOut) {
  auto card = felix();
  card.flush = 1h;  // blocks are never flushed
  auto all = settings(card);
  all.trigger.limit = 30;  // the last chunks of each link span two blocks
  start(std::move(all));
  FelixHost host(socket(), 1 << 16);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].triggers == 30; }));
  host.client.write<std::uint64_t>(2, felix::reg("generator_control").offset, 0);
  // Waits until the card has noticed that no more triggers come, and has only open blocks.
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.followers.at(0).ready == 0; }));
  ASSERT_TRUE(host.disable());
  prover.prove(host.take());
  EXPECT_EQ(prover.chunks(), 180U);
  EXPECT_EQ(prover.wrong() + prover.gaps(), 0U);
  EXPECT_EQ(emulator_->report().functions[0].chunks, 180U);
}

TEST_F(FelixCardTest, LongChunksAndWideTrailersGoOverBlocks) {
  auto card = felix();
  card.felix.full_mode = true;
  card.felix.chunk_bytes = 3000;
  card.felix.chunk_bytes_max = 7001;
  card.felix.format = {formats::BlockFamily::phase2, 4096};
  start(settings(card));
  FelixHost host(socket(), 4 << 20);
  FelixProver prover(elinks(2, 1), card.felix.format, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 20'000);
  EXPECT_EQ(prover.wrong(), 0U);
  EXPECT_EQ(prover.gaps(), 0U);
}

TEST_F(FelixCardTest, AFewTriggersDoNotWaitForAFullBlock) {
  auto all = settings(felix());
  all.trigger.limit = 3;
  start(std::move(all));
  FelixHost host(socket(), 1 << 16);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 18);
  EXPECT_EQ(prover.wrong(), 0U);
  EXPECT_EQ(prover.per_link(), (std::vector<std::uint64_t>(6, 3)));
}

TEST_F(FelixCardTest, TheTriggersOwnLinkListsTheSameIds) {
  auto all = settings(felix());
  all.cards[0].felix.ttc_link = true;
  all.trigger.limit = 500;
  all.trigger.ecr_triggers = 300;
  start(std::move(all));
  FelixHost host(socket(), 1 << 20);
  ASSERT_TRUE(host.enable());
  const std::array<std::uint16_t, 1> ttc{emulator::FelixSource::kTtcElink};
  formats::BlockDecoder decoder({}, ttc);
  formats::DecodeBuffer buffer(decoder.capacity_for(2048));
  std::vector<std::uint32_t> ids;
  ASSERT_TRUE(wait_until([&] {
    const auto blocks = host.take();
    decoder.decode(blocks, buffer);
    for (const ChunkRun& run : buffer.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto packet = formats::TtcPacket::read(run.chunk(i));
        EXPECT_TRUE(packet.has_value());
        if (!packet) continue;
        EXPECT_EQ(packet->l1a_counter, ids.size());
        EXPECT_EQ(packet->bcid, formats::Provable(1).trigger(packet->l1id).bcid);
        ids.push_back(packet->l1id.value);
      }
    }
    buffer.clear();
    return ids.size() >= 500;
  }));
  EXPECT_EQ(ids[299], 299U);
  EXPECT_EQ(ids[300], 0x01000000U);
}

TEST_F(FelixCardTest, ChannelsCarryTheLinksThatAreGivenToThem) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  host.client.write<std::uint64_t>(2, felix::reg("link_channel").at(1), 3);
  ASSERT_TRUE(host.enable(0, FelixHost::kIova, 1 << 19));
  ASSERT_TRUE(host.enable(3, FelixHost::kIova + (1 << 19), 1 << 19));
  ASSERT_TRUE(wait_until([&] {
    host.give_back(host.position(0));  // a full channel would stop the whole card
    return host.position(3) > FelixHost::kIova + (1 << 19) + 4096;
  }));
  const auto link_of = [&](std::size_t offset) {
    return formats::BlockHeader::read(host.memory.data() + offset).elink() >> 6;
  };
  EXPECT_EQ(link_of(0), 0);
  EXPECT_EQ(link_of(1 << 19), 1);
}

TEST_F(FelixCardTest, ALinkThatGoesDownIsMissingAndComesBack) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 1000);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::link_down, .link = 1}).has_value());
  EXPECT_EQ(host.client.read<std::uint64_t>(2, felix::reg("link_status").at(1)), 2U);
  // Its open block comes after `flush`, among the data of the other links.
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
       std::chrono::steady_clock::now() < end;)
    run(host, prover, prover.chunks() + 50'000);
  const auto stopped = prover.per_link();
  run(host, prover, prover.chunks() + 50'000);
  EXPECT_EQ(prover.per_link()[3], stopped[3]);
  EXPECT_GT(prover.per_link()[0], stopped[0]);
  EXPECT_EQ(prover.gaps(), 0U);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::link_up, .link = 1}).has_value());
  run(host, prover, prover.chunks() + 100'000);
  EXPECT_EQ(prover.gaps(), 3U) << "each of its E-links lost blocks";
  EXPECT_EQ(prover.wrong(), 0U);
}

TEST_F(FelixCardTest, AStuckFifoOfSomeDurationGoesOnAlsoIfItWasSetFreeBefore) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 1000);
  const emulator::Fault stuck{.kind = FaultKind::stuck_fifo, .duration = std::chrono::milliseconds(20)};
  ASSERT_TRUE(emulator_->inject("felix", stuck).has_value());
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::stuck_fifo}).has_value());  // ends the fault
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
  ASSERT_TRUE(wait_until([&] {
    emulator_->poll();
    prover.prove(host.take());
    return std::chrono::steady_clock::now() > end;
  }));
  run(host, prover, prover.chunks() + 100'000);
  ASSERT_TRUE(emulator_->inject("felix", stuck).has_value());
  const auto chunks = prover.chunks();
  ASSERT_TRUE(wait_until([&] {
    emulator_->poll();
    prover.prove(host.take());
    return prover.chunks() > chunks + 1'000'000;  // more chunks than were ready before
  }));
  EXPECT_EQ(prover.wrong() + prover.gaps(), 0U);
}

TEST_F(FelixCardTest, FaultsOfBlocksAreSeenByADecoder) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(host.enable());
  run(host, prover, 1000);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::corrupt_rdh, .link = 0}).has_value());
  run(host, prover, prover.chunks() + 100'000);
  EXPECT_EQ(prover.counters().read(formats::BlockCounter::bad_marker), 1U);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::dropped_superpage, .link = 1}).has_value());
  run(host, prover, prover.chunks() + 100'000);
  EXPECT_GE(prover.gaps(), 2U);
  EXPECT_FALSE(emulator_->inject("felix", {.kind = FaultKind::link_down, .link = 2}).has_value()) << "there is no such link";
  EXPECT_FALSE(emulator_->inject("felix", {.kind = FaultKind::size_index_mismatch}).has_value());
}

TEST_F(FelixCardTest, ADescriptorThatPointsNowhereIsNotBegun) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 16);
  host.at(felix::reg("dma_start")) = 0xdead0000;
  host.at(felix::reg("dma_end")) = 0xdead0000 + (1 << 16);
  host.at(felix::reg("dma_enable")) = 1;
  ASSERT_TRUE(wait_until([&] { return host.at(felix::reg("dma_enable")) == 0; }));
  EXPECT_EQ(host.at(felix::reg("dma_status")) & 1U, 1U);
  EXPECT_EQ(counter_value(emulator_->report().functions[0].counters, "bad_descriptors"), 1U);
  EXPECT_TRUE(host.enable());
}

TEST_F(FelixCardTest, PacketsThatAreTooLongForTheHostAreNotSent) {
  auto card = felix();
  card.max_payload = 128;
  start(settings(card));
  FelixHost host(socket(), 1 << 16);
  host.at(felix::reg("dma_start")) = FelixHost::kIova;
  host.at(felix::reg("dma_end")) = FelixHost::kIova + (1 << 16);
  host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova;
  host.at(felix::reg("dma_control")) = felix::kWrapAround.mask() | 256 / 4;
  host.at(felix::reg("dma_enable")) = 1;
  ASSERT_TRUE(wait_until([&] { return host.at(felix::reg("dma_enable")) == 0; }));
  EXPECT_GT(counter_value(emulator_->report().functions[0].counters, "long_packets"), 0U);
  host.at(felix::reg("dma_control")) = felix::kWrapAround.mask() | 128 / 4;
  host.at(felix::reg("dma_enable")) = 1;
  EXPECT_TRUE(wait_until([&] { return (host.at(felix::reg("dma_status")) & 1U) == 0; }));
}

TEST_F(FelixCardTest, TheFirstLapDoesNotStopAtTheReadPointer) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 16);
  ASSERT_TRUE(host.enable());
  host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova + 32768;
  ASSERT_TRUE(wait_until([&] { return (host.at(felix::reg("dma_status")) & felix::kEvenDma.mask()) != 0; }))
      << "the card passes the position and wraps";
  EXPECT_LE(host.position(), FelixHost::kIova + 32768) << "then it stops there";
}

TEST_F(FelixCardTest, AReadPointerBeginsALapOnlyIfItGoesBackByMoreThanTheGap) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 16);
  const auto even_host = [&] { return (host.at(felix::reg("dma_status")) & felix::kEvenHost.mask()) != 0; };
  const auto busy = [&] { return (host.client.read<std::uint64_t>(2, felix::reg("dma_busy_status").offset) & 1U) != 0; };
  for (const std::uint64_t gap : {felix::kPointerGap, std::uint64_t{0}}) {
    ASSERT_TRUE(host.enable());
    ASSERT_TRUE(wait_until(busy));
    host.at(felix::reg("dma_pointer_gap")) = gap;
    host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova + 32768;
    ASSERT_TRUE(wait_until([&] { return host.position() < FelixHost::kIova + 32768; })) << "a full round of the card";
    host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova + 4096;
    EXPECT_EQ(wait_until([&] { return even_host() || gap > 0; }), true);
    if (gap > 0) {
      std::this_thread::sleep_for(20ms);
      EXPECT_FALSE(even_host());
    }
    ASSERT_TRUE(host.disable());
  }
}

TEST_F(FelixCardTest, AReadPointerThatIsNowhereInTheMemoryFreesNothing) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  host.at(felix::reg("dma_start")) = FelixHost::kIova;
  host.at(felix::reg("dma_end")) = FelixHost::kIova + host.memory.size();
  host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova - 4096;
  host.at(felix::reg("dma_control")) = felix::kWrapAround.mask() | 64;
  std::memset(host.memory.data(), 0x5a, host.memory.size());
  host.at(felix::reg("dma_enable")) = 1;
  ASSERT_TRUE(
      wait_until([&] { return (host.client.read<std::uint64_t>(2, felix::reg("dma_busy_status").offset) & 1U) != 0; }));
  EXPECT_TRUE(std::ranges::all_of(std::span(host.memory.data(), host.memory.size()),
                                  [](std::byte b) { return b == std::byte{0x5a}; }));
  EXPECT_EQ(counter_value(emulator_->report().functions[0].counters, "bad_read_pointers"), 1U);
  host.at(felix::reg("dma_read_pointer")) = FelixHost::kIova;
  EXPECT_TRUE(wait_until([&] { return host.position() > FelixHost::kIova + 65536; }));
}

TEST_F(FelixCardTest, AChannelThatIsDisabledEndsBehindTheTriggersThatWereAccepted) {
  auto all = settings(felix());
  all.trigger.rate_hz = 50'000;
  start(all);
  FelixProver prover(elinks(2, 3), {}, 1);
  for (int run = 1; run <= 3; ++run) {
    FelixHost host(socket(), 1 << 20);
    ASSERT_TRUE(host.enable());
    ASSERT_TRUE(wait_until([&] {
      prover.prove(host.take());
      return prover.chunks() >= 6U * 1000U * static_cast<unsigned>(run);
    }));
    ASSERT_TRUE(host.disable());
    prover.prove(host.take());
    const auto report = emulator_->report();
    EXPECT_EQ(prover.chunks(), 6 * report.trigger.accepted) << "every chunk of every trigger, also in open blocks";
    EXPECT_EQ(report.trigger.followers.at(0).missed, 0U);
  }
  EXPECT_EQ(prover.gaps() + prover.wrong(), 0U);
}

TEST_F(FelixCardTest, OneThatGoesAfterTheNextHasStartedTakesNothingFromIt) {
  auto all = settings(felix());
  all.trigger.rate_hz = 10'000;
  start(all);
  FelixProver prover(elinks(2, 3), {}, 1);
  auto first = std::make_unique<FelixHost>(socket(), 8 << 20);
  ASSERT_TRUE(first->enable());
  run(*first, prover, 600);
  FelixHost next(socket(), 8 << 20);  // this host maps its memory at the same address
  ASSERT_TRUE(first->disable());
  prover.prove(first->take());
  EXPECT_EQ(prover.chunks(), 6 * emulator_->report().trigger.accepted) << "the first host's memory is still in use, too";
  std::memset(first->memory.data(), 0x5a, first->memory.size());
  ASSERT_TRUE(next.enable());
  run(next, prover, prover.chunks() + 600);
  EXPECT_EQ(first->memory.data()[0], std::byte{0x5a});
  first.reset();
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].clients == 1; }));
  run(next, prover, prover.chunks() + 60'000);  // more chunks than the card held when the first host left
  EXPECT_EQ(prover.gaps() + prover.wrong(), 0U);
}

TEST_F(FelixCardTest, LinksCarryNoMoreThanTheirSpeedAndTheRestIsDeadTime) {
  auto card = felix();
  card.felix.full_mode = true;
  card.felix.chunk_bytes = 992;
  card.felix.link_bits_per_second = 100e6;  // 10 MB/s, or 10 kHz of 1000 bytes with framing
  card.fifo_triggers = 64;
  auto all = settings(card);
  all.trigger.rate_hz = 50'000;
  start(all);
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(2, 1), {}, 1);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(host.enable());
  run(host, prover, 4000);
  const auto triggers = static_cast<double>(prover.chunks()) / 2;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LE(triggers, 10'000 * seconds + 110) << "at most what the wire carries, plus ten milliseconds";
  const auto report = emulator_->report();
  EXPECT_GT(report.trigger.vetoed_busy, report.trigger.accepted) << "five times as many are offered";
  EXPECT_EQ(report.trigger.busy_follower, "felix:0");
  EXPECT_EQ(prover.gaps() + prover.wrong(), 0U) << "nothing is truncated or lost";
  EXPECT_GT(counter_value(report.functions[0].counters, "link_occupied_us"), 0U);
}

TEST_F(FelixCardTest, MemoryThatVanishesAndClientsThatDieHurtNobody) {
  start(settings(felix()));
  VfioClient bystander(socket());
  {
    FelixHost host(socket(), 1 << 20);
    ASSERT_TRUE(host.enable());
    ASSERT_TRUE(wait_until([&] { return host.position() > FelixHost::kIova + 65536; }));
    ASSERT_EQ(::ftruncate(host.memory.fd(), 4096), 0);
    ASSERT_TRUE(wait_until([&] {
      host.give_back(host.position());
      return counter_value(emulator_->report().functions[0].counters, "maps_lost") == 1;
    }));
  }
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].clients == 1; }));
  EXPECT_EQ(bystander.read<std::uint64_t>(2, felix::reg("card_type").offset), felix::kCardType712);
  EXPECT_EQ(bystander.call(vfio::DeviceReset{}).error(), 0);
  FelixHost again(socket(), 1 << 20);
  FelixProver prover(elinks(2, 3), {}, 1);
  ASSERT_TRUE(again.enable());
  ASSERT_TRUE(wait_until([&] { return again.position() > FelixHost::kIova + 65536; }));
}

TEST_F(FelixCardTest, AnInterruptSaysThatDataCame) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::array fds{event.get()};
  ASSERT_EQ(
      host.client
          .call(vfio::SetIrqs{.flags = vfio::SetIrqs::kDataEventfd | vfio::SetIrqs::kTrigger, .index = 1, .count = 1}, fds)
          .error(),
      0);
  host.client.write<std::uint64_t>(1, felix::reg("interrupt_enable").offset, 1);
  ASSERT_TRUE(host.enable());
  std::uint64_t count = 0;
  EXPECT_TRUE(wait_until([&] { return ::read(event.get(), &count, sizeof count) == sizeof count; }));
}

TEST_F(FelixCardTest, UnmappingWaitsForNothingAndIsFinal) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  ASSERT_TRUE(host.enable());
  ASSERT_TRUE(wait_until([&] { return host.position() > FelixHost::kIova + 65536; }));
  EXPECT_EQ(host.client.unmap(FelixHost::kIova, 1 << 20), 0);
  std::memset(host.memory.data(), 0x5a, host.memory.size());
  host.give_back(host.position());
  std::this_thread::sleep_for(20ms);
  for (const std::byte byte : host.memory.bytes()) ASSERT_EQ(byte, std::byte{0x5a});
  // Data without a destination count as not sent.
  ASSERT_TRUE(host.disable());
  ASSERT_TRUE(wait_until([&] { return !emulator_->report().functions[0].running; }));
  const auto function = emulator_->report().functions[0];
  const auto counter = [&](std::string_view name) { return counter_value(function.counters, name); };
  EXPECT_GT(counter("chunks_unmapped"), 0U);
  EXPECT_GT(counter("dma_faults"), 0U);
  EXPECT_EQ(6 * function.triggers, function.chunks + counter("chunks_unmapped") + counter("chunks_cut_off"));
}

}  // namespace
