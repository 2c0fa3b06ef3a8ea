#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rodeo/settings.h"
#include "settings/key_value.h"
#include "settings/toml_file.h"

namespace {

using namespace rodeo;
using namespace std::chrono_literals;
using testing::ElementsAre;

enum class Mode : std::uint8_t { slow, fast };

struct Part {
  double share = 0.5;
  std::chrono::nanoseconds wait = 50ms;
};

struct Whole {
  bool on = true;
  std::uint8_t count = 7;
  std::int64_t offset = -1;
  std::uint64_t bytes = 64 << 10;
  double rate = 100e3;
  std::uint64_t late_ns = 1500;
  std::string name = "x";
  std::filesystem::path file = "data.raw";
  Mode mode = Mode::fast;
  bool full = false;
  std::vector<Fid> links = {};
  std::vector<std::string> cpus = {"1", "2"};
  std::vector<std::uint8_t> types = {130, 7};
  std::optional<std::uint16_t> elink;
  SourceId source = {0x610001};
  std::chrono::milliseconds timeout = 5s;
  Part part = {.share = 0.25};
};

Settings<Whole> table() {
  return {setting(&Whole::on, "on", "On."),
          setting(&Whole::count, "count", "A number."),
          setting(&Whole::offset, "offset", "May be negative.", {.minimum = -1}),
          setting(&Whole::bytes, "bytes", "A size.", {.unit = Unit::bytes}),
          setting(&Whole::rate, "rate", "A rate.", {.unit = Unit::hertz}),
          setting(&Whole::late_ns, "late", "A duration.", {.unit = Unit::nanoseconds}),
          setting(&Whole::name, "name", "A text.", {.required = true}),
          setting(&Whole::file, "file", "A path."),
          setting(&Whole::mode, "mode", {{"slow", Mode::slow}, {"fast", Mode::fast}}, "A choice."),
          setting(&Whole::full, "format", {{"gbt", false}, {"full", true}}, "Another."),
          setting(&Whole::links, "links", "FIDs."),
          setting(&Whole::cpus, "cpus", "Texts."),
          setting(&Whole::types, "types", "Numbers."),
          setting(&Whole::elink, "elink", "A number that there may not be.", {.maximum = 2047}),
          setting(&Whole::source, "source", "A source id."),
          setting(&Whole::timeout, "timeout", "A duration."),
          setting(&Whole::part, {setting(&Part::share, "share", "Of a part.", {.minimum = 0, .maximum = 1}),
                                 setting(&Part::wait, "wait", "Of a part.")})};
}

std::string fallbacks() {
  std::string all;
  for (const Key& key : table().keys()) all += key.name + "=" + (key.required ? "required" : key.fallback) + " ";
  return all;
}

TEST(StructSettings, HaveTheDefaultsOfTheStructAsOneWritesThem) {
  EXPECT_EQ(fallbacks(),
            "on=true count=7 offset=-1 bytes=64KiB rate=100kHz late=1500ns name=required file=data.raw mode=fast format=gbt "
            "links= "
            "cpus=1,2 types=130,7 elink=-1 source=0x00610001 timeout=5s share=0.25 wait=50ms ");
}

TEST(StructSettings, ReadTheirOwnDefaults) {
  Parameters parameters;
  for (const Key& key : table().keys()) {
    if (key.required) continue;
    const auto value = settings::default_value(key, key.name, "");
    ASSERT_TRUE(value) << value.error().message();
    parameters.set(key.name, *value);
  }
  parameters.set("name", std::string("y"));
  const Whole read = table().read(parameters);
  EXPECT_EQ(read.name, "y");
  EXPECT_EQ(read.count, 7);
  EXPECT_EQ(read.offset, -1);
  EXPECT_EQ(read.bytes, 65536U);
  EXPECT_EQ(read.rate, 100e3);
  EXPECT_EQ(read.late_ns, 1500U);
  EXPECT_EQ(read.mode, Mode::fast);
  EXPECT_FALSE(read.full);
  EXPECT_TRUE(read.links.empty());
  EXPECT_THAT(read.cpus, ElementsAre("1", "2"));
  EXPECT_THAT(read.types, ElementsAre(130, 7));
  EXPECT_EQ(read.elink, std::nullopt);
  EXPECT_EQ(read.source.value, 0x610001U);
  EXPECT_EQ(read.timeout, 5s);
  EXPECT_EQ(read.part.share, 0.25) << "the default of the whole, not that of the part";
  EXPECT_EQ(read.part.wait, 50ms);
}

TEST(StructSettings, FillTheStructWithWhatWasSaid) {
  Parameters parameters;
  for (const Setting<Whole>& one : table().list()) parameters.set(one.key.name, one.get(Whole{}));
  parameters.set("mode", std::string("slow"));
  parameters.set("format", std::string("full"));
  parameters.set("links", std::vector<std::uint64_t>{5, 6});
  parameters.set("wait", std::int64_t{1000});
  parameters.set("timeout", std::int64_t{1});
  parameters.set("elink", std::int64_t{0});
  parameters.set("types", std::vector<std::uint64_t>{9});
  const Whole read = table().read(parameters);
  EXPECT_EQ(read.mode, Mode::slow);
  EXPECT_TRUE(read.full);
  EXPECT_THAT(read.links, ElementsAre(Fid{5}, Fid{6}));
  EXPECT_EQ(read.part.wait, 1us);
  EXPECT_EQ(read.elink, 0);
  EXPECT_THAT(read.types, ElementsAre(9));
  EXPECT_EQ(read.timeout, 1ms) << "a short time-out does not become 0";
}

struct AsWritten : Part {
  int more = 3;
  AsWritten() { share = 0.75; }
};

TEST(StructSettings, OfABaseStandInTheTableOfTheStruct) {
  const Settings<AsWritten> table{setting(&Part::share, "share", "Of the base."),
                                  setting(&AsWritten::more, "more", "More.")};
  EXPECT_EQ(table.keys().front().fallback, "0.75") << "the default of the struct, not that of its base";
  Parameters parameters;
  parameters.set("share", 0.1);
  parameters.set("more", std::int64_t{4});
  const AsWritten read = table.read(parameters);
  EXPECT_EQ(read.share, 0.1);
  EXPECT_EQ(read.more, 4);
}

TEST(StructSettings, NumbersOfAListAreWrittenAsNumbersOrTexts) {
  const std::vector<Key> keys = table().keys();
  const Key& key = *std::ranges::find(keys, "types", &Key::name);
  const auto read = [&](std::string_view toml) {
    const settings::RawValue file = settings::parse_toml("types = " + std::string(toml), "run.toml").value();
    return settings::convert_value(key, *file.find("types"), "types", "");
  };
  const auto value = read(R"([130, "0x82", "7"])");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_THAT(std::get<std::vector<std::uint64_t>>(*value), ElementsAre(130, 130, 7));
  EXPECT_EQ(read("[256]").error().code, "config.out_of_range");
  EXPECT_EQ(read("[-1]").error().what, "types is -1, but must be 0 to 255");
  EXPECT_EQ(read(R"(["x"])").error().code, "config.bad_value");
  EXPECT_EQ(read("[1.5]").error().code, "config.wrong_type");
}

TEST(StructSettings, RefuseWhatTheirMemberCannotHold) {
  for (const Key& key : table().keys()) {
    if (key.name != "count") continue;
    settings::RawValue raw;
    raw.kind = settings::RawValue::Kind::integer;
    for (const std::int64_t value : {-1, 256}) {
      raw.integer = value;
      EXPECT_EQ(settings::convert_value(key, raw, "count", "").error().code, "config.out_of_range") << value;
    }
    raw.integer = 255;
    EXPECT_TRUE(settings::convert_value(key, raw, "count", ""));
  }
}

}  // namespace
