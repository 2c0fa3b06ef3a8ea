#include "settings/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

using namespace rodeo;
using namespace rodeo::settings;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A small system: a readout with a builder, ROBs and consumers; one consumer names a work.
class ConfigurationTest : public testing::Test {
 protected:
  ConfigurationTest() {
    const auto added = registry_.add_library("built in", [](Registry& registry) {
      const std::vector<Key> builder_keys = {
          {.name = "timeout",
           .type = KeyType::duration,
           .fallback = "10ms",
           .help = "How long an event stays open.",
           .minimum = 1000},
          {.name = "workers", .type = KeyType::integer, .fallback = "1", .help = "Threads.", .minimum = 1, .maximum = 64},
          {.name = "mode", .type = KeyType::choice, .fallback = "fast", .help = "How.", .choices = {"fast", "exact"}},
          {.name = "pool", .type = KeyType::size, .fallback = "2MiB", .help = "Memory.", .minimum = 0},
          {.name = "rate", .type = KeyType::rate, .fallback = "100kHz", .help = "Expected rate."},
          {.name = "directory", .type = KeyType::path, .fallback = "data", .help = "Where."},
          {.name = "fraction", .type = KeyType::real, .fallback = "0.5", .help = "Share."},
          {.name = "pinned", .type = KeyType::boolean, .fallback = "false", .help = "Pin."}};
      registry.add_builder({.name = "gbt", .help = "slices", .keys = builder_keys}, BuilderFactory{});
      registry.add_builder({.name = "full", .help = "no copies"}, BuilderFactory{});
      registry.add_consumer(
          {.name = "processor", .help = "works", .keys = {{.name = "work", .fallback = "release", .help = "Which."}}},
          ConsumerFactory{});
      registry.add_consumer({.name = "file_writer", .help = "writes"}, ConsumerFactory{});
      registry.add_work({.name = "release", .help = "nothing"}, WorkFactory{});
      registry.add_work(
          {.name = "verify", .help = "proves", .keys = {{.name = "seed", .type = KeyType::integer, .fallback = "1"}}},
          WorkFactory{});
    });
    EXPECT_TRUE(added);
    declarations_ = {
        {.path = "readout",
         .help = "A process.",
         .keys = {{.name = "plugins", .type = KeyType::text_list, .fallback = "[]"}}},
        {.path = "readout.builder", .help = "Builds.", .component = ComponentKind::builder, .default_type = "gbt"},
        {.path = "readout.policy",
         .help = "When links leave.",
         .keys = {{.name = "after", .type = KeyType::integer, .fallback = "0"}},
         .optional = true},
        {.path = "readout.rob",
         .help = "A ROB.",
         .keys = {{.name = "source_id", .type = KeyType::source_id, .help = "Its id.", .required = true},
                  {.name = "links", .type = KeyType::fid_list, .fallback = "[]"}},
         .form = TableDeclaration::Form::array},
        {.path = "readout.consumer",
         .help = "Takes fragments.",
         .keys = {{.name = "name", .fallback = "{type}"}},
         .form = TableDeclaration::Form::array,
         .component = ComponentKind::consumer,
         .joined = {{"work", ComponentKind::work}}}};
  }

  std::expected<Configuration, ConfigurationErrors> parse(std::string_view text, std::vector<std::string> overrides = {}) {
    return load_configuration({.file = "/etc/rodeo/run.toml", .text = std::string(text), .overrides = std::move(overrides)},
                              declarations_, registry_, plugins_);
  }

  /// The messages of a configuration that must be refused.
  std::vector<std::string> errors(std::string_view text, std::vector<std::string> overrides = {}) {
    const auto configuration = parse(text, std::move(overrides));
    EXPECT_FALSE(configuration.has_value());
    std::vector<std::string> messages;
    if (!configuration) {
      for (const Error& error : configuration.error()) messages.push_back(error.message());
    }
    return messages;
  }

  base::ComponentRegistry registry_;
  base::PluginHost plugins_{registry_, {TEST_PLUGINS}};
  std::vector<TableDeclaration> declarations_;
};

}  // namespace

TEST_F(ConfigurationTest, WhatIsNotGivenHasItsDefault) {
  const auto configuration = parse("");
  ASSERT_TRUE(configuration);
  const Table& builder = *configuration->table("readout.builder");
  EXPECT_EQ(builder.type(), "gbt");
  EXPECT_EQ(builder.parameters().duration("timeout"), 10ms);
  EXPECT_EQ(builder.parameters().bytes("pool"), 2u << 20);
  EXPECT_FALSE(builder.given("timeout"));
  EXPECT_EQ(configuration->table("readout.policy"), nullptr);
  EXPECT_TRUE(configuration->table("readout")->tables("rob").empty());
}

TEST_F(ConfigurationTest, ReadsEveryTypeOfKey) {
  const auto configuration = parse(R"(
[readout.builder]
timeout = "20ms"
workers = 4
mode = "exact"
pool = "5MB"
rate = "1MHz"
directory = "out"
fraction = 1
pinned = true
[[readout.rob]]
source_id = "0x00610001"
links = ["0x1000000000540000", "0x1000000000550000+2"]
[[readout.rob]]
source_id = 0x00610002
)");
  ASSERT_TRUE(configuration) << configuration.error().front().message();
  const Parameters& builder = configuration->table("readout.builder")->parameters();
  EXPECT_EQ(builder.duration("timeout"), 20ms);
  EXPECT_EQ(builder.integer("workers"), 4);
  EXPECT_EQ(builder.text("mode"), "exact");
  EXPECT_EQ(builder.bytes("pool"), 5'000'000u);
  EXPECT_EQ(builder.rate_hz("rate"), 1e6);
  EXPECT_EQ(builder.text("directory"), "/etc/rodeo/out");
  EXPECT_EQ(builder.real("fraction"), 1.0);
  EXPECT_TRUE(builder.boolean("pinned"));
  const auto robs = configuration->table("readout")->tables("rob");
  ASSERT_EQ(robs.size(), 2u);
  EXPECT_EQ(robs[0].parameters().id("source_id"), 0x610001u);
  EXPECT_THAT(robs[0].parameters().fids("links"),
              ElementsAre(0x1000000000540000u, 0x1000000000550000u, 0x1000000000560000u));
  EXPECT_EQ(robs[1].parameters().id("source_id"), 0x610002u);
  EXPECT_EQ(robs[1].path(), "readout.rob[1]");
  EXPECT_EQ(robs[1].where(), "/etc/rodeo/run.toml:14:1");
}

TEST_F(ConfigurationTest, AnUnknownKeyNamesItsPlaceAndWhatWasMeant) {
  EXPECT_THAT(
      errors("[readout.builder]\n\n  time_out = \"10ms\"\n"),
      ElementsAre(
          "error[config.unknown_key]: /etc/rodeo/run.toml:3:3: readout.builder.time_out is not a known key of `gbt`\n"
          "  did you mean `timeout`? (duration, default 10ms)    rodeo explain readout.builder.timeout"));
}

TEST_F(ConfigurationTest, AnUnknownTableIsRefusedToo) {
  EXPECT_THAT(errors("[readout.bilder]\n"),
              ElementsAre(HasSubstr("readout.bilder is not a known table\n  did you mean `builder`?")));
  EXPECT_THAT(errors("colour = 1"), ElementsAre(HasSubstr("there are: readout")));
}

TEST_F(ConfigurationTest, AllErrorsOfAFileAreToldInItsOrder) {
  EXPECT_THAT(
      errors(R"([readout.builder]
workers = 0
timeout = 10
mode = "exat"
pool = "5 MBit"
[[readout.rob]]
links = ["0x12"]
[[readout.consumer]]
type = "file_riter"
)"),
      ElementsAre(
          HasSubstr("run.toml:2:11: readout.builder.workers is 0, but must be 1 to 64"),
          HasSubstr("run.toml:3:11: readout.builder.timeout must be a duration such as \"10ms\", not the integer 10"),
          HasSubstr(
              "run.toml:4:8: readout.builder.mode is \"exat\", but must be one of: fast, exact\n  did you mean `exact`?"),
          HasSubstr("run.toml:5:8: readout.builder.pool: \"5 MBit\" is not a size"),
          HasSubstr("run.toml:6:1: readout.rob[0].source_id is required"),
          HasSubstr("run.toml:7:9: readout.rob[0].links: `0x12` has version 0"),
          HasSubstr("run.toml:9:8: readout.consumer[0].type: there is no consumer called `file_riter`\n"
                    "  did you mean `file_writer`?")));
}

TEST_F(ConfigurationTest, KeysOfAnotherComponentAreUnknown) {
  EXPECT_THAT(errors("[readout.builder]\ntype = \"full\"\nworkers = 2\n"),
              ElementsAre(HasSubstr("readout.builder.workers is not a known key of `full`")));
}

TEST_F(ConfigurationTest, AMissingTypeListsThoseThereAre) {
  EXPECT_THAT(errors("[[readout.consumer]]\n"), ElementsAre(HasSubstr("give one of: file_writer, processor")));
}

TEST_F(ConfigurationTest, AWorkBringsItsKeysIntoTheTableThatNamesIt) {
  const auto configuration = parse("[[readout.consumer]]\ntype = \"processor\"\nwork = \"verify\"\nseed = 7\n");
  ASSERT_TRUE(configuration) << configuration.error().front().message();
  const Table& processor = configuration->table("readout")->tables("consumer")[0];
  EXPECT_EQ(processor.parameters().integer("seed"), 7);
  EXPECT_EQ(processor.parameters().text("name"), "processor");
  EXPECT_THAT(errors("[[readout.consumer]]\ntype = \"processor\"\nseed = 7\n"),
              ElementsAre(HasSubstr("seed is not a known key")));
  EXPECT_THAT(errors("[[readout.consumer]]\ntype = \"processor\"\nwork = \"verfy\"\n"),
              ElementsAre(HasSubstr("run.toml:3:8: readout.consumer[0].work: there is no work called `verfy`")));
}

TEST_F(ConfigurationTest, VariablesThatSetNothingAreRefusedWithTheNearest) {
  const auto refused = [&](const char* name) {
    EXPECT_EQ(setenv(name, "30ms", 1), 0);
    const auto configuration = parse("[readout.builder]\n");
    unsetenv(name);
    return configuration ? std::string() : configuration.error().front().where + ": " + configuration.error().front().next;
  };
  EXPECT_EQ(refused("RODEO_READOUT_BUILDER_TIMEUOT"),
            "RODEO_READOUT_BUILDER_TIMEUOT: did you mean `RODEO_READOUT_BUILDER_TIMEOUT`?");
  EXPECT_EQ(refused("RODEO_REDOUT_BUILDER_TIMEOUT"),
            "RODEO_REDOUT_BUILDER_TIMEOUT: did you mean `RODEO_READOUT_BUILDER_TIMEOUT`?");
  EXPECT_NE(refused("RODEO_READOUT_ROB_0_SOURCE_ID"), "");  // this ROB does not exist
  EXPECT_EQ(refused("RODEO_LOG"), "");
  EXPECT_EQ(refused("RODEO_SOMETHING_ELSE"), "");
}

TEST_F(ConfigurationTest, ASizeBelowZeroIsCalledSo) {
  EXPECT_THAT(errors("[readout.builder]\npool = -4\n")[0], testing::HasSubstr("readout.builder.pool is -4 B, but must be"));
}

TEST_F(ConfigurationTest, FlagsAreStrongerThanTheEnvironmentAndThatThanTheFile) {
  ASSERT_EQ(setenv("RODEO_READOUT_BUILDER_TIMEOUT", "30ms", 1), 0);
  ASSERT_EQ(setenv("RODEO_READOUT_ROB_0_SOURCE_ID", "0x00620000", 1), 0);
  const std::string_view file = "[readout.builder]\ntimeout = \"20ms\"\nworkers = 2\n[[readout.rob]]\nsource_id = 1\n";
  const auto environment = parse(file);
  const auto flag = parse(file, {"readout.builder.timeout=40ms", "readout.rob.0.links=0x1000000000540000+2"});
  unsetenv("RODEO_READOUT_BUILDER_TIMEOUT");
  unsetenv("RODEO_READOUT_ROB_0_SOURCE_ID");
  ASSERT_TRUE(environment && flag);
  EXPECT_EQ(environment->table("readout.builder")->parameters().duration("timeout"), 30ms);
  EXPECT_EQ(environment->table("readout")->tables("rob")[0].parameters().id("source_id"), 0x620000u);
  EXPECT_EQ(flag->table("readout.builder")->parameters().duration("timeout"), 40ms);
  EXPECT_EQ(flag->table("readout")->tables("rob")[0].parameters().fids("links").size(), 2u);

  std::vector<std::string> origins;
  for (const ConfiguredValue& setting : flag->table("readout.builder")->settings()) {
    if (setting.origin != Origin::fallback) {
      origins.push_back(setting.key.name + " " + std::string(origin_name(setting.origin)) + " " + setting.where);
    }
  }
  EXPECT_THAT(origins, ElementsAre("timeout flag --set", "workers file /etc/rodeo/run.toml:3:11"));
}

TEST_F(ConfigurationTest, AnOverrideMayBeWrittenAsInAFileAndNameATableOfAnArray) {
  const auto read = [&](std::vector<std::string> overrides) {
    const std::string text =
        "[[readout.rob]]\nsource_id = 1\n[[readout.consumer]]\ntype = \"processor\"\nname = \"first\"\nwork = \"verify\"\n"
        "[[readout.consumer]]\ntype = \"processor\"\nname = \"second\"\nwork = \"verify\"\n[[readout.consumer]]\ntype = "
        "\"file_writer\"\n";
    return load_configuration({.file = "run.toml", .text = text, .overrides = std::move(overrides), .environment = false},
                              declarations_, registry_, plugins_);
  };
  const auto good =
      read({R"(readout.rob[0].links=["0x1000000000000000", "0x1000000000010000"])", R"(readout.builder.timeout="20ms")",
            "readout.consumer.second.seed=7", "readout.consumer[first].seed=5", "readout.consumer.file_writer.name=out"});
  ASSERT_TRUE(good) << good.error().front().message();
  const Table& readout = *good->table("readout");
  EXPECT_EQ(readout.tables("rob")[0].parameters().fids("links").size(), 2U);
  EXPECT_EQ(readout.table("builder")->parameters().duration("timeout"), 20ms);
  EXPECT_EQ(readout.tables("consumer")[0].parameters().integer("seed"), 5);
  EXPECT_EQ(readout.tables("consumer")[1].parameters().integer("seed"), 7);
  EXPECT_EQ(readout.tables("consumer")[2].parameters().text("name"), "out");
  EXPECT_FALSE(read({"readout.consumer.processor.seed=7"})) << "there are two consumers";
  EXPECT_FALSE(read({"readout.consumer.third.seed=7"}));
}

TEST_F(ConfigurationTest, AnOverrideMustFitLikeAnyOtherValue) {
  EXPECT_THAT(errors("", {"readout.builder.timout=20ms"}),
              ElementsAre(HasSubstr("--set: readout.builder.timout is not a known key\n"
                                    "  did you mean `readout.builder.timeout`?")));
  EXPECT_THAT(errors("", {"readout.builder.workers=many"}),
              ElementsAre(HasSubstr("--set: readout.builder.workers must be an integer")));
  EXPECT_THAT(errors("", {"readout.builder.workers"}), ElementsAre(HasSubstr("is not KEY=VALUE")));
  EXPECT_THAT(errors("", {"readout.rob[0].source_id=1"}),
              ElementsAre(HasSubstr("readout.rob[0].source_id is not a known key")));
}

TEST_F(ConfigurationTest, ATableInPlaceOfAnArrayIsExplained) {
  EXPECT_THAT(errors("[readout.rob]\nsource_id = 1\n"),
              ElementsAre(HasSubstr("write [[readout.rob]] on a line of its own")));
  EXPECT_THAT(errors("readout = 3\n"), ElementsAre(HasSubstr("readout must be a table, not the integer 3")));
}

TEST_F(ConfigurationTest, WhatIsNoTomlIsRefusedWithItsPlace) {
  EXPECT_THAT(errors("[readout.builder]\ntimeout = \n"),
              ElementsAre(HasSubstr("error[config.syntax]: /etc/rodeo/run.toml:2:")));
  EXPECT_THAT(errors("[readout.builder]\n[readout.builder]\n"), ElementsAre(HasSubstr("/etc/rodeo/run.toml:2:")));
  EXPECT_THAT(errors("a = \xff\n"), ElementsAre(HasSubstr("config.syntax")));
}

TEST_F(ConfigurationTest, AFileThatCannotBeReadSaysWhy) {
  const auto missing = load_configuration({.file = "/nowhere/run.toml"}, declarations_, registry_, plugins_);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().front().message(),
              HasSubstr("/nowhere/run.toml: cannot open the file: No such file or directory"));
  const auto directory = load_configuration({.file = "/"}, declarations_, registry_, plugins_);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().front().code, "config.unreadable");
}

TEST_F(ConfigurationTest, PluginsAreLoadedBeforeTheirKeysAreNeeded) {
  declarations_.push_back({.path = "readout.extractor", .help = "Reads.", .component = ComponentKind::extractor});
  EXPECT_THAT(errors("[readout.extractor]\ntype = \"sixteen_bits\"\n"),
              ElementsAre(HasSubstr("no extractor is registered")));
  const auto configuration =
      parse("[readout]\nplugins = [\"test_plugin_good\"]\n[readout.extractor]\ntype = \"sixteen_bits\"\n");
  ASSERT_TRUE(configuration) << configuration.error().front().message();
  EXPECT_EQ(configuration->table("readout.extractor")->type(), "sixteen_bits");
}

TEST_F(ConfigurationTest, APluginThatCannotBeLoadedHasItsPlaceInTheFile) {
  EXPECT_THAT(errors("[readout]\nplugins = [\"test_plugin_wrong_abi\"]\n"),
              ElementsAre(HasSubstr("error[base.plugin_abi]: /etc/rodeo/run.toml:2:11: ")));
}

TEST_F(ConfigurationTest, ReadingAnUndeclaredTableIsAMistakeInTheProgram) {
  const auto configuration = parse("");
  ASSERT_TRUE(configuration);
  EXPECT_THROW(configuration->table("readout.farm"), std::logic_error);
  EXPECT_THROW(configuration->table("readout.rob"), std::logic_error);
}

TEST_F(ConfigurationTest, AnyBytesGiveAnErrorOrAConfiguration) {
  const std::string seed =
      "[readout.builder]\ntimeout = \"20ms\"\n[[readout.rob]]\nsource_id = 1\nlinks = [\"0x1000000000540000+2\"]\n";
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text = seed;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525u + 1013904223u;
      text[(state >> 8) % text.size()] = static_cast<char>(state >> 24);
    }
    const auto configuration = parse(text);
    EXPECT_TRUE(configuration || !configuration.error().empty());
  }
}
