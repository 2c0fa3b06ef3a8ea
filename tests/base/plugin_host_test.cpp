#include "base/plugin_host.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace rodeo;
using namespace rodeo::base;
using testing::HasSubstr;

namespace {

class PluginHostTest : public testing::Test {
 protected:
  ComponentRegistry registry_;
  PluginHost host_{registry_, {TEST_PLUGINS}};
};

}  // namespace

TEST_F(PluginHostTest, FindsALibraryByNameAndRegistersWhatItBrings) {
  const auto plugin = host_.load("test_plugin_good");
  ASSERT_TRUE(plugin) << plugin.error().message();
  const auto extractor = registry_.make_extractor("sixteen_bits", Parameters{});
  ASSERT_TRUE(extractor) << extractor.error().message();
  EXPECT_EQ((*extractor)->fields().l1id_bits, 16);
  const std::byte chunk[] = {std::byte{0x34}, std::byte{0x12}};
  const ChunkRun run{.data = chunk, .size = 2, .stride = 2, .count = 1};
  std::uint32_t l1id = 0;
  std::uint16_t bcid = 0;
  EXPECT_EQ((*extractor)->extract(run, 0, 1, &l1id, &bcid), 1u);
  EXPECT_EQ(l1id, 0x1234u);
  EXPECT_EQ((*registry_.find(ComponentKind::extractor, "sixteen_bits"))->origin, plugin->path.string());
}

TEST_F(PluginHostTest, LoadsAPluginOnlyOnce) {
  ASSERT_TRUE(host_.load("test_plugin_good"));
  ASSERT_TRUE(host_.load("./libtest_plugin_good.so", TEST_PLUGINS));
  EXPECT_EQ(host_.loaded().size(), 1u);
}

TEST_F(PluginHostTest, ANameThatIsNowhereListsThePlacesSearched) {
  const auto plugin = host_.load("muon_chambers");
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, "base.plugin_not_found");
  EXPECT_THAT(plugin.error().what, HasSubstr(TEST_PLUGINS));
  EXPECT_THAT(plugin.error().what, HasSubstr("lib/rodeo/plugins"));
}

TEST_F(PluginHostTest, APathIsTakenAsItIs) {
  const auto plugin = host_.load("gone/libmuon.so", "/nowhere");
  ASSERT_FALSE(plugin);
  EXPECT_THAT(plugin.error().what, HasSubstr("/nowhere/gone/libmuon.so"));
}

TEST_F(PluginHostTest, AnotherAbiIsRefusedBeforeAnythingIsCalled) {
  const auto plugin = host_.load("test_plugin_wrong_abi");
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, "base.plugin_abi");
  EXPECT_THAT(plugin.error().what,
              HasSubstr(fmt::format("was built for ABI {}, this is ABI {}", kPluginAbi + 1, kPluginAbi)));
  EXPECT_THAT(plugin.error().next, HasSubstr("rebuild it against the installed headers"));
}

TEST_F(PluginHostTest, ALibraryThatIsNoPluginIsNamedAsSuch) {
  EXPECT_EQ(host_.load("test_plugin_not_a_plugin").error().code, "base.not_a_plugin");
  EXPECT_EQ(host_.load("/proc/self/maps").error().code, "base.plugin_unloadable");
}

TEST_F(PluginHostTest, ARegistrationThatThrowsLeavesNothingBehind) {
  const auto plugin = host_.load("test_plugin_throwing");
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, "base.registration_threw");
  EXPECT_THAT(plugin.error().what, HasSubstr("the calibration file is gone"));
  EXPECT_TRUE(registry_.components().empty());
}

TEST_F(PluginHostTest, TwoPluginsWithOneNameAreRefused) {
  ASSERT_TRUE(host_.load("test_plugin_good"));
  EXPECT_EQ(host_.load("test_plugin_duplicate").error().code, "base.duplicate_component");
}
