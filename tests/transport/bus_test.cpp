// Files of publishers in a directory of the test; live ones listen on a free loopback port.
#include "transport/bus.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd_socket.h"
#include "base/runtime_dir.h"
#include "formats/temporary_directory.h"
#include "settings/fid_text.h"
#include "settings/json.h"
#include "transport/listener.h"

namespace rodeo::transport {
namespace {

namespace fs = std::filesystem;
using settings::Json;
using testing::ElementsAre;
using testing::HasSubstr;

// A port of 127.0.0.1. It listens, or it is only bound, so that no other process can use it.
class Port {
 public:
  explicit Port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    if (listens) {
      EXPECT_EQ(::listen(socket_.get(), 8), 0);
    }
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number = ntohs(address.sin_port);
  }
  std::uint16_t number = 0;

 private:
  base::UniqueFd socket_;
};

// Sends HELLO to every connection.
class Greeter {
 public:
  explicit Greeter(std::uint64_t instance) : listener_({.name = "greeter", .instance = instance}) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        (void)listener_.poll(base::steady_now_ns(),
                             [](ControlSocket&, const formats::ControlMessage&) { return Result<void>{}; });
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
    });
    port_ = listener_.port();
  }
  std::uint16_t port() const { return port_; }

 private:
  Listener listener_;
  std::uint16_t port_ = 0;
  std::jthread thread_;  // the destructor ends it first
};

class Bus : public testing::Test {
 protected:
  BusEntry entry(const std::string& name, std::uint64_t instance, std::uint16_t port) const {
    return {.name = name,
            .instance = instance,
            .host = "felix0",
            .pid = 4711,
            .address = "127.0.0.1",
            .port = port,
            .providers = {"tcp", "shm"},
            .page_bytes = 65'536,
            .program = "rodeo route",
            .unix_time = 1'700'000'000.25,
            .trigger_list = false,
            .links = {Fid::of(0, 5, 0, 0), Fid::of(0, 5, 0, 1), Fid::of(0, 5, 7, 3)}};
  }

  fs::path file(const std::string& name) const { return bus_ / (name + ".json"); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(bus_);
    std::ofstream(file(name)) << text;
  }

  std::string text_of(const std::string& name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  BusReading read() const {
    auto reading = read_bus(bus_);
    EXPECT_TRUE(reading) << reading.error().message();
    return *reading;
  }

  // The error for a publisher's file with one changed member.
  std::string complaint(const std::string& key, const Json& value) {
    {
      const auto there = Advertisement::put(bus_, entry("a", 1, 9)).value();
      text_ = text_of("a");
    }
    Json json = Json::parse(text_).value();
    json[key] = value;
    write("a", json.dump());
    const BusReading reading = read();
    EXPECT_EQ(reading.entries.size() + reading.unreadable.size(), 1U);
    fs::remove(file("a"));
    if (reading.unreadable.empty()) return "";
    EXPECT_EQ(reading.unreadable[0].code, "transport.bus_entry");
    EXPECT_EQ(reading.unreadable[0].where, file("a"));
    return reading.unreadable[0].what;
  }

  test::TemporaryDirectory directory_;
  fs::path bus_ = fs::path(directory_.path()) / "bus";
  std::string text_;
};

TEST_F(Bus, WithoutADirectoryHasNoEntries) {
  const BusReading reading = read();
  EXPECT_TRUE(reading.entries.empty());
  EXPECT_TRUE(reading.unreadable.empty());
}

TEST_F(Bus, WhatIsPutIsReadUntilItEnds) {
  {
    const auto first = Advertisement::put(bus_, entry("felix0.1", ~0ULL, 9));
    ASSERT_TRUE(first) << first.error().message();
    BusEntry list = entry("felix0.0", 2, 65'535);
    list.trigger_list = true;
    list.links.clear();
    const auto second = Advertisement::put(bus_, list);
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_THAT(read().entries, ElementsAre(list, entry("felix0.1", ~0ULL, 9)));
    struct stat found{};
    ASSERT_EQ(::stat(bus_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0700U);
  }
  EXPECT_TRUE(fs::is_empty(bus_));
}

TEST_F(Bus, NeighboursAreWrittenAsOneRun) {
  BusEntry many = entry("felix0", 1, 9);
  many.links = settings::parse_fid_range("0x1000000000540000+1152").value();
  many.links.push_back(Fid{0x1000000000540000 - 0x10000});
  const auto there = Advertisement::put(bus_, many);
  ASSERT_TRUE(there);
  const Json json = Json::parse(text_of("felix0")).value();
  ASSERT_EQ(json.find("links")->elements().size(), 2U);
  EXPECT_EQ(json.find("links")->elements()[0].string(), "0x1000000000540000+1152");
  EXPECT_EQ(json.find("links")->elements()[1].string(), "0x1000000000530000");
  EXPECT_THAT(read().entries, ElementsAre(many));
}

TEST_F(Bus, AFileIsAsInTheDocument) {
  const std::string text =
      R"({"name": "felix0.0", "instance": "0x8d21f4a07be35c19", "host": "felix0", "pid": 4711, "address": "10.0.0.5", "port": 40001,
    "providers": ["verbs", "tcp"], "page_bytes": 65536, "program": "rodeo route", "unix_time": 1700000000.25, "trigger_list": false,
    "links": ["0x1000000000540000+24", "0x1000000000800000"], "of a later version": [1]})";
  write("felix0.0", text);
  const BusReading reading = read();
  ASSERT_EQ(reading.entries.size(), 1U) << reading.unreadable[0].message();
  EXPECT_EQ(reading.entries[0].instance, 0x8d21f4a07be35c19U);
  EXPECT_EQ(reading.entries[0].links.size(), 25U);
  EXPECT_EQ(reading.entries[0].links[1], settings::advance(Fid{0x1000000000540000}, 1));
  EXPECT_EQ(reading.entries[0].max_chunk_bytes, 0U);
}

TEST_F(Bus, TheLongestChunkIsThereIfItIsKnown) {
  BusEntry long_chunks = entry("felix0", 1, 9);
  long_chunks.max_chunk_bytes = 64U << 20;
  const auto there = Advertisement::put(bus_, long_chunks);
  ASSERT_TRUE(there);
  EXPECT_THAT(read().entries, ElementsAre(long_chunks));
}

TEST_F(Bus, ANameThatAnswersIsTaken) {
  const Greeter lives(1);
  const Port other(true);
  const auto there = Advertisement::put(bus_, entry("felix0", 1, lives.port()));
  ASSERT_TRUE(there);
  const auto second = Advertisement::put(bus_, entry("felix0", 2, other.number));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "transport.name_taken");
  EXPECT_THAT(second.error().message(), HasSubstr("rodeo route, process 4711 on felix0"));
  EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 1, lives.port())));
}

TEST_F(Bus, ANameWhosePortIsAnothersByNowIsNotTaken) {
  const Greeter another(7);
  const std::optional<Advertisement> crashed = Advertisement::put(bus_, entry("felix0", 1, another.port())).value();
  const Port ours(true);
  const auto there = Advertisement::put(bus_, entry("felix0", 2, ours.number));
  ASSERT_TRUE(there) << there.error().message();
  EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 2, ours.number)));
}

TEST_F(Bus, AnEntryLivesUnlessItsPortIsDeadOrAnothers) {
  const Greeter speaks(1);
  const Port silent(true);
  const Port dead(false);
  const std::chrono::seconds patience{10};
  EXPECT_TRUE(is_alive(entry("felix0", 1, speaks.port()), patience));
  EXPECT_FALSE(is_alive(entry("felix0", 2, speaks.port()), patience));
  EXPECT_FALSE(is_alive(entry("felix0", 1, dead.number), patience));
  EXPECT_TRUE(is_alive(entry("felix0", 1, silent.number), std::chrono::milliseconds{1})) << "the publisher may be busy";
}

TEST_F(Bus, WhatACrashLeftIsReplaced) {
  const Port dead(false);
  const Port lives(true);
  std::optional<Advertisement> crashed = Advertisement::put(bus_, entry("felix0", 1, dead.number)).value();
  {
    const auto there = Advertisement::put(bus_, entry("felix0", 2, lives.number));
    ASSERT_TRUE(there) << there.error().message();
    EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 2, lives.number)));
    crashed.reset();  // at its end, the crashed publisher must not remove the file, which belongs to another one now
    EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 2, lives.number)));
  }
  EXPECT_TRUE(fs::is_empty(bus_));

  write("felix0", "{half a fi");
  const auto there = Advertisement::put(bus_, entry("felix0", 3, lives.number));
  ASSERT_TRUE(there) << there.error().message();
  EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 3, lives.number)));
}

TEST_F(Bus, ACrashedOnesPortIsNotTakenForIt) {
  const Port ours(true);
  std::optional<Advertisement> crashed = Advertisement::put(bus_, entry("felix0", 1, ours.number)).value();
  const auto there = Advertisement::put(bus_, entry("felix0", 2, ours.number));
  EXPECT_TRUE(there) << there.error().message();
}

TEST_F(Bus, AnInstanceMayPutItselfAnew) {
  const Port lives(true);
  const Port later(true);
  const auto there = Advertisement::put(bus_, entry("felix0", 1, lives.number));
  const auto again = Advertisement::put(bus_, entry("felix0", 1, later.number));
  EXPECT_TRUE(again);
  EXPECT_THAT(read().entries, ElementsAre(entry("felix0", 1, later.number)));
}

TEST_F(Bus, AnAdvertisementMoves) {
  auto first = Advertisement::put(bus_, entry("a", 1, 9));
  auto second = Advertisement::put(bus_, entry("b", 2, 9));
  ASSERT_TRUE(first && second);
  {
    const Advertisement moved = std::move(*first);
    EXPECT_EQ(read().entries.size(), 2U);
  }
  EXPECT_THAT(read().entries, ElementsAre(entry("b", 2, 9)));
  *first = std::move(*second);
  EXPECT_EQ(read().entries.size(), 1U);
}

TEST_F(Bus, NamesAreFileNames) {
  for (const std::string& name : {std::string("A-z_0.9"), std::string(64, 'x'), std::string("..")}) {
    const auto there = Advertisement::put(bus_, entry(name, 1, 9));
    EXPECT_TRUE(there) << there.error().message();
    EXPECT_EQ(read().entries.size(), 1U) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("a/b"), std::string("a b"), std::string("\xc3\xa4")}) {
    const auto there = Advertisement::put(bus_, entry(name, 1, 9));
    ASSERT_FALSE(there) << name;
    EXPECT_EQ(there.error().code, "transport.bus_entry");
  }
  EXPECT_TRUE(read().entries.empty());
}

TEST_F(Bus, AnEntryThatNobodyCouldReadIsNotWritten) {
  BusEntry bad = entry("a", 1, 9);
  bad.links = {Fid{7}};
  EXPECT_EQ(Advertisement::put(bus_, bad).error().code, "transport.bus_entry");
  bad = entry("a", 1, 0);
  EXPECT_EQ(Advertisement::put(bus_, bad).error().code, "transport.bus_entry");
  bad = entry("a", 1, 9);
  bad.links.push_back(bad.links[0]);
  EXPECT_THAT(Advertisement::put(bus_, bad).error().what, HasSubstr("twice"));
  EXPECT_FALSE(fs::exists(bus_));
}

TEST_F(Bus, WhatCannotBeParsedIsNamedAndTheRestIsRead) {
  const auto there = Advertisement::put(bus_, entry("good", 1, 9));
  write("not_json", "{");
  write("a_list", "[]");
  write("empty", "");
  fs::create_directory(file("a_directory"));
  fs::copy_file(file("good"), file("other_name"));
  std::ofstream(bus_ / "good.1.part") << "ignored";
  fs::create_symlink("nowhere", file("gone"));
  const BusReading reading = read();
  EXPECT_THAT(reading.entries, ElementsAre(entry("good", 1, 9)));
  std::vector<std::string> where;
  for (const Error& error : reading.unreadable) where.push_back(fs::path(error.where).filename());
  EXPECT_THAT(where, testing::UnorderedElementsAre("not_json.json", "a_list.json", "empty.json", "a_directory.json",
                                                   "other_name.json"));
}

TEST_F(Bus, EveryMemberIsChecked) {
  EXPECT_EQ(complaint("program", "x"), "");
  for (const char* key : {"name", "instance", "host", "address", "program"}) {
    EXPECT_THAT(complaint(key, 7), HasSubstr(key));
    EXPECT_THAT(complaint(key, std::string(256, '1')), HasSubstr(key));
    EXPECT_THAT(complaint(key, "\x1b[2J"), HasSubstr(key));
    EXPECT_THAT(complaint(key, nullptr), HasSubstr(key));
  }
  EXPECT_EQ(complaint("program", std::string(255, 'x')), "");
  for (const char* text : {"", "0x", "12", "0x1 ", "0x12345678123456781", "-0x1"})
    EXPECT_THAT(complaint("instance", text), HasSubstr("instance"));
  for (const char* key : {"pid", "port", "page_bytes"}) {
    for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(~0ULL)})
      EXPECT_THAT(complaint(key, value), HasSubstr(key));
  }
  EXPECT_EQ(complaint("port", 65'535), "");
  EXPECT_THAT(complaint("port", 65'536), HasSubstr("port"));
  EXPECT_THAT(complaint("port", 0), HasSubstr("port"));
  EXPECT_EQ(complaint("page_bytes", 1 << 20), "");
  EXPECT_THAT(complaint("page_bytes", (1 << 20) + 1), HasSubstr("page_bytes"));
  EXPECT_EQ(complaint("max_chunk_bytes", 1 << 28), "");
  for (const Json& value : {Json(0), Json((1 << 28) + 1), Json("1")})
    EXPECT_THAT(complaint("max_chunk_bytes", value), HasSubstr("max_chunk_bytes"));
  EXPECT_THAT(complaint("unix_time", "now"), HasSubstr("unix_time"));
  EXPECT_THAT(complaint("trigger_list", 1), HasSubstr("trigger_list"));
  EXPECT_THAT(complaint("providers", "tcp"), HasSubstr("providers"));
  EXPECT_THAT(complaint("providers", Json::array_of(std::vector<int>{1})), HasSubstr("providers"));
  EXPECT_EQ(complaint("providers", Json::array_of(std::vector<std::string>(16, "tcp"))), "");
  EXPECT_THAT(complaint("providers", Json::array_of(std::vector<std::string>(17, "tcp"))), HasSubstr("providers"));
}

TEST_F(Bus, LinksAreCheckedBeforeTheyAreMany) {
  const auto links = [&](const std::vector<std::string>& runs) { return complaint("links", Json::array_of(runs)); };
  EXPECT_EQ(links({"0x1000000000000000+65535"}), "");
  EXPECT_THAT(links({"0x1000000000000000+65536"}), HasSubstr("more than 65535"));
  EXPECT_THAT(links({"0x1000000000000000+65535", "0x1000001000000000"}), HasSubstr("more than 65535"));
  EXPECT_THAT(links(std::vector<std::string>(1000, "0x1000000000000000+524288")), HasSubstr("more than 65535"));
  EXPECT_THAT(links(std::vector<std::string>(65'536, "0x1000000000000000")), HasSubstr("must list"));
  EXPECT_THAT(links({"0x1000000000000000+3", "0x1000000000020000"}), HasSubstr("twice"));
  EXPECT_THAT(links({"0x1000000000000000+"}), HasSubstr("+"));
  EXPECT_THAT(links({"7"}), HasSubstr("version"));
}

TEST_F(Bus, AFileThatIsTooLongIsNamed) {
  write("long", "");
  fs::resize_file(file("long"), kMostBusFileBytes + 1);
  const BusReading reading = read();
  ASSERT_EQ(reading.unreadable.size(), 1U);
  EXPECT_THAT(reading.unreadable[0].message(), HasSubstr("more than 16 MiB"));
}

TEST_F(Bus, ABusOfTooManyFilesIsReadAsFarAsItMay) {
  fs::create_directories(bus_);
  for (std::size_t i = 0; i <= kMostBusFiles; ++i) write(std::to_string(i), "");
  const BusReading reading = read();
  EXPECT_EQ(reading.unreadable.size(), kMostBusFiles + 1);
  EXPECT_THAT(reading.unreadable[0].message(), HasSubstr("more than 4096 files"));
}

TEST_F(Bus, WhatIsNoDirectoryIsRefused) {
  std::ofstream(bus_) << "a file";
  EXPECT_EQ(read_bus(bus_).error().code, "transport.bus");
  EXPECT_EQ(Advertisement::put(bus_, entry("a", 1, 9)).error().code, "transport.bus");
  EXPECT_EQ(Advertisement::put(bus_ / "nowhere" / "bus", entry("a", 1, 9)).error().code, "transport.bus");
}

TEST(BusAnswers, OnlyWhoListens) {
  const Port lives(true);
  const Port dead(false);
  const std::chrono::seconds patience{10};
  EXPECT_TRUE(accepts_connections("127.0.0.1", lives.number, patience));
  EXPECT_FALSE(accepts_connections("127.0.0.1", dead.number, patience));
  EXPECT_FALSE(accepts_connections("127.0.0.1", 0, patience));
  EXPECT_FALSE(accepts_connections("localhost", lives.number, patience)) << "an address must be numerical";
  EXPECT_FALSE(accepts_connections("", lives.number, patience));
}

TEST(BusDirectory, LiesInTheRuntimeDirectory) {
  EXPECT_EQ(default_bus().filename(), "bus");
  EXPECT_EQ(default_bus().parent_path(), base::runtime_directory_name());
}

}  // namespace
}  // namespace rodeo::transport
