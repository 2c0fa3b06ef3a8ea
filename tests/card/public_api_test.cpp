#include "rodeo/card.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "formats/temporary_directory.h"
#include "scripted_server.h"

namespace rodeo {
namespace {

namespace cru = card_registers::cru;
namespace felix = card_registers::felix;

/// Registers of a CRU without behaviour, in smaller BARs.
class PublicCardApi : public testing::Test {
 protected:
  PublicCardApi() {
    ::setenv("RODEO_RUNTIME_DIR", directory_.path().c_str(), 1);
    std::filesystem::create_directory(directory_.file("cards"));
    server_ = std::make_unique<card::doubles::ScriptedServer>(directory_.file("cards/0000:3b:00.0.sock"), cru::kPciId);
    const std::uint32_t serial = 0x33333230;
    // The identification reads beyond these BARs: the list shows a problem, but the card can be opened by address.
    std::memcpy(server_->bar2.data() + 0x18, &serial, 4);
  }
  ~PublicCardApi() override { ::unsetenv("RODEO_RUNTIME_DIR"); }
  test::TemporaryDirectory directory_;
  std::unique_ptr<card::doubles::ScriptedServer> server_;
};

TEST_F(PublicCardApi, ListsAndOpensACard) {
  const auto cards = list_cards();
  ASSERT_FALSE(cards.empty());
  EXPECT_EQ(cards[0].type, "CRU");
  EXPECT_NE(cards[0].problem, "");
  CardHandle card = CardHandle::open("3b:00.0");
  EXPECT_EQ(card.info().address, "0000:3b:00.0");
}

TEST_F(PublicCardApi, ReadsWritesAndModifiesRegisters) {
  CardHandle card = CardHandle::open("3b:00.0");
  card.write(2, 0x100, 0xffff0000);
  EXPECT_EQ(card.read(2, 0x100), 0xffff0000u);
  EXPECT_EQ(card.modify(2, 0x100, 4, 8, 0xab), 0xffff0ab0u);
  card.write("superpages_done[3]", 7, true);
  EXPECT_EQ(card.read("superpages_done[3]"), 7u);
  EXPECT_EQ(card.read(0, 0x80c), 7u);
  card.write("debug", 5);
  EXPECT_EQ(card.read(0, 0xc00), 5u);
}

/// The code of the error that a call throws.
template <typename Call>
std::string code(Call&& call) {
  try {
    call();
  } catch (const CardError& error) {
    return error.code();
  }
  return "nothing";
}

TEST_F(PublicCardApi, WritesWhatCanOnlyBeReadByForceAlone) {
  CardHandle card = CardHandle::open("3b:00.0");
  EXPECT_EQ(code([&] { card.write("superpages_done[3]", 7); }), "card.read_only");
  EXPECT_EQ(code([&] { card.write("temperature", 1); }), "card.read_only");
  EXPECT_EQ(code([&] { card.write(0, 0x80c, 7); }), "card.read_only");
  EXPECT_EQ(code([&] { card.modify(0, 0x80c, 0, 4, 7); }), "card.read_only");
  EXPECT_EQ(card.read(0, 0x80c), 0u) << "nothing was written";
  card.write(0, 0x80c, 7, true);
  EXPECT_EQ(card.modify(0, 0x80c, 4, 4, 1, true), 0x17u);
  EXPECT_EQ(code([&] { card.write("debug", std::uint64_t{1} << 32); }), "card.bad_access");
}

TEST_F(PublicCardApi, AKnownMapIsUsedForAFelixThatNamesAnother) {
  server_ = std::make_unique<card::doubles::ScriptedServer>(directory_.file("cards/0000:4b:00.0.sock"), felix::kPciIds[0]);
  server_->bar2[1] = std::byte{5};
  {
    CardHandle card = CardHandle::open("4b:00.0");
    EXPECT_EQ(code([&] { card.write("generator_control", 1); }), "card.bad_access") << "it has no such register";
    EXPECT_EQ(code([&] { card.write(2, 0x4900, 1); }), "card.unknown_map");
  }
  EXPECT_EQ(code([] { (void)CardHandle::open("4b:00.0", "5.0"); }), "card.unknown_map");
  CardHandle card = CardHandle::open("4b:00.0", felix::kRegisterMapName);
  card.write("generator_control", 1);
  EXPECT_EQ(card.read("generator_control"), 1u);
}

TEST_F(PublicCardApi, ThrowsWithACode) {
  EXPECT_EQ(code([] { (void)CardHandle::open("4b:00.0"); }), "card.not_found");
  CardHandle card = CardHandle::open("3b:00.0");
  EXPECT_EQ(code([&] { (void)card.read(2, 2); }), "card.bad_access");
  EXPECT_EQ(code([&] { (void)card.read("no_such_register"); }), "card.bad_access");
  EXPECT_EQ(code([&] { (void)CardDma::open(card, {.source = "nothing"}); }), "card.bad_dma");
  EXPECT_EQ(code([&] { (void)CardDma::open(card, {.buffer_bytes = 1 << 20}); }), "card.firmware");
}

}  // namespace
}  // namespace rodeo
