#include "base/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <stdexcept>

using namespace rodeo;
using namespace rodeo::base;
using testing::HasSubstr;

namespace {

bool not_empty(std::span<const std::byte> chunk) { return !chunk.empty(); }
bool always(std::span<const std::byte>) { return true; }

void register_checkers(Registry& registry) {
  registry.add_checker({.name = "crc32", .help = "CRC-32"}, &not_empty);
  registry.add_checker({.name = "adler32", .help = "Adler-32"}, &not_empty);
}

}  // namespace

TEST(ComponentRegistry, MakesAComponentByKindAndName) {
  ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", register_checkers));
  const auto checker = registry.make_checker("crc32", Parameters{});
  ASSERT_TRUE(checker) << checker.error().message();
  const ChunkRun empty{.count = 1};
  EXPECT_EQ((*checker)->check(empty, 0, 1), 0u);
  EXPECT_EQ((*registry.find(ComponentKind::checker, "crc32"))->origin, "built in");
}

TEST(ComponentRegistry, AnUnknownNameSaysWhichWereMeantAndWhichThereAre) {
  ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", register_checkers));
  const auto found = registry.find(ComponentKind::checker, "crc23");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message(),
            "error[base.unknown_component]: there is no checker called `crc23`\n"
            "  did you mean `crc32`? there are: adler32, crc32");
  EXPECT_THAT(registry.find(ComponentKind::input, "crc32").error().next, HasSubstr("no input is registered"));
}

TEST(ComponentRegistry, ANameTakenTwiceIsRefusedWithBothOrigins) {
  ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("/a/libone.so", register_checkers));
  const auto again = registry.add_library("/b/libtwo.so", [](Registry& other) {
    other.add_checker({.name = "xor", .help = "fresh"}, &always);
    other.add_checker({.name = "crc32", .help = "taken"}, &always);
  });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, "base.duplicate_component");
  EXPECT_THAT(again.error().what, HasSubstr("by /a/libone.so and by /b/libtwo.so"));
  EXPECT_THAT(registry.names(ComponentKind::checker), testing::ElementsAre("adler32", "crc32"));
}

TEST(ComponentRegistry, WhatAFactoryThrowsNamesTheComponent) {
  ComponentRegistry registry;
  ASSERT_TRUE(registry.add_library("built in", [](Registry& other) {
    other.add_input({.name = "recording", .help = "a file"}, [](const Parameters&) -> std::unique_ptr<DataInput> {
      throw std::runtime_error("the recording is empty");
    });
    other.add_work({.name = "nothing", .help = "no object"},
                   [](const Parameters&) -> std::unique_ptr<FragmentWork> { return nullptr; });
  }));
  EXPECT_EQ(registry.make_input("recording", Parameters{}).error().message(),
            "error[base.component_failed]: input `recording` cannot be made: the recording is empty");
  EXPECT_THAT(registry.make_work("nothing", Parameters{}).error().what, HasSubstr("returned nothing"));
}

TEST(ComponentRegistry, L1IdsThatThereAreNotAreRefusedAtRegistration) {
  ComponentRegistry registry;
  int number = 0;
  const auto refused = [&](TriggerFields fields) {
    const auto added = registry.add_library("a library", [&](Registry& other) {
      other.add_extractor({.name = fmt::format("ids_{}", number++), .help = ""}, fields, [](auto) { return TriggerInfo{}; });
    });
    return added ? std::string("accepted") : added.error().code;
  };
  const auto ids = [](int bits, bool has_ecr) {
    return TriggerFields{.l1id_bits = static_cast<std::uint8_t>(bits), .has_ecr = has_ecr};
  };
  for (const int bits : {1, 4, 7, 16, 24, 25, 32}) EXPECT_EQ(refused(ids(bits, false)), "accepted");
  EXPECT_EQ(refused(ids(24, true)), "accepted");
  for (const int bits : {0, 33}) EXPECT_EQ(refused(ids(bits, false)), "base.bad_trigger_fields");
  for (const int bits : {16, 32}) EXPECT_EQ(refused(ids(bits, true)), "base.bad_trigger_fields");
}

TEST(ComponentRegistry, MalformedNamesAndKeysAreRefused) {
  ComponentRegistry registry;
  const auto refused = [&](ComponentInfo info) {
    const auto added = registry.add_library("built in", [&](Registry& other) { other.add_checker(info, &always); });
    return added ? std::string("accepted") : added.error().code;
  };
  EXPECT_EQ(refused({.name = "CRC", .help = ""}), "base.bad_component");
  EXPECT_EQ(refused({.name = "", .help = ""}), "base.bad_component");
  EXPECT_EQ(refused({.name = "a", .help = "", .keys = {{.name = "type"}}}), "base.bad_component");
  EXPECT_EQ(refused({.name = "a", .help = "", .keys = {{.name = "b"}, {.name = "b"}}}), "base.bad_component");
  EXPECT_EQ(refused({.name = "a", .help = "", .keys = {{.name = "b"}, {.name = "c"}}}), "accepted");
}
