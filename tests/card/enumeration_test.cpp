#include "card/enumeration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <latch>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "formats/temporary_directory.h"
#include "scripted_function.h"
#include "scripted_server.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;
using doubles::ScriptedFunction;

std::uint32_t ascii(const char* digits) {
  std::uint32_t word = 0;
  std::memcpy(&word, digits, 4);
  return word;
}

/// Two endpoints of one CRU, a C-RORC, a FELIX, a network adapter and a card that does not answer.
class Cards {
 public:
  CardSource source() {
    return {[this] { return functions(); }, [this](const pci::FoundFunction& found) { return open(found); }};
  }
  std::atomic<int> opened = 0;
  std::vector<pci::FoundFunction> more = {};  // emulated functions that do not answer
  std::function<void()> before_silence = {};
  const char* second_serial = "0233";
  std::uint32_t felix_map = felix::kRegisterMapVersion;
  bool all_ones = false;

 private:
  static pci::FoundFunction function(std::uint8_t bus, std::uint8_t number, card_registers::PciId id) {
    pci::FoundFunction found;
    found.address = {0, bus, 0, number};
    found.id = id;
    return found;
  }
  std::vector<pci::FoundFunction> functions() const {
    std::vector<pci::FoundFunction> all{function(0x10, 0, cru::kPciId),       function(0x10, 1, cru::kPciId),
                                        function(0x20, 0, {0x8086, 0x1533}),  function(0x30, 0, crorc::kPciId),
                                        function(0x40, 0, felix::kPciIds[1]), function(0x50, 0, cru::kPciId)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Result<std::unique_ptr<Card>> open(const pci::FoundFunction& found) {
    ++opened;
    if (found.back_end == pci::BackEnd::vfio_user) {
      if (before_silence) before_silence();
      return std::unexpected(Error{"card.timeout", "the card did not answer in time"});
    }
    if (found.address.bus == 0x50) return std::unexpected(Error{"card.timeout", "the card did not answer in time"});
    const auto bars = found.id == crorc::kPciId ? std::span(crorc::kBars)
                      : found.id == cru::kPciId ? std::span<const card_registers::BarSize>(cru::kBars)
                                                : std::span<const card_registers::BarSize>(felix::kBars);
    auto scripted = std::make_unique<ScriptedFunction>(*found.id, bars, found.address);
    auto& words = scripted->words;
    words[{0, cru::reg("endpoint_id").offset}] = found.address.function == 1 ? cru::kEndpointOneId : 0;
    words[{2, cru::reg("firmware_hash").offset}] = 0x0e64b97b;
    if (found.id == cru::kPciId) {
      // The serial is present if it was requested.
      auto* raw = scripted.get();
      const char* digits = found.address.function == 1 ? second_serial : "0233";
      scripted->after_write = [raw, digits](unsigned, std::uint64_t offset, std::uint32_t value) {
        if (offset == cru::reg("i2c_eeprom_command").offset && value == 2)
          raw->words[{2, cru::reg("serial").offset}] = ascii(digits);
      };
    }
    if (found.id == crorc::kPciId) words[{0, crorc::reg("serial").offset}] = ascii("0077");
    if (found.id == felix::kPciIds[1]) {
      words[{2, felix::reg("serial").offset}] = 301;
      words[{2, felix::reg("register_map_version").offset}] = felix_map;
    }
    if (all_ones) {
      auto* raw = scripted.get();
      scripted->before_read = [raw](unsigned bar, std::uint64_t offset) {
        if (bar < 6) raw->words[{bar, offset}] = raw->words[{bar, offset + 4}] = UINT32_MAX;
      };
    }
    return Card::adopt(std::move(scripted), found);
  }
};

TEST(Enumeration, ListsCardsByTypeAndAddressAndLeavesOthersOut) {
  Cards cards;
  const auto entries = list_cards(cards.source());
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[0].type, CardType::crorc);
  EXPECT_EQ(entries[0].identity.serial, 77u);
  EXPECT_EQ(entries[1].function.address.text(), "0000:10:00.0");
  EXPECT_EQ(entries[1].identity.endpoint, 0u);
  EXPECT_EQ(entries[2].identity.endpoint, 1u);
  EXPECT_EQ(entries[2].identity.serial, 233u);
  EXPECT_EQ(hash_text(*entries[2].identity.firmware_hash), "e64b97b")
      << "without leading zeros, as the firmware table has it";
  EXPECT_EQ(entries[4].type, CardType::felix);
  EXPECT_EQ(entries[4].identity.endpoint, 1u);
  EXPECT_EQ(entries[4].identity.serial, 301u);
  for (unsigned i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].sequence, i);
}

TEST(Enumeration, AFelixOfAnUnknownMapIsListedWithANote) {
  Cards cards;
  cards.felix_map = 0x0500;
  const auto entries = list_cards(cards.source());
  EXPECT_EQ(entries[4].type, CardType::felix);
  EXPECT_EQ(entries[4].problem, "");
  EXPECT_NE(entries[4].note.find("5.0"), std::string::npos) << entries[4].note;
  EXPECT_FALSE(entries[4].identity.serial) << "its place has another value";
}

TEST(Enumeration, CardsThatReadAllOnesAreListedByType) {
  Cards cards;
  cards.all_ones = true;
  const auto entries = list_cards(cards.source());
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[0].type, CardType::crorc);
  for (const std::size_t i : {0U, 1U, 2U, 4U}) EXPECT_NE(entries[i].problem.find("all ones"), std::string::npos) << i;
}

TEST(Enumeration, ABadCardIsABadRow) {
  Cards cards;
  const auto entries = list_cards(cards.source());
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[3].function.address.text(), "0000:50:00.0");
  EXPECT_EQ(entries[3].problem, "the card did not answer in time");
  EXPECT_EQ(entries[0].problem, "");
}

TEST(Enumeration, SeveralSilentCardsAreWaitedForAtOnceAndOnce) {
  Cards cards;
  std::vector<std::string> ids;
  for (std::uint8_t i = 0; i < 3; ++i) {
    pci::FoundFunction silent;
    silent.address = {0, static_cast<std::uint8_t>(0x60 + i), 0, 0};
    silent.back_end = pci::BackEnd::vfio_user;
    cards.more.push_back(silent);
    ids.push_back(silent.address.text());
  }
  std::latch together(3);
  cards.before_silence = [&] { together.arrive_and_wait(); };
  ids.emplace_back("10:00.0");
  ids.emplace_back("nonsense");
  const auto found = find_cards(ids, cards.source());
  ASSERT_EQ(found.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i]->unanswered.code, "card.timeout");
  EXPECT_EQ(found[3]->unanswered.code, "");
  EXPECT_EQ(found[3]->type, CardType::cru);
  EXPECT_EQ(found[4].error().code, "card.bad_id");
  EXPECT_EQ(cards.opened, 4);
}

TEST(Enumeration, ListsCardsOnceForSeveralNumbersAndSerialNumbers) {
  Cards cards;
  const auto found = find_cards({"#0", "0233:1", "0301:1", "#4", "#7", "0999", "40:00.0"}, cards.source());
  EXPECT_EQ(cards.opened, 6);  // opens each card once, and the one named by its address once more
  EXPECT_EQ(found[0]->type, CardType::crorc);
  EXPECT_EQ(found[1]->function.address.text(), "0000:10:00.1");
  EXPECT_EQ(found[2]->type, CardType::felix);
  EXPECT_EQ(found[3]->sequence, 4u);
  EXPECT_EQ(found[3]->identity.serial, 301u);
  EXPECT_EQ(found[4].error().code, "card.not_found");
  EXPECT_EQ(found[5].error().code, "card.not_found");
  EXPECT_EQ(found[6]->type, CardType::felix);
}

TEST(Enumeration, FindsACardByEachOfItsNames) {
  Cards cards;
  EXPECT_EQ(find_card("10:00.1", cards.source())->identity.endpoint, 1u);
  EXPECT_EQ(find_card("#0", cards.source())->type, CardType::crorc);
  EXPECT_EQ(find_card("#2", cards.source())->function.address.text(), "0000:10:00.1");
  EXPECT_EQ(find_card("0233:1", cards.source())->function.address.text(), "0000:10:00.1");
  EXPECT_EQ(find_card("0233", cards.source())->function.address.text(), "0000:10:00.0");
  EXPECT_EQ(find_card("0301:1", cards.source())->type, CardType::felix);
}

TEST(Enumeration, APciAddressOpensNoOtherCard) {
  Cards cards;
  ASSERT_TRUE(find_card("10:00.1", cards.source()));
  EXPECT_EQ(cards.opened, 1);
}

TEST(Enumeration, TheAddressOfAnyDeviceOpensItsBarsAlone) {
  Cards cards;
  const auto adapter = find_card("20:00.0", cards.source());
  ASSERT_TRUE(adapter);
  EXPECT_EQ(adapter->type, CardType::unknown);
  EXPECT_EQ(cards.opened, 0);
  const auto opened =
      Card::adopt(std::make_unique<ScriptedFunction>(*adapter->function.id, std::span(felix::kBars)), adapter->function);
  ASSERT_TRUE(opened);
  EXPECT_TRUE((*opened)->map().registers().empty());
  EXPECT_TRUE((*opened)->bar(0));
  pci::FoundFunction not_named = adapter->function;
  not_named.any_device = false;
  EXPECT_FALSE(Card::adopt(std::make_unique<ScriptedFunction>(*adapter->function.id, std::span(felix::kBars)), not_named));
}

TEST(Enumeration, SaysWhichCardsThereAreIfTheNameFitsNone) {
  Cards cards;
  const auto number = find_card("#5", cards.source());
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().code, "card.not_found");
  EXPECT_NE(number.error().what.find("#0 0000:30:00.0"), std::string::npos) << number.error().what;
  cards.opened = 0;
  const auto address = find_card("60:00.0", cards.source());
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, "card.not_found");
  EXPECT_NE(address.error().what.find("there are 0000:10:00.0, 0000:10:00.1, 0000:30:00.0"), std::string::npos)
      << address.error().what;
  EXPECT_EQ(cards.opened, 0) << "an address opens no other card, even if no card has it";
}

TEST(Enumeration, ASerialNumberThatASilentCardMayHaveIsNotSaidToBeNowhere) {
  Cards cards;
  const auto serial = find_card("0999", cards.source());
  ASSERT_FALSE(serial);
  EXPECT_EQ(serial.error().code, "card.not_found");
  EXPECT_NE(serial.error().what.find("those of 0000:50:00.0 are not known: the card did not answer in time"),
            std::string::npos)
      << serial.error().what;
}

pci::FoundFunction emulated_at(std::uint8_t bus) {
  pci::FoundFunction found;
  found.address = {0, bus, 0, 0};
  found.back_end = pci::BackEnd::vfio_user;
  return found;
}

TEST(Enumeration, NumbersMeanNothingWhileTheTypeOfACardIsNotKnown) {
  Cards cards;
  cards.more = {emulated_at(0x60)};
  const auto first = find_card("#0", cards.source());
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, "card.unknown_order");
  EXPECT_NE(first.error().what.find("0000:60:00.0"), std::string::npos) << first.error().what;
  EXPECT_EQ(find_card("0233:1", cards.source())->function.address.text(), "0000:10:00.1");
  const auto entries = list_cards(cards.source());
  EXPECT_TRUE(entries.back().silent);
  EXPECT_EQ(std::ranges::count(entries, true, &CardEntry::silent), 1);
}

TEST(Enumeration, SilentCardsAreWaitedForAllAtOnce) {
  Cards cards;
  std::latch all_are_asked(8);
  for (std::uint8_t bus = 0x60; bus < 0x68; ++bus) cards.more.push_back(emulated_at(bus));
  cards.before_silence = [&] { all_are_asked.arrive_and_wait(); };  // the test hangs if cards are asked one by one
  const auto entries = list_cards(cards.source());
  EXPECT_EQ(std::ranges::count(entries, true, &CardEntry::silent), 8);
}

TEST(Enumeration, ASerialNumberThatOccursTwiceNamesNoCard) {
  CardSource twice;
  Cards cards;
  const CardSource once = cards.source();
  twice.functions = [&] {
    auto all = once.functions();
    all.push_back(all[1]);
    all.back().address.bus = 0x11;
    return all;
  };
  twice.open = once.open;
  EXPECT_EQ(find_card("0233:1", twice).error().code, "card.ambiguous");
}

TEST(Enumeration, ASerialThatIsNoNumberIsNone) {
  Cards cards;
  cards.second_serial = "02-3";
  const auto entry = find_card("10:00.1", cards.source());
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry->identity.serial);
  EXPECT_EQ(entry->problem, "");
}

class EmulatedCards : public testing::Test {
 protected:
  EmulatedCards() {
    ::setenv("RODEO_RUNTIME_DIR", directory_.path().c_str(), 1);
    std::filesystem::create_directory(directory_.file("cards"));
  }
  ~EmulatedCards() override { ::unsetenv("RODEO_RUNTIME_DIR"); }
  test::TemporaryDirectory directory_;
};

TEST_F(EmulatedCards, AreTheSocketsOfTheRuntimeDirectory) {
  doubles::ScriptedServer server(directory_.file("cards/0000:3b:00.0.sock"), cru::kPciId);
  std::ofstream(directory_.file("cards/0000:3b:00.0.lock")).flush();
  std::ofstream(directory_.file("cards/0000:3c:00.0.sock")).flush();  // not a socket
  doubles::ScriptedServer junk(directory_.file("cards/junk.sock"), cru::kPciId);
  const auto found = pci::emulated_functions();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].address.text(), "0000:3b:00.0");
  EXPECT_EQ(found[1].lock_file, directory_.file("cards/0000:3b:00.0.lock"));
  EXPECT_EQ(found[1].problem, "");
  EXPECT_NE(found[0].problem, "");
}

TEST_F(EmulatedCards, CannotBeLookedForWhereTheirDirectoryCannotBeRead) {
  EXPECT_TRUE(pci::look_for_emulated_functions());
  std::filesystem::remove(directory_.file("cards"));
  EXPECT_TRUE(pci::look_for_emulated_functions()) << "no directory, no cards";
  std::ofstream(directory_.file("cards")).flush();
  EXPECT_TRUE(pci::emulated_functions().empty());
  const auto looked = pci::look_for_emulated_functions();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, "base.runtime_dir");
  EXPECT_NE(find_card("#0").error().what.find("cannot look for emulated cards"), std::string::npos);
}

TEST_F(EmulatedCards, AreListedWithTheirTypeOrTheirProblem) {
  doubles::ScriptedServer server(directory_.file("cards/0000:3b:00.0.sock"), {0x1234, 0x1111});
  {
    doubles::ScriptedServer gone(directory_.file("cards/0000:3c:00.0.sock"), cru::kPciId);
  }
  const auto entries = list_cards();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].problem, "1234:1111 is not a known readout card");
  EXPECT_NE(entries[1].problem, "");
}

TEST_F(EmulatedCards, ThatAreNotThereAreNone) {
  ::setenv("RODEO_RUNTIME_DIR", directory_.file("none").c_str(), 1);
  EXPECT_TRUE(pci::emulated_functions().empty());
}

}  // namespace
}  // namespace rodeo::card
