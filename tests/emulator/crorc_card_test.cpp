#include "emulator/crorc_card.h"

#include <atomic>

#include "emulator/card_fixture.h"
#include "formats/superpage_check.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
using emulator::FaultKind;
namespace crorc = card_registers::crorc;

/// The host's side of one channel.
class CrorcHost {
 public:
  static constexpr std::uint64_t kIova = 0x40000000, kInfo = 0x80000000;
  static constexpr std::uint32_t kSuperpage = 1 << 18;

  CrorcHost(const std::filesystem::path& socket, unsigned channel)
      : client(socket), memory(kSuperpage), info(4096), channel_(channel) {
    client.set_bus_master();
    EXPECT_EQ(client.map(memory, kIova), 0);
    EXPECT_EQ(client.map(info, kInfo), 0);
    completion().store(std::uint64_t{crorc::kCompletionSeed} << 32);
  }
  std::uint32_t read(const card_registers::Register& reg) { return client.read32(channel_, reg.offset); }
  void write(const card_registers::Register& reg, std::uint32_t value) { client.write32(channel_, reg.offset, value); }
  std::atomic_ref<std::uint64_t> completion() { return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(info.data())); }

  void start(bool generator) {
    write(crorc::reg("csr"), crorc::kResetCard);
    write(crorc::reg("info_address_high"), 0);
    write(crorc::reg("info_address_low"), kInfo);
    completion().store(std::uint64_t{crorc::kCompletionSeed} << 32);
    if (!generator) write(crorc::reg("ddl_command"), crorc::kCommandRdyrx);
    write(crorc::reg("channel_csr"), crorc::kRxToggle.mask());
    if (generator) write(crorc::reg("data_generator"), crorc::kGeneratorRun.mask());
  }
  void push() {
    write(crorc::reg("superpage_address_high"), 0);
    write(crorc::reg("superpage_address_low"), kIova);
    write(crorc::reg("superpage_push"), kSuperpage);
  }
  /// Returns count and size of the next report.
  std::pair<std::uint32_t, std::uint32_t> wait(std::uint32_t last_count) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < deadline) {
      const std::uint64_t word = completion().load(std::memory_order_acquire);
      if ((word >> 32) != last_count) return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
    }
    ADD_FAILURE() << "no report";
    return {};
  }

  VfioClient client;
  SharedMemory memory, info;

 private:
  unsigned channel_;
};

class CrorcCardTest : public CardTest {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    emulator::EmulatedCardSettings card;
    card.type = emulator::CardType::crorc;
    card.name = "crorc";
    card.address = "3b:00.0";
    card.serial = 120;
    card.rdh.payload = formats::PagePattern::words;
    card.rdh.frame_bytes = 32000;
    start(settings(card));
  }
};

TEST_F(CrorcCardTest, SaysWhatItIsInEveryBar) {
  VfioClient client(socket());
  EXPECT_EQ(client.read32(7, 0), 0x003310dcU);
  for (unsigned bar = 0; bar < 6; ++bar) EXPECT_EQ(client.read32(bar, crorc::reg("serial").offset), 0x30323130U) << "0120";
  EXPECT_EQ(client.read32(3, crorc::reg("link_status").offset), crorc::kQsfpUp.mask());
}

TEST_F(CrorcCardTest, SuperpagesAreReportedInMemoryOneByOne) {
  CrorcHost host(socket(), 4);
  formats::SuperpageCheck check({.pattern = formats::PagePattern::words});
  host.start(true);
  std::uint32_t last = crorc::kCompletionSeed;
  for (unsigned i = 0; i < 300; ++i) {
    host.push();
    const auto [count, bytes] = host.wait(last);
    ASSERT_EQ(count, i % 256);
    ASSERT_LE(bytes, CrorcHost::kSuperpage);
    check.check(4, std::span<const std::byte>(host.memory.data(), bytes));
    last = count;
  }
  EXPECT_EQ(check.errors(), 0U) << (check.findings().empty() ? "" : formats::describe(check.findings().front()));
  EXPECT_GT(host.read(crorc::reg("packets_received")), 300U);
}

TEST_F(CrorcCardTest, ASecondSuperpageIsRefused) {
  CrorcHost host(socket(), 0);
  host.write(crorc::reg("csr"), crorc::kResetCard);
  host.push();
  host.push();
  EXPECT_EQ(host.read(crorc::reg("superpage_push")), CrorcHost::kSuperpage << 8 | 1U);
  EXPECT_EQ(counter_value(emulator_->report().functions[0].counters, "descriptors_refused"), 1U);
}

TEST_F(CrorcCardTest, SizeAndCountOfThePushReadBackAfterTheSuperpageIsDoneToo) {
  CrorcHost host(socket(), 3);
  host.start(true);
  host.push();
  (void)host.wait(crorc::kCompletionSeed);
  EXPECT_EQ(host.read(crorc::reg("superpage_push")), CrorcHost::kSuperpage << 8 | 1U);
}

TEST_F(CrorcCardTest, AFlushReportsWhatIsThere) {
  CrorcHost host(socket(), 1);
  ASSERT_TRUE(emulator_->inject("crorc", {.kind = FaultKind::stuck_fifo, .link = 1}).has_value());
  host.start(true);
  host.push();
  host.write(crorc::reg("time_frame"), crorc::kFlush.mask() | 256);
  const auto [count, bytes] = host.wait(crorc::kCompletionSeed);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(bytes, 0U);
}

TEST_F(CrorcCardTest, TheLinkAnswersCommandsUnlessItIsDown) {
  CrorcHost host(socket(), 2);
  host.write(crorc::reg("ddl_command"), crorc::kCommandRdyrx);
  EXPECT_EQ(crorc::kStatusNotEmpty.of(host.read(crorc::reg("channel_csr"))), 1U);
  EXPECT_EQ(host.read(crorc::reg("ddl_status")) >> 8, crorc::kCommandRdyrx);
  EXPECT_EQ(crorc::kStatusNotEmpty.of(host.read(crorc::reg("channel_csr"))), 0U);
  ASSERT_TRUE(emulator_->inject("crorc", {.kind = FaultKind::link_down, .link = 2}).has_value());
  EXPECT_EQ(crorc::kLinkDown.of(host.read(crorc::reg("channel_csr"))), 1U);
  host.write(crorc::reg("ddl_command"), crorc::kCommandRdyrx);
  EXPECT_EQ(crorc::kStatusNotEmpty.of(host.read(crorc::reg("channel_csr"))), 0U);
}

TEST_F(CrorcCardTest, TheFlashIsErasedAndProgrammedAsItsChipIs) {
  CrorcHost host(socket(), 0);
  const auto command = [&](std::uint32_t value) { host.write(crorc::reg("flash_command"), value); };
  const auto chip = [&](std::uint32_t value) { command(crorc::kFlashBusWrite | value); };
  const auto look = [&] {
    command(crorc::kFlashBusRead);
    return host.read(crorc::reg("flash_data"));
  };
  command(crorc::kFlashSetAddress | 0x1234);
  EXPECT_EQ(look(), 0xffffU);
  chip(crorc::kChipProgram);
  chip(0xabcd);
  EXPECT_EQ(look(), crorc::kChipReady) << "status after programming";
  chip(crorc::kChipReadArray);
  EXPECT_EQ(look(), 0xabcdU);
  chip(crorc::kChipProgram);
  chip(0xff00);
  chip(crorc::kChipReadArray);
  EXPECT_EQ(look(), 0xab00U) << "bits only change to zero";
  chip(crorc::kChipEraseSetup);
  chip(crorc::kChipConfirm);
  chip(crorc::kChipReadArray);
  EXPECT_EQ(look(), 0xffffU);
}

TEST_F(CrorcCardTest, OneThatGoesAfterTheNextHasStartedTakesNothingFromIt) {
  auto first = std::make_unique<CrorcHost>(socket(), 2);
  first->start(true);
  first->push();
  (void)first->wait(crorc::kCompletionSeed);
  CrorcHost next(socket(), 2);
  next.start(true);
  first.reset();
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].clients == 1; }));
  next.push();
  EXPECT_EQ(next.wait(crorc::kCompletionSeed).first, 0U);
}

TEST_F(CrorcCardTest, AReaderThatDiesLeavesNoChannelRunning) {
  {
    CrorcHost host(socket(), 2);
    host.start(true);
    host.push();
    (void)host.wait(crorc::kCompletionSeed);
    EXPECT_TRUE(wait_until([&] { return emulator_->report().functions[0].running; }));
  }
  EXPECT_TRUE(wait_until([&] { return !emulator_->report().functions[0].running; }));
}

}  // namespace
