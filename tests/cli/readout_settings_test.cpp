// From a configuration to the plain settings of a readout: derived settings, and refusals before the start.
#include "cli/system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rodeo::cli {
namespace {

std::string configuration(const std::string& input, const std::string& builder = "", const std::string& processor = "") {
  return "[readout.input]\ntype = \"generator\"\nlinks = 4\n" + input + "\n[readout.builder]\n" + builder +
         "\n[[readout.rob]]\nsource_id = \"0x610001\"\n[[readout.consumer]]\ntype = \"processor\"\nwork = \"verify\"\n" +
         processor;
}

std::expected<readout::ReadoutConfiguration, ConfigurationErrors> load(const std::string& text) {
  return load_readout({.file = "run.toml", .text = text, .environment = false});
}

std::string first_code(const std::string& text) {
  const auto loaded = load(text);
  return loaded ? "" : loaded.error().front().code;
}

TEST(ReadoutSettings, ExtractorAndVerifierFollowTheGeneratorUnlessTheyAreTold) {
  const auto loaded = load(configuration("l1id_bits = 16\nseed = 7\ncrc = true\n"));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->settings.extractor.parameters.integer("l1id_bits"), 16);
  const Parameters& verifier = loaded->settings.consumers[0].parameters;
  EXPECT_EQ(verifier.integer("l1id_bits"), 16);
  EXPECT_EQ(verifier.integer("seed"), 7);
  EXPECT_TRUE(verifier.boolean("crc"));
  const auto told = load(configuration("seed = 7\nl1id_bits = 16\n", "", "seed = 8\n"));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->settings.consumers[0].parameters.integer("seed"), 8);
}

TEST(ReadoutSettings, IdsOfOtherWidthsThanTheGeneratorsAreRefused) {
  const auto with_extractor = [](int sent, int read) {
    return configuration("l1id_bits = " + std::to_string(sent) + "\n") +
           "\n[readout.extractor]\nl1id_bits = " + std::to_string(read) + "\n";
  };
  EXPECT_EQ(first_code(with_extractor(8, 16)), "readout.l1id_bits");
  EXPECT_EQ(first_code(with_extractor(16, 8)), "");
  EXPECT_EQ(first_code(with_extractor(16, 16)), "");
  EXPECT_EQ(first_code(configuration("l1id_bits = 16\n", "", "l1id_bits = 24\n")), "readout.l1id_bits");
  EXPECT_EQ(first_code(configuration("l1id_bits = 16\n", "", "l1id_bits = 8\n")), "readout.l1id_bits");
}

TEST(ReadoutSettings, ACounterOf32BitsIsFollowedAsNarrowIdsAre) {
  const auto loaded = load(configuration("l1id_counter = 32\n"));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->settings.extractor.parameters.integer("l1id_counter"), 32);
  EXPECT_EQ(loaded->settings.consumers[0].parameters.integer("l1id_counter"), 32);
  EXPECT_EQ(loaded->settings.run.provable->text(), "Rodeo-Payload=provable seed=1 crc=0 l1id_counter=32");
  EXPECT_EQ(first_code(configuration("", "", "l1id_counter = 32\n")), "readout.l1id_bits");
  EXPECT_EQ(first_code(configuration("") + "\n[readout.extractor]\nl1id_counter = 32\n"), "readout.l1id_bits");
}

TEST(ReadoutSettings, FilesThatNoEventFitsIntoAreRefused) {
  const auto with_files_of = [](const char* size) {
    return configuration("chunk_bytes = 1000\n") + "[[readout.consumer]]\ntype = \"file_writer\"\nmax_file_size = " + size +
           "\n";
  };
  EXPECT_EQ(first_code(with_files_of("1")), "readout.small_files");
  EXPECT_EQ(first_code(with_files_of("4000")), "readout.small_files") << "four chunks of 1000 bytes are larger";
  EXPECT_EQ(first_code(with_files_of("10000")), "");
  EXPECT_EQ(first_code(with_files_of("0")), "") << "no limit";
  EXPECT_EQ(first_code(with_files_of("4000\ncompression = 1")), "") << "zlib may make events small enough";
  EXPECT_EQ(first_code(with_files_of("1\ncompression = 1")), "readout.small_files");
}

TEST(ReadoutSettings, AddressesThatCannotBeAreRefusedAtTheirPlace) {
  const std::string rob = "[[readout.rob]]\nsource_id = \"0x610001\"\n";
  const auto errors = load("[readout.input]\ntype = \"card\"\ncards = [\"#0\", \"bogus\"]\n" + rob);
  ASSERT_FALSE(errors);
  EXPECT_EQ(errors.error().front().code, "card.bad_id");
  EXPECT_EQ(errors.error().front().where, "run.toml:3:9");
  EXPECT_FALSE(errors.error().front().next.empty());
  EXPECT_EQ(first_code("[readout.input]\ntype = \"card\"\ncards = []\n" + rob), "readout.no_cards");
  EXPECT_EQ(first_code("[readout.input]\ntype = \"card\"\ncards = [\"#0\", \"3b:00.0\", \"0233:1\"]\n" + rob), "");
  for (const char* listen : {"127.0.0.1", "127.0.0.1:99999", "localhost:80", ":80", "127.0.0.1:-1"}) {
    const auto refused = load(configuration("") + "[readout.metrics]\nlisten = \"" + listen + "\"\n");
    ASSERT_FALSE(refused) << listen;
    EXPECT_EQ(refused.error().front().code, "process.http");
    EXPECT_NE(refused.error().front().where.find("run.toml:"), std::string::npos);
  }
}

TEST(ReadoutSettings, ARunWithoutANumberTakesTheNextThatNoFileHas) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("numbers" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const std::string writer = "[[readout.consumer]]\ntype = \"file_writer\"\ndirectory = \"" + directory.string() + "\"\n";
  const auto number_of = [&](const std::string& run) {
    return load(configuration("") + writer + run)->settings.run.run_number;
  };
  EXPECT_EQ(number_of(""), 1U);
  std::ofstream(directory / "rodeo.00000041.calibration_readout.daq.RAW._lb0001._x._0001.writing") << "";
  std::ofstream(directory / "other.00000099.calibration_readout.daq.RAW._lb0001._x._0001.data") << "";
  std::ofstream(directory / "rodeo.00000098.notes") << "";
  EXPECT_EQ(number_of(""), 42U);
  EXPECT_EQ(number_of("[run]\nproject = \"other\"\n"), 100U);
  EXPECT_EQ(number_of("[run]\nnumber = 7\n"), 7U);
  std::filesystem::remove_all(directory);
}

TEST(ReadoutSettings, AFileMarkedAsProvableSaysHowManyBitsItsIdsHave) {
  const auto loaded = load(
      "[readout.input]\ntype = \"file\"\nfile = \"x\"\n[[readout.rob]]\nsource_id = \"0x610001\"\n"
      "[[readout.consumer]]\ntype = \"processor\"\nwork = \"verify\"\nl1id_bits = 8\n");
  ASSERT_TRUE(loaded);
  ASSERT_TRUE(loaded->settings.run.provable.has_value());
  EXPECT_EQ(loaded->settings.run.provable->l1id_bits, 8U);
}

TEST(ReadoutSettings, ResetsThatNobodyCanTellAreRefused) {
  EXPECT_EQ(first_code(configuration("l1id_bits = 8\necr_triggers = 300\n")), "readout.untold_resets");
  EXPECT_EQ(first_code(configuration("l1id_bits = 8\necr_period = \"1s\"\n")), "readout.untold_resets");
  EXPECT_EQ(first_code(configuration("l1id_bits = 8\necr_triggers = 300\n", "trigger_list = true\n")), "");
  EXPECT_EQ(first_code(configuration("l1id_bits = 8\n")), "");
  EXPECT_EQ(first_code(configuration("l1id_bits = 16\necr_triggers = 300\n")), "");
  const auto full = [](const std::string& input, const std::string& builder = "") {
    return first_code(configuration(input + "ecr_triggers = 300\ngroups = 1\n", "type = \"full\"\n" + builder));
  };
  EXPECT_EQ(full("l1id_bits = 8\n"), "readout.untold_resets");
  EXPECT_EQ(full("l1id_bits = 8\n", "trigger_list = true\n"), "");
  EXPECT_EQ(full("l1id_bits = 16\n"), "");
  EXPECT_EQ(first_code(configuration("ecr_triggers = 300\ngroups = 1\n", "type = \"full\"\n")), "");
}

TEST(ReadoutCheck, ReportsAnExtractorThatTheReadoutWouldRefuse) {
  readout::Library library;
  ASSERT_TRUE(library.registry().add_library("a library", [](Registry& registry) {
    registry.add_extractor(
        {.name = "keyed", .help = "L1 ids", .keys = {{.name = "bits", .type = KeyType::integer, .fallback = "16"}}},
        [](const Parameters& keys) -> std::unique_ptr<TriggerExtractor> {
          const TriggerFields fields{.l1id_bits = static_cast<std::uint8_t>(keys.integer("bits"))};
          return std::make_unique<detail::ExtractorOfFunction>(fields, [](auto) { return TriggerInfo{}; });
        });
  }));
  const auto code = [&](const std::string& builder, const std::string& bits) {
    const std::string text = configuration("", builder) + "\n[readout.extractor]\ntype = \"keyed\"\nbits = " + bits + "\n";
    const auto read = settings::load_configuration({.file = "run.toml", .text = text, .environment = false}, system_tables(),
                                                   library.registry(), library.plugins());
    if (!read) return read.error().front().code;
    const ConfigurationErrors errors = readout::check_readout(*read, library.registry());
    return errors.empty() ? std::string() : errors.front().code;
  };
  EXPECT_EQ(code("", "16"), "");
  EXPECT_EQ(code("", "33"), "base.bad_trigger_fields");
  EXPECT_EQ(code("", "28"), "");
  EXPECT_EQ(code("trigger_list = true\n", "28"), "readout.wide_ids_listed");
}

TEST(ReadoutSettings, ChunksThatDoNotFitIntoSlicesAreRefusedWithWhatToSet) {
  const auto loaded = load(configuration("chunk_bytes = \"1MiB\"\n"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().front().code, "readout.small_slices");
  EXPECT_NE(loaded.error().front().next.find("readout.builder.chunk_size = 1048576"), std::string::npos);
  EXPECT_EQ(
      first_code(configuration("chunk_bytes = \"1MiB\"\n", "chunk_size = \"1MiB\"\nwindow = 256\nmax_extensions = 0\n")),
      "");
  EXPECT_EQ(first_code(configuration("chunk_bytes = 1000\n", "max_extensions = 0\n")), "readout.small_slices");
  EXPECT_EQ(first_code(configuration("chunk_bytes = 1000\ngroups = 1\n", "type = \"full\"\n")), "");
}

TEST(ReadoutSettings, ChunksOfAnEmulatedCardThatDoNotFitIntoSlicesAreRefused) {
  const auto code = [](const std::string& card, const std::string& input, const std::string& builder) {
    return first_code(
        "[emulator]\n[[emulator.card]]\naddress = \"0000:3b:00.0\"\n" + card +
        "[readout]\n[readout.input]\ntype = \"card\"\ncards = [\"0000:3b:00.0\"]\n" + input +
        "[readout.builder]\ntype = \"gbt\"\ntimeout = \"1s\"\nwindow = 256\n" + builder +
        "[readout.extractor]\ntype = \"rdh\"\norbits_per_frame = 8\n[[readout.rob]]\nsource_id = \"0x00610001\"\n");
  };
  const std::string cru = "type = \"cru\"\nframe_size = \"12KiB\"\n";
  EXPECT_EQ(code(cru, "orbits_per_frame = 8\n", "chunk_size = 12000\n"), "readout.small_slices");
  EXPECT_EQ(code(cru, "orbits_per_frame = 8\n", "chunk_size = \"208KiB\"\n"), "");
  EXPECT_EQ(code(cru, "orbits_per_frame = 1\n", "chunk_size = 13000\n"), "");
  EXPECT_EQ(code("type = \"felix\"\nchunk_size = 5000\n", "", "chunk_size = 64\n"), "readout.small_slices");
  EXPECT_EQ(code("type = \"felix\"\nchunk_size = 5000\n", "", "chunk_size = 5000\n"), "");
}

TEST(ReadoutSettings, ResetsOfAnEmulatedCardThatNobodyCanTellAreRefused) {
  const auto with = [](const std::string& bits, const std::string& builder, const std::string& trigger) {
    const auto loaded =
        load("[readout.input]\ntype = \"card\"\ncards = [\"3b:00.0\"]\n[readout.extractor]\nl1id_bits = " + bits +
             "\n[readout.builder]\n" + builder + "[[readout.rob]]\nsource_id = \"0x610001\"\n[[emulator.card]]\n" +
             "address = \"3b:00.0\"\ntype = \"felix\"\n[emulator.trigger]\n" + trigger);
    return loaded ? "" : loaded.error().front().code;
  };
  const std::string resets = "rate = \"1kHz\"\necr_triggers = 300\n";
  EXPECT_EQ(with("8", "", resets), "readout.untold_resets");
  EXPECT_EQ(with("8", "", "rate = \"1kHz\"\n"), "");
  EXPECT_EQ(with("16", "", resets), "");
}

TEST(ReadoutSettings, ATimeoutThatIsOverBeforeACardSendsItsBlocksIsRefused) {
  const auto with = [](const std::string& timeout, const std::string& card) {
    return load(
        "[readout.input]\ntype = \"card\"\ncards = [\"3b:00.0\"]\n[readout.builder]\nchunk_size = \"70KiB\"\ntimeout = \"" +
        timeout + "\"\n[[readout.rob]]\nsource_id = \"0x610001\"\n[[emulator.card]]\naddress = \"3b:00.0\"\n" + card);
  };
  const auto loaded = with("10ms", "type = \"felix\"\nflush = \"10ms\"\n");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().front().code, "readout.timeout_before_flush");
  EXPECT_NE(loaded.error().front().next.find("longer than 10 ms"), std::string::npos) << loaded.error().front().next;
  EXPECT_TRUE(with("10ms", "type = \"felix\"\n"));
  EXPECT_TRUE(with("11ms", "type = \"felix\"\nflush = \"10ms\"\n"));
  EXPECT_TRUE(with("10ms", "type = \"cru\"\nflush = \"10ms\"\n")) << "a CRU has no blocks";
}

TEST(ReadoutSettings, ATimeoutThatIsOverBeforeARouterSendsItsPagesIsRefused) {
  const auto with = [](const std::string& flush) {
    return load(
        "[readout.input]\ntype = \"network\"\nbus = \"bus\"\n[readout.builder]\ntimeout = \"10ms\"\n[[readout.rob]]\n"
        "source_id = \"0x610001\"\n[router]\nflush = \"" +
        flush + "\"\n[router.input]\ntype = \"generator\"\n");
  };
  const auto loaded = with("10ms");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().front().code, "readout.timeout_before_flush");
  const auto well = with("9ms");
  EXPECT_TRUE(well) << well.error().front().what;
}

TEST(ReadoutSettings, LinksThatDoNotBringEventsAsTheBuilderTakesThemAreRefused) {
  const auto code = [](const std::string& groups, const std::string& builder, std::vector<std::string> rob = {}) {
    const auto loaded = load_readout({.file = "run.toml",
                                      .text = configuration("groups = " + groups + "\n", "type = \"" + builder + "\"\n"),
                                      .overrides = std::move(rob),
                                      .environment = false});
    return loaded ? "" : loaded.error().front().code;
  };
  const std::string wrong = "readout.not_in_turn";
  // Four links in three arrangements: each link has every event; two pairs of links take turns; all four links take turns.
  EXPECT_EQ(code("0", "gbt"), "");
  EXPECT_EQ(code("4", "gbt"), "") << "a group of one link has every event";
  EXPECT_EQ(code("2", "gbt"), wrong);
  EXPECT_EQ(code("0", "full"), wrong);
  EXPECT_EQ(code("0", "full", {"readout.rob[0].links_per_group=2"}), wrong);
  EXPECT_EQ(code("0", "full", {"readout.rob[0].links_per_group=1"}), "");
  EXPECT_EQ(code("1", "full"), "");
  EXPECT_EQ(code("1", "full", {"readout.rob[0].links_per_group=2"}), wrong) << "each would lack half of the events";
  EXPECT_EQ(code("2", "full"), wrong) << "each event would come twice";
  EXPECT_EQ(code("2", "full", {"readout.rob[0].links_per_group=2"}), "");
  const std::string pair = "readout.rob[0].links=[\"0x1000000000000000\", ";
  EXPECT_EQ(code("2", "full", {pair + "\"0x1000000000010000\"]"}), "") << "one of the two groups";
  EXPECT_EQ(code("2", "full", {pair + "\"0x1000000000020000\"]"}), wrong) << "one link of each";
}

TEST(ReadoutSettings, AnEmptyListOfLinksIsNoListLeftOut) {
  EXPECT_EQ(first_code(configuration("fids = []\n")), "readout.no_links");
  const auto loaded = load_readout(
      {.file = "run.toml", .text = configuration(""), .overrides = {"readout.rob[0].links=[]"}, .environment = false});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().front().code, "readout.no_links");
}

TEST(ReadoutSettings, ConsumersOfOneTypeAreNumberedAndNamesAreTheirOwn) {
  const std::string another = "[[readout.consumer]]\ntype = \"processor\"\nwork = \"read\"\n";
  const auto loaded = load(configuration("") + another + another + "name = \"processor_2\"\n");
  ASSERT_TRUE(loaded) << loaded.error().front().what;
  ASSERT_EQ(loaded->settings.consumers.size(), 3U);
  EXPECT_EQ(loaded->settings.consumers[0].name, "processor");
  EXPECT_EQ(loaded->settings.consumers[1].name, "processor_3");
  EXPECT_EQ(loaded->settings.consumers[2].name, "processor_2");
  EXPECT_EQ(first_code(configuration("") + another + "name = \"a\"\n" + another + "name = \"a\"\n"),
            "readout.duplicate_consumer");
}

TEST(ReadoutSettings, TwoConsumersDoNotShareAnOutput) {
  const std::string sampler = "[[readout.consumer]]\ntype = \"event_sampler\"\n";
  const std::string writer = "[[readout.consumer]]\ntype = \"file_writer\"\n";
  EXPECT_EQ(first_code(configuration("") + sampler + writer), "");
  EXPECT_EQ(first_code(configuration("") + sampler + sampler), "readout.duplicate_output");
  EXPECT_EQ(first_code(configuration("") + sampler + sampler + "endpoint = \"two\"\n"), "");
  EXPECT_EQ(first_code(configuration("") + writer + writer), "readout.duplicate_output");
  EXPECT_EQ(first_code(configuration("") + writer + writer + "directory = \"./b/../\"\n"), "readout.duplicate_output");
  EXPECT_EQ(first_code(configuration("") + writer + writer + "directory = \"b\"\n"), "");
}

TEST(ReadoutSettings, WhatARunWouldRefuseIsRefusedBefore) {
  const std::string rob = "[[readout.rob]]\nsource_id = ";
  EXPECT_EQ(first_code("[readout.input]\ntype = \"generator\"\n"), "readout.no_rob");
  EXPECT_EQ(first_code(configuration("") + rob + "\"0x610001\"\n"), "readout.duplicate_rob");
  EXPECT_EQ(first_code(configuration("fids = [\"0x1000000000000000\", \"0x1000000000000000\"]\n")), "readout.bad_generator");
  EXPECT_EQ(first_code(configuration("", "workers = 5\n")), "readout.workers");
  const auto loaded = load(configuration("") + rob + "\"0x610002\"\n");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().front().code, "readout.duplicate_link");
  EXPECT_NE(loaded.error().front().what.find("lists no links"), std::string::npos);
  const std::string ids =
      "[[readout.rob]]\nsource_id = \"0x610001\"\nlinks = [\"0x1000000000000000\", "
      "\"0x1000000000010000\"]\nlink_ids = [\"1\", \"1\"]\n";
  EXPECT_EQ(first_code("[readout.input]\ntype = \"generator\"\nlinks = 4\n" + ids), "readout.duplicate_link");
}

TEST(ReadoutSettings, NamesOfProcessesAreWords) {
  for (const char* name : {"a b", "\"x\"", "", "a/b", ".hidden", "-x", "a\nb"}) {
    const auto loaded = load_readout({.file = "run.toml",
                                      .text = configuration(""),
                                      .overrides = {std::string("readout.name=") + name},
                                      .environment = false});
    EXPECT_EQ(loaded.has_value(), std::string_view(name) == "\"x\"") << name << ": quotes are TOML's";
  }
}

std::string with_handler(const std::string& handler, const std::string& builder = "", const std::string& behind = "") {
  const std::string input = builder.find("full") == std::string::npos ? "" : "groups = 1\n";
  return configuration("chunk_bytes = 100\n" + input, builder) +
         "[[readout.consumer]]\ntype = \"hlt_request_handler\"\nqueue = 32\nsending = 64\n" + handler + behind;
}

TEST(ReadoutSettings, TheBuilderHasBuffersForAllFragmentsThatAHandlerMayHold) {
  const auto buffers = [](const std::string& text, const char* key = "buffers") {
    const auto loaded = load(text);
    EXPECT_TRUE(loaded) << loaded.error().front().message();
    return loaded ? loaded->settings.builder.parameters.integer(key) : 0;
  };
  constexpr std::int64_t kHeld = 1000 + 32 + 64 + 1;
  const std::string thousand = "rate = \"10kHz\"\nretention = \"100ms\"\n";
  EXPECT_EQ(buffers(configuration("")), 0) << "nothing is kept";
  EXPECT_EQ(buffers(with_handler(thousand, "chunk_size = 100\nwindow = 1024\n")), 1024 + 256 + kHeld);
  EXPECT_EQ(buffers(with_handler(thousand, "chunk_size = 64\nwindow = 1024\n")), 1024 + 256 + kHeld)
      << "a buffer has 1 KiB at least";
  EXPECT_EQ(buffers(with_handler(thousand, "chunk_size = 100\nbuffers = 5000\n")), 5000) << "enough, as requested";
  EXPECT_EQ(buffers(with_handler("max_fragments = 10\n", "type = \"full\"\n"), "fragments"), 4096 + 107);
  EXPECT_EQ(buffers(with_handler("max_fragments = 10\n", "type = \"full\"\n"), "copies"), 256 + 107);
}

TEST(ReadoutSettings, FewerBuffersThanAHandlerMayHoldAreRefusedByName) {
  EXPECT_EQ(first_code(with_handler("max_fragments = 1000\n", "buffers = 1000\n")), "readout.few_buffers");
  EXPECT_EQ(first_code(with_handler("max_fragments = 10\n", "type = \"full\"\nfragments = 100\n")), "readout.few_buffers");
  EXPECT_EQ(first_code(with_handler("max_fragments = 16777216\n")), "readout.few_buffers") << "above a builder's limit";
  EXPECT_EQ(first_code(with_handler("max_fragments = 1000\n", "buffers = 2000\n")), "");
}

TEST(ReadoutSettings, AProcessorBehindAHandlerIsRefused) {
  EXPECT_EQ(first_code(with_handler("max_fragments = 10\n", "",
                                    "[[readout.consumer]]\ntype = \"processor\"\nname = \"late\"\nwork = \"read\"\n")),
            "readout.handler_order");
}

}  // namespace
}  // namespace rodeo::cli
