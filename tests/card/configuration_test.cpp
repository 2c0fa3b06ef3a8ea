#include "card/configuration/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "card/pci/lock.h"
#include "formats/temporary_directory.h"
#include "scripted_cards.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
using doubles::ScriptedCrorc;
using doubles::ScriptedCru;
using doubles::ScriptedFelix;

CruSettings some_settings() {
  CruSettings s;
  s.clock = Clock::ttc;
  s.downstream_data = DownstreamData::midtrg;
  s.gbt_mode = GbtMode::wide_bus;
  s.datapath_mode = DatapathMode::streaming;
  s.allow_rejection = true;
  s.cru_id = 0x123;
  s.onu_address = 77;
  s.dynamic_offset = true;
  s.trigger_window = 2000;
  s.system_id = 0x20;
  s.time_frame_length = 128;
  s.drop_bad_rdh = true;
  s.user_logic = s.user_and_common_logic = true;
  s.links[3] = {true, GbtMux::swt, 0x301};
  s.links[11] = {true, GbtMux::ul, 0xb01};
  return s;
}

class CruConfiguration : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  ScriptedCru cru_{directory_.file("card.lock")};
};

TEST_F(CruConfiguration, IsReadBackAsItWasApplied) {
  const CruSettings wanted = some_settings();
  const auto applied = apply(*cru_.card, wanted);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_FALSE(applied->empty());
  const auto read = read_settings(*cru_.card);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<CruSettings>(*read), wanted);
}

TEST_F(CruConfiguration, NothingIsWrittenThatIsAsItShouldBe) {
  ASSERT_TRUE(apply(*cru_.card, some_settings()));
  cru_.log.clear();
  const auto again = apply(*cru_.card, some_settings());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->empty());
  EXPECT_TRUE(cru_.log.empty());
}

TEST_F(CruConfiguration, LinksTakeAWholePageOfRawData) {
  CruSettings s;
  s.user_logic = true;
  ASSERT_TRUE(apply(*cru_.card, s));
  const auto control = [&](unsigned link) {
    return cru_.f->words[{2, cru::reg("datapath_link_control").at(cru::datapath_index(0, link))}];
  };
  EXPECT_EQ(control(0), 0x800001fcu);
  EXPECT_EQ(control(cru::kUserLogicLink), 0x800001fcu);
  EXPECT_EQ(control(1), 0u) << "a link that is not enabled";
  s.datapath_mode = DatapathMode::streaming;
  ASSERT_TRUE(apply(*cru_.card, s));
  EXPECT_EQ(control(0), 0x1fcu);
}

TEST_F(CruConfiguration, OnlyWhatDiffersIsWritten) {
  CruSettings s = some_settings();
  ASSERT_TRUE(apply(*cru_.card, s));
  cru_.log.clear();
  s.trigger_window = 100;
  const auto applied = apply(*cru_.card, s);
  ASSERT_TRUE(applied);
  EXPECT_EQ(*applied, (std::vector<Difference>{{"trigger_window", "2000", "100"}}));
  EXPECT_EQ(cru_.log, std::vector<std::string>{"datapath_trigger_window=100"});
}

TEST_F(CruConfiguration, ForceWritesAllOfIt) {
  ASSERT_TRUE(apply(*cru_.card, some_settings()));
  cru_.log.clear();
  const auto forced = apply(*cru_.card, some_settings(), {.force = true});
  ASSERT_TRUE(forced);
  EXPECT_GT(forced->size(), 30u);
  EXPECT_THAT(cru_.log, testing::Contains("datapath_trigger_window=2000"));
}

TEST_F(CruConfiguration, ComparingWritesNothing) {
  const auto found = compare(*cru_.card, some_settings());
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, testing::Contains(Difference{"link 3 fee_id", "0x0", "0x301"}));
  EXPECT_THAT(*found, testing::Contains(Difference{"link 11 gbt_mux", "ttc", "ul"}));
  EXPECT_THAT(*found, testing::Contains(Difference{"datapath_mode", "streaming", "packet"}).Times(0));
  EXPECT_TRUE(cru_.log.empty());
}

TEST_F(CruConfiguration, DataTakingIsOffWhileLinksChange) {
  cru_.f->words[{2, cru::reg("user_control").offset}] = 1;
  CruSettings s;
  s.links[5].enabled = true;
  ASSERT_TRUE(apply(*cru_.card, s));
  ASSERT_FALSE(cru_.log.empty());
  EXPECT_EQ(cru_.log.front(), "user_control=0");
  EXPECT_EQ(cru_.f->words[std::make_pair(2U, std::uint64_t{cru::reg("user_control").offset})] & 1U, 0u);
}

TEST_F(CruConfiguration, ACardWhoseDmaIsInUseIsLeftAlone) {
  const auto owner = pci::ByteLock::acquire(directory_.file("card.lock"), 0, "it");
  ASSERT_TRUE(owner);
  EXPECT_EQ(apply(*cru_.card, some_settings()).error().code, "card.locked");
  EXPECT_TRUE(cru_.log.empty());
  EXPECT_TRUE(apply(*cru_.card, some_settings(), {.while_running = true}));
  CruSettings harmless = some_settings();
  harmless.trigger_window = 5;
  EXPECT_TRUE(apply(*cru_.card, harmless)) << "it needs no stop of data taking";
  harmless.cru_id ^= 1;
  EXPECT_TRUE(apply(*cru_.card, harmless)) << "an id in headers";
  for (const auto& change :
       {+[](CruSettings& s) { s.time_frame_length = 200; }, +[](CruSettings& s) { s.dynamic_offset = !s.dynamic_offset; }}) {
    CruSettings other = harmless;
    change(other);
    const auto refused = apply(*cru_.card, other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "card.locked");
    EXPECT_EQ(refused.error().what.find("the data would change"), 0u) << refused.error().what;
  }
}

TEST_F(CruConfiguration, AFieldThatKeepsItsOldValueIsNamed) {
  cru_.f->before_read = [this](unsigned bar, std::uint64_t offset) {
    if (bar == 2 && offset == cru::reg("datapath_trigger_window").offset) cru_.f->words[{bar, offset}] = 1;
  };
  const auto applied = apply(*cru_.card, some_settings());
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, "card.not_applied");
  EXPECT_NE(applied.error().what.find("trigger_window is 1, not 2000"), std::string::npos) << applied.error().what;
}

TEST_F(CruConfiguration, LinksStayAsTheyAreWithoutGbt) {
  CruSettings s = some_settings();
  s.gbt_enabled = false;
  const auto found = compare(*cru_.card, s);
  ASSERT_TRUE(found);
  for (const Difference& difference : *found) EXPECT_FALSE(difference.name.starts_with("link ")) << difference.name;
}

TEST_F(CruConfiguration, ImpossibleSettingsAreRefusedBeforeAnythingIsRead) {
  CruSettings s;
  s.user_and_common_logic = true;
  EXPECT_EQ(apply(*cru_.card, s).error().code, "card.bad_configuration");
  s = {};
  s.trigger_window = 65536;
  EXPECT_EQ(compare(*cru_.card, s).error().code, "card.bad_configuration");
  s = {};
  s.links[4].fee_id = 0x10000;
  EXPECT_NE(compare(*cru_.card, s).error().what.find("link 4 fee_id"), std::string::npos);
  EXPECT_EQ(apply(*cru_.card, CrorcSettings{}).error().code, "card.wrong_type");
}

TEST(CrorcConfiguration, IsReadBackAsItWasApplied) {
  const test::TemporaryDirectory directory;
  ScriptedCrorc card(0, directory.file("card.lock"));
  card.f->after_write = [&](unsigned bar, std::uint64_t offset, std::uint32_t value) {
    if (offset == crorc::reg("i2c").offset && value == crorc::kQsfpEnable)
      card.f->words[{bar, crorc::reg("link_status").offset}] = crorc::kQsfpUp.mask();
  };
  CrorcSettings s;
  s.crorc_id = 0x55;
  s.dynamic_offset = true;
  s.time_frame_length = 64;
  const auto applied = apply(*card.card, s);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(std::get<CrorcSettings>(read_settings(*card.card).value()), s);
  EXPECT_TRUE(apply(*card.card, s)->empty());
  s.time_frame_length = 257;
  EXPECT_EQ(apply(*card.card, s).error().code, "card.bad_configuration");
}

TEST(FelixConfiguration, IsReadBackAsItWasApplied) {
  ScriptedFelix card;
  FelixSettings s;
  s.links[2] = {0x8000'0000'0000'0001, 3};
  const auto applied = apply(*card.card, s);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(*applied,
            (std::vector<Difference>{{"link 2 elinks", "0x0", "0x8000000000000001"}, {"link 2 channel", "0", "3"}}));
  EXPECT_EQ(std::get<FelixSettings>(read_settings(*card.card).value()), s);
}

TEST(SettingFields, AreWrittenAndReadAsText) {
  CruSettings from = some_settings();
  CruSettings to;
  for (const auto& field : cru_fields()) {
    ASSERT_TRUE(field.parse(to, field.text(from))) << field.key.name;
    EXPECT_FALSE(field.key.help.empty());
    EXPECT_FALSE(field.upstream.empty());
  }
  to.links = from.links;
  EXPECT_EQ(to, from);
}

TEST(SettingFields, RefuseWhatTheyCannotBe) {
  CruSettings s;
  const auto parse = [&](std::string_view name, std::string_view text) {
    for (const auto& field : cru_fields()) {
      if (field.key.name == name) return field.parse(s, text).has_value();
    }
    ADD_FAILURE() << name;
    return false;
  };
  EXPECT_TRUE(parse("clock", "TTC"));
  EXPECT_TRUE(parse("cru_id", "fff"));
  EXPECT_TRUE(parse("cru_id", "0xfff"));
  EXPECT_TRUE(parse("dynamic_offset", "True"));
  EXPECT_FALSE(parse("clock", "tt"));
  EXPECT_FALSE(parse("cru_id", "1000"));
  EXPECT_FALSE(parse("trigger_window", "70000"));
  EXPECT_FALSE(parse("trigger_window", "10x"));
  EXPECT_FALSE(parse("trigger_window", "-1"));
  EXPECT_FALSE(parse("trigger_window", ""));
  EXPECT_FALSE(parse("dynamic_offset", "1"));
}

}  // namespace
}  // namespace rodeo::card
