#include "emulator/cru_card.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "emulator/card_fixture.h"
#include "emulator/cru_host.h"
#include "emulator/pattern.h"
#include "formats/rdh_payload.h"
#include "formats/superpage_check.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
using emulator::FaultKind;
using formats::PagePattern;
using formats::SuperpageCheck;
using formats::SuperpageCounter;

TEST(Pattern, FastWritersMakeWhatThePlainOnesMake) {
  alignas(64) std::array<std::byte, 4096> fast{}, plain{};
  for (const std::size_t shift : {0UL, 4UL}) {
    for (const std::uint32_t counter : {0U, 0xfff8U, 0xfffffff0U}) {
      const auto span = [&](std::array<std::byte, 4096>& memory) { return std::span(memory).subspan(shift, 2048); };
      const auto same = [&] { return std::memcmp(span(fast).data(), span(plain).data(), 2048) == 0; };
      EXPECT_EQ(emulator::stream_ddg(span(fast).data(), 2048, counter), formats::write_ddg(span(plain), counter));
      EXPECT_TRUE(same());
      EXPECT_EQ(emulator::stream_words(span(fast).data(), 2048, counter), formats::write_words(span(plain), counter));
      EXPECT_TRUE(same());
      EXPECT_EQ(emulator::stream_cru_internal(span(fast).data(), 2048, counter),
                formats::write_cru_internal(span(plain), counter));
      EXPECT_TRUE(same());
      emulator::stream_provable(span(fast).data(), 2048, 0x0102030405060708, counter * 77ULL);
      formats::Provable::fill(span(plain).data(), 2048, 0x0102030405060708, counter * 77ULL);
      EXPECT_TRUE(same());
    }
  }
}

class CruCardTest : public CardTest {
 protected:
  emulator::EmulatedCardSettings cru_card() const {
    emulator::EmulatedCardSettings card;
    card.type = emulator::CardType::cru;
    card.name = "cru";
    card.address = "3b:00.0";
    card.serial = 245;
    card.links = 12;
    card.rdh.frame_bytes = 20000 / 32 * 32;
    return card;
  }

  /// Collects and checks superpages of these links until each link has had `superpages`.
  static void run(CruHost& host, SuperpageCheck& check, const std::vector<unsigned>& links, std::uint64_t superpages) {
    for (const unsigned link : links) {
      for (int i = 0; i < 4; ++i) host.push(link);
    }
    std::map<unsigned, std::uint64_t> taken;
    ASSERT_TRUE(wait_until([&] {
      bool all = true;
      for (const unsigned link : links) {
        for (const auto& filled : host.take(link)) {
          EXPECT_EQ(filled.index, taken[link] % 256);
          check.check(static_cast<std::uint8_t>(link), filled.bytes);
          ++taken[link];
          host.give_back(filled);
          host.push(link);
        }
        all = all && taken[link] >= superpages;
      }
      return all;
    }));
  }

  static std::uint64_t count(const SuperpageCheck& check, SuperpageCounter counter) { return check.count(counter); }
  static std::string first_finding(const SuperpageCheck& check) {
    return check.findings().empty() ? "" : formats::describe(check.findings().front());
  }
};

TEST_F(CruCardTest, SaysWhatItIs) {
  start(settings(cru_card()));
  CruHost host(socket(), 32768, 1);
  EXPECT_EQ(host.client.read32(7, 0), 0x003410dcU);
  EXPECT_EQ(host.read(cru::reg("endpoint_id")), 0U);
  EXPECT_EQ(host.read(cru::reg("serial")), 0x35343230U) << "0245";
  EXPECT_NEAR(host.read(cru::reg("temperature")) * 693.0 / 1024 - 265, 48, 0.7);
  EXPECT_NE(host.read(cru::reg("firmware_hash")), 0U);
  EXPECT_NE(host.read(cru::reg("gbt_wrapper_clock"), 0), host.read(cru::reg("gbt_wrapper_clock"), 0)) << "the clock runs";
  EXPECT_EQ(host.read(cru::reg("gbt_wrapper_clock"), 1), host.read(cru::reg("gbt_wrapper_clock"), 1)) << "it stops";
  EXPECT_EQ(host.read(cru::reg("gbt_wrapper_banks"), 0), 0x66660U);
  const auto heartbeats = host.read(cru::reg("ttc_heartbeats"));
  EXPECT_TRUE(wait_until([&] { return host.read(cru::reg("ttc_heartbeats")) > heartbeats; }));
  host.write(cru::reg("pattern_1"), 0xabcd1234, 2);
  EXPECT_EQ(host.read(cru::reg("pattern_1"), 2), 0xabcd1234U);
  EXPECT_EQ(host.read(cru::reg("datapath_enable"), 0), 0xfffU);
}

TEST_F(CruCardTest, TheI2cBusesRememberByChipPageAndRegister) {
  start(settings(cru_card()));
  CruHost host(socket(), 32768, 1);
  const auto access = [&](std::uint32_t chip, std::uint32_t reg, std::uint32_t data, std::uint32_t command) {
    host.write(cru::reg("i2c_pll_configuration"), chip << 16 | reg << 8 | data, 2);
    host.write(cru::reg("i2c_pll_command"), command, 2);
    host.write(cru::reg("i2c_pll_command"), 0, 2);
    return host.read(cru::reg("i2c_pll_data"), 2);
  };
  access(0x68, 1, 5, 1);
  access(0x68, 0x2a, 6, 1);
  access(0x68, 1, 0, 1);
  EXPECT_EQ(access(0x68, 0x2a, 0, 2), 0x80000000U) << "another page";
  access(0x68, 1, 5, 1);
  EXPECT_EQ(access(0x68, 0x2a, 0, 2), 0x80000006U);
  host.write(cru::reg("i2c_eeprom_configuration"), 0x50U << 16);
  host.write(cru::reg("i2c_eeprom_command"), 2);
  EXPECT_EQ(host.read(cru::reg("i2c_eeprom_data")) & 0xffU, static_cast<unsigned>('{'));
}

TEST_F(CruCardTest, TheInternalGeneratorFillsSuperpagesWithItsPattern) {
  start(settings(cru_card()));
  CruHost host(socket(), 1 << 20, 16);
  SuperpageCheck check({.pattern = PagePattern::cru_internal});
  host.start(1);
  run(host, check, {0}, 300);
  EXPECT_EQ(check.errors(), 0U) << first_finding(check);
}

TEST_F(CruCardTest, ProvablePagesOfManyLinksAreRightWithFixedOffsets) {
  start(settings(cru_card()));
  CruHost host(socket(), 1 << 18, 64);
  SuperpageCheck check({.pattern = PagePattern::provable});
  host.start(0);
  run(host, check, {0, 1, 5, 11}, 60);
  EXPECT_EQ(check.errors(), 0U) << first_finding(check);
}

TEST_F(CruCardTest, TheDataGeneratorsCountersGoOnWithDynamicOffsets) {
  auto card = cru_card();
  card.rdh.payload = PagePattern::ddg;
  start(settings(card));
  CruHost host(socket(), 1 << 18, 64);
  host.write(cru::reg("datapath_enable"), 0x80000000U | 0xfff);
  host.write(cru::reg("debug"), 32U << 20);
  SuperpageCheck check({.pattern = PagePattern::ddg, .time_frame_orbits = 32});
  host.start(0);
  run(host, check, {2, 3}, 100);
  EXPECT_EQ(check.errors(), 0U) << first_finding(check);
}

TEST_F(CruCardTest, StopFlushesWhatIsUnderWayAndStartBeginsAnew) {
  auto all = settings(cru_card());
  all.trigger.rate_hz = 2000;
  all.trigger.spacing = trigger::TriggerSettings::Spacing::periodic;
  start(std::move(all));
  CruHost host(socket(), 8 << 20, 4);
  for (int round = 0; round < 3; ++round) {
    const auto before = emulator_->report().functions[0].bytes;
    host.start(0);
    host.push(4);
    ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].bytes > before + 100'000; }));
    host.stop();
    const auto filled = host.take(4);
    ASSERT_EQ(filled.size(), 1U) << "the flush is complete when the stop is answered";
    EXPECT_GT(filled[0].bytes.size(), 0U);
    EXPECT_LT(filled[0].bytes.size(), 8U << 20);
    EXPECT_EQ(filled[0].index, 0U);
    SuperpageCheck check({.pattern = PagePattern::provable});
    check.check(4, filled[0].bytes);
    EXPECT_EQ(check.errors(), 0U) << first_finding(check);
    EXPECT_EQ(formats::Rdh::read(filled[0].bytes.data()).packet_counter(), 0U) << "a new run";
    host.give_back(filled[0]);
  }
}

TEST_F(CruCardTest, ARunThatIsSwitchedOffEndsWithItsLastFrameHoweverSlowlySuperpagesCome) {
  constexpr std::uint64_t kFrames = 40;
  auto all = settings(cru_card());
  all.cards[0].fifo_triggers = kFrames;
  all.cards[0].drop = false;
  all.trigger.rate_hz = 20'000;
  start(std::move(all));
  CruHost host(socket(), 32768, 64);
  host.write(cru::reg("datapath_enable"), 1);
  host.start(0);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.accepted == kFrames; }));
  host.write(cru::reg("user_control"), 0);
  for (int i = 0; i < 40; ++i) {
    host.push(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  host.stop();
  const auto report = emulator_->report().functions[0];
  EXPECT_EQ(report.chunks, kFrames);
  EXPECT_TRUE(std::ranges::none_of(report.counters, [](const auto& counter) { return counter.name == "frames_cut_off"; }));
}

TEST_F(CruCardTest, FramesWithoutSuperpagesAreDroppedAndCounted) {
  auto all = settings(cru_card());
  all.cards[0].fifo_triggers = 10;
  all.trigger.rate_hz = 20'000;
  start(std::move(all));
  CruHost host(socket(), 32768, 2);
  host.start(0);
  ASSERT_TRUE(wait_until([&] { return host.read(cru::reg("datapath_dropped_packets")) > 1000; }));
  EXPECT_GT(host.read(cru::reg("fifo_empty_count"), 3), 0U);
  EXPECT_EQ(emulator_->report().trigger.vetoed_busy, 0U);
}

TEST_F(CruCardTest, ABusyCardHoldsTriggersBackInstead) {
  auto all = settings(cru_card());
  all.cards[0].fifo_triggers = 10;
  all.cards[0].drop = false;
  all.cards[0].links = 1;
  all.trigger.rate_hz = 20'000;
  start(std::move(all));
  CruHost host(socket(), 32768, 2);
  host.start(0);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.vetoed_busy > 100; }));
  EXPECT_EQ(emulator_->report().trigger.accepted, 10U);
  EXPECT_EQ(host.read(cru::reg("datapath_dropped_packets")), 0U);
}

TEST_F(CruCardTest, FaultsAreSeenByTheCheckUnderTheirNames) {
  start(settings(cru_card()));
  CruHost host(socket(), 1 << 17, 32);
  const auto errors_after = [&](FaultKind kind) {
    SuperpageCheck check({.pattern = PagePattern::provable});
    host.start(0);
    bool injected = false;
    host.push(0);
    EXPECT_TRUE(wait_until([&] {
      if (!injected && count(check, SuperpageCounter::superpages) > 0) {
        injected = true;
        EXPECT_TRUE(emulator_->inject("cru", {.kind = kind, .link = 0}).has_value());
      }
      for (const auto& filled : host.take(0)) {
        check.check(0, filled.bytes);
        host.give_back(filled);
        host.push(0);
      }
      return count(check, SuperpageCounter::superpages) > 6;
    }));
    host.stop();
    for (const auto& filled : host.take(0)) host.give_back(filled);
    std::string names;
    for (std::size_t i = 0; i < formats::kSuperpageCounters; ++i) {
      const auto counter = static_cast<SuperpageCounter>(i);
      if (formats::is_error(counter) && count(check, counter) > 0)
        names += std::string(formats::kSuperpageCounterInfo[i].name) + " ";
    }
    return names;
  };
  EXPECT_EQ(errors_after(FaultKind::bad_packet_counter), "packet_counter ");
  EXPECT_EQ(errors_after(FaultKind::corrupt_rdh), "bad_header ");
  EXPECT_EQ(errors_after(FaultKind::truncated_page), "bad_size ");
}

TEST_F(CruCardTest, HeartbeatFramesThatAreMissingAreSeenByTheCheck) {
  auto all = settings(cru_card());
  all.trigger.rate_hz = 20'000;
  start(std::move(all));
  CruHost host(socket(), 1 << 17, 32);
  const auto errors_after = [&](const emulator::Fault& fault) {
    SuperpageCheck check({.pattern = PagePattern::provable, .time_frame_orbits = 0});
    host.start(0);
    for (int i = 0; i < 8; ++i) host.push(0);
    std::uint64_t after = 0;
    EXPECT_TRUE(wait_until([&] {
      for (const auto& filled : host.take(0)) {
        check.check(0, filled.bytes);
        host.give_back(filled);
        host.push(0);
      }
      const std::uint64_t seen = count(check, SuperpageCounter::superpages);
      if (after == 0 && seen > 2) {
        after = seen + 20;
        EXPECT_TRUE(emulator_->inject("cru", fault).has_value());
      }
      return after != 0 && seen > after;
    }));
    host.stop();
    for (const auto& filled : host.take(0)) host.give_back(filled);
    return std::pair(count(check, SuperpageCounter::orbit), check.errors() - count(check, SuperpageCounter::packet_counter));
  };
  using Errors = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(errors_after({.kind = FaultKind::link_down, .link = 0, .duration = 20ms}), (Errors{1, 1}));
  EXPECT_EQ(errors_after({.kind = FaultKind::dropped_superpage, .link = 0}), (Errors{1, 1}));
}

TEST_F(CruCardTest, ATriggerIsOneHoweverManyLinksSendItsFrame) {
  auto all = settings(cru_card());
  all.trigger.rate_hz = 5'000;
  start(std::move(all));
  CruHost host(socket(), 1 << 17, 32);
  host.start(0);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.accepted > 100; }));
  host.write(cru::reg("user_control"), 0);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.followers.at(0).ready == 0; }));
  const auto report = emulator_->report();
  EXPECT_EQ(report.functions[0].triggers, report.trigger.accepted);
  EXPECT_EQ(host.read(cru::reg("ttc_heartbeats")), report.trigger.accepted);
  host.stop();
}

TEST_F(CruCardTest, ASizeIndexMismatchALostSuperpageAndAStuckFifoAreSeenInRegisters) {
  start(settings(cru_card()));
  CruHost host(socket(), 1 << 17, 32);
  host.start(0);
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::size_index_mismatch, .link = 2}).has_value());
  host.push(2);
  std::vector<CruHost::Filled> filled;
  ASSERT_TRUE(wait_until([&] { return !(filled = host.take(2)).empty(); }));
  EXPECT_EQ(filled[0].index, 1U) << "one too high";
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::dropped_superpage, .link = 2}).has_value());
  host.push(2);
  host.push(2);
  ASSERT_TRUE(wait_until([&] { return host.read(cru::reg("superpages_done"), 2) == 2; })) << "one of two";
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::stuck_fifo, .link = 2}).has_value());
  host.push(2);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(host.read(cru::reg("superpages_done"), 2), 2U);
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::stuck_fifo, .link = 2}).has_value());
  ASSERT_TRUE(wait_until([&] { return host.read(cru::reg("superpages_done"), 2) == 3; }));
}

TEST_F(CruCardTest, ALinkThatWentDownIsRemembered) {
  start(settings(cru_card()));
  CruHost host(socket(), 32768, 1);
  const unsigned index = cru::gbt_index(0, 7);
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::link_down, .link = 7, .duration = 10ms}).has_value());
  EXPECT_EQ(cru::kDataUp.of(host.read(cru::reg("gbt_link_status"), index)), 0U);
  ASSERT_TRUE(wait_until([&] { return cru::kDataUp.of(host.read(cru::reg("gbt_link_status"), index)) == 1; }));
  EXPECT_EQ(cru::kDataWasDown.of(host.read(cru::reg("gbt_link_status"), index)), 1U);
  host.write(cru::reg("gbt_link_clear_errors"), 1, index);
  EXPECT_EQ(cru::kDataWasDown.of(host.read(cru::reg("gbt_link_status"), index)), 0U);
}

TEST_F(CruCardTest, AResetUnderLoadLeavesACardThatStartsAgain) {
  start(settings(cru_card()));
  CruHost host(socket(), 1 << 18, 64);
  host.start(0);
  for (int i = 0; i < 8; ++i) host.push(0);
  ASSERT_TRUE(wait_until([&] { return host.read(cru::reg("superpages_done"), 0) > 2; }));
  ASSERT_TRUE(emulator_->inject("cru", {.kind = FaultKind::card_reset}).has_value());
  EXPECT_EQ(host.read(cru::reg("superpages_done"), 0), 0U);
  CruHost again(socket(), 1 << 18, 64);
  SuperpageCheck check({.pattern = PagePattern::provable});
  again.start(0);
  run(again, check, {0}, 10);
  EXPECT_EQ(check.errors(), 0U) << first_finding(check);
}

TEST_F(CruCardTest, TwoEndpointsAreTwoFunctionsOfOneCard) {
  auto card = cru_card();
  card.endpoints = 2;
  start(settings(card));
  CruHost one(socket("0000:3b:00.0"), 1 << 18, 16), two(socket("0000:3b:00.1"), 1 << 18, 16);
  EXPECT_EQ(two.read(cru::reg("endpoint_id")), cru::kEndpointOneId);
  EXPECT_EQ(two.read(cru::reg("serial")), one.read(cru::reg("serial")));
  SuperpageCheck check_one({.pattern = PagePattern::provable}), check_two({.pattern = PagePattern::provable});
  one.start(0);
  two.start(0);
  run(one, check_one, {0}, 10);
  run(two, check_two, {0}, 10);
  EXPECT_EQ(check_one.errors() + check_two.errors(), 0U);
}

TEST_F(CruCardTest, EndpointsThatBeginAtOtherTimesShareOrbitsAndTimeFrames) {
  constexpr std::uint32_t kLength = 16;
  auto card = cru_card();
  card.endpoints = 2;
  card.drop = false;
  card.rdh.frame_bytes = 32;
  auto all = settings(card);
  all.trigger.rate_hz = 1'000;
  all.trigger.wait_for = 1;
  start(std::move(all));
  // A time frame ends its superpage, so there is room for 1600 triggers.
  constexpr int kSuperpages = 100;
  CruHost one(socket("0000:3b:00.0"), 1 << 18, kSuperpages), two(socket("0000:3b:00.1"), 1 << 18, kSuperpages);
  const auto accepted = [&] { return emulator_->report().trigger.accepted; };
  const auto begin = [&](CruHost& host) {
    host.write(cru::reg("datapath_enable"), 1);
    host.write(cru::reg("debug"), kLength << 20);
    host.start(0);
    for (int i = 0; i < kSuperpages; ++i) host.push(0);
  };
  begin(one);
  ASSERT_TRUE(wait_until([&] { return accepted() > 20; }));
  begin(two);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[1].chunks + accepted() > 100; }));
  one.write(cru::reg("user_control"), 0);
  two.write(cru::reg("user_control"), 0);
  ASSERT_TRUE(wait_until([&] {
    return std::ranges::all_of(emulator_->report().trigger.followers, [](const auto& each) { return each.ready == 0; });
  }));
  const std::uint32_t first_orbit = card.rdh.first_orbit;
  const auto orbits_of = [&](CruHost& host) {
    host.stop();
    std::vector<std::uint32_t> orbits;
    for (const auto& filled : host.take(0)) {
      for (std::size_t at = 0; at < filled.bytes.size();) {
        const auto page = formats::Rdh::read(filled.bytes.data() + at);
        at += page.offset_next();
        if (page.page_number() != 0) continue;
        orbits.push_back(page.orbit());
        EXPECT_EQ((page.trigger_type() & formats::rdh_trigger::kTimeFrame) != 0,
                  (page.orbit() - first_orbit) % kLength == 0);
      }
    }
    return orbits;
  };
  const auto of_one = orbits_of(one);
  const auto of_two = orbits_of(two);
  ASSERT_FALSE(of_one.empty());
  ASSERT_FALSE(of_two.empty());
  EXPECT_EQ(of_one.front(), first_orbit);
  EXPECT_EQ(of_one.back(), of_two.back()) << "both have the same last trigger";
  EXPECT_GT(of_two.front(), first_orbit + 20);
  EXPECT_EQ(of_two.back() - of_two.front(), of_two.size() - 1);
  EXPECT_EQ(two.read(cru::reg("datapath_link_first_orbit"), cru::datapath_index(1, 0)), of_two.front());
  const auto report = emulator_->report();
  EXPECT_EQ(report.functions[0].triggers, of_one.size());
  EXPECT_EQ(report.functions[1].triggers, of_two.size());
}

TEST_F(CruCardTest, SuperpagesOverTheBorderOfMapsAreWhole) {
  start(settings(cru_card()));
  VfioClient client(socket());
  client.set_bus_master();
  const SharedMemory memory(1 << 20);
  // Sixteen successive maps of 64 KiB: a superpage of 1 MiB spans all of them.
  for (unsigned i = 0; i < 16; ++i) ASSERT_EQ(client.map(memory, 0x1000000 + i * 65536ULL, 65536, i * 65536ULL), 0);
  const auto write = [&](const card_registers::Register& reg, std::uint32_t value) {
    client.write32(reg.bar, reg.offset, value);
  };
  write(cru::reg("data_source"), 0);
  write(cru::reg("dma_control"), 1);
  write(cru::reg("user_control"), 1);
  write(cru::reg("superpage_address_low"), 0x1000000 + 4);  // pages cross the borders
  write(cru::reg("superpage_push"), (1 << 20) / 8192 - 1);
  ASSERT_TRUE(wait_until([&] { return client.read32(0, cru::reg("superpages_done").offset) == 1; }));
  const auto bytes = cru::kSuperpageBytes.of(client.read32(0, cru::reg("superpage_size_fifo").offset));
  SuperpageCheck check({.pattern = PagePattern::provable});
  check.check(0, std::span<const std::byte>(memory.data() + 4, bytes));
  EXPECT_EQ(check.errors(), 0U) << first_finding(check);
  EXPECT_GT(count(check, SuperpageCounter::pages), 100U);
}

}  // namespace
