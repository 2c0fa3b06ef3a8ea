// Two ports of real providers in one process.
#include "transport/fabric.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace rodeo::transport {
namespace {

using What = FabricPort::Event::What;

constexpr std::size_t kSlotBytes = 64U << 10;
constexpr std::uint32_t kSlots = 8;
constexpr int kLongest = 2'000'000;  // limit of polls for an expected event

class Fabric : public testing::TestWithParam<const char*> {
 protected:
  struct End {
    std::unique_ptr<FabricPort> port;
    std::vector<std::byte> memory = std::vector<std::byte>(kSlots * kSlotBytes);
    FabricPort::Connection connection = 0;
    std::deque<FabricPort::Event> events;

    void open(const char* provider, const char* listen) {
      auto opened = open_fabric(provider, listen);
      ASSERT_TRUE(opened) << opened.error().message();
      port = std::move(*opened);
      add();
    }
    void add() {
      const auto made = port->open(memory, kSlotBytes);
      ASSERT_TRUE(made) << made.error().message();
      connection = *made;
    }
    void poll() {
      FabricPort::Event some[4];
      const std::size_t count = port->poll(some);
      events.insert(events.end(), some, some + count);
    }
    std::byte* slot(std::uint32_t number) { return memory.data() + number * kSlotBytes; }
  };

  void SetUp() override {
    publisher_.open(GetParam(), "127.0.0.1");
    subscriber_.open(GetParam(), "");
  }

  void connect(const FabricToken& token) {
    const auto accepted =
        publisher_.port->accept(publisher_.connection, kToken, subscriber_.port->address(subscriber_.connection));
    ASSERT_TRUE(accepted) << accepted.error().message();
    const auto connected = subscriber_.port->connect(subscriber_.connection, publisher_.port->listens_at(), token);
    ASSERT_TRUE(connected) << connected.error().message();
  }

  /// Polls both ends and returns the next event of one end.
  FabricPort::Event next(End& of) {
    for (int i = 0; i < kLongest && of.events.empty(); ++i) {
      publisher_.poll();
      subscriber_.poll();
    }
    if (of.events.empty()) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    const auto event = of.events.front();
    of.events.pop_front();
    return event;
  }

  void send(std::uint32_t slot, std::size_t bytes) {
    bool begun = false;
    for (int i = 0; i < kLongest && !begun; ++i) {
      begun = publisher_.port->send(publisher_.connection, slot, bytes);
      publisher_.poll();
      subscriber_.poll();
    }
    ASSERT_TRUE(begun);
  }

  static constexpr FabricToken kToken = {std::byte{1}, std::byte{2}};
  End publisher_;
  End subscriber_;
};

TEST(FabricOfTcp, WhatIsNoAddressIsRefused) {
  const auto port = open_fabric("tcp", "").value();
  std::vector<std::byte> memory(kSlotBytes);
  const auto end = port->open(memory, kSlotBytes).value();
  const auto address = [](unsigned family, std::size_t bytes) {
    FabricAddress made(bytes);
    if (bytes > 0) made[0] = static_cast<std::byte>(family);
    return made;
  };
  for (const FabricAddress& bad : {address(0, 0), address(AF_INET, 1), address(AF_INET, 15), address(AF_INET, 256),
                                   address(AF_INET6, 16), address(AF_UNIX, 16), address(AF_UNSPEC, 16)}) {
    const auto connected = port->connect(end, bad, {});
    ASSERT_FALSE(connected) << bad.size();
    EXPECT_EQ(connected.error().code, "transport.protocol");
  }
}

TEST_P(Fabric, PagesArriveInOrderAndWhole) {
  connect(kToken);
  ASSERT_EQ(next(publisher_).what, What::connected);
  ASSERT_EQ(next(subscriber_).what, What::connected);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) ASSERT_TRUE(subscriber_.port->receive(subscriber_.connection, slot));
  constexpr std::uint32_t kPages = 500;
  std::uint32_t sent = 0;
  std::uint32_t came = 0;
  std::uint32_t posted = kSlots;
  std::uint32_t done = 0;
  for (int i = 0; i < kLongest && came < kPages; ++i) {
    while (sent < kPages && sent < posted && sent < done + kSlots) {
      const std::uint32_t slot = sent % kSlots;
      const std::size_t bytes = sent % 7 == 0 ? 32 : kSlotBytes - sent;
      std::memset(publisher_.slot(slot), static_cast<int>(sent % 251), bytes);
      if (!publisher_.port->send(publisher_.connection, slot, bytes)) break;
      ++sent;
    }
    publisher_.poll();
    subscriber_.poll();
    for (; !publisher_.events.empty(); publisher_.events.pop_front()) {
      ASSERT_EQ(publisher_.events.front().what, What::sent);
      ++done;
    }
    for (; !subscriber_.events.empty(); subscriber_.events.pop_front()) {
      const auto event = subscriber_.events.front();
      ASSERT_EQ(event.what, What::received);
      ASSERT_EQ(event.slot, came % kSlots);
      ASSERT_EQ(event.bytes, came % 7 == 0 ? 32 : kSlotBytes - came);
      const std::vector<std::byte> expected(event.bytes, static_cast<std::byte>(came % 251));
      ASSERT_EQ(std::memcmp(subscriber_.slot(event.slot), expected.data(), event.bytes), 0) << "page " << came;
      ++came;
      if (posted < kPages) {
        ASSERT_TRUE(subscriber_.port->receive(subscriber_.connection, event.slot));
        ++posted;
      }
    }
  }
  EXPECT_EQ(came, kPages);
}

TEST_P(Fabric, AConnectionThatIsClosedCanBeMadeAgain) {
  for (int round = 0; round < 3; ++round) {
    connect(kToken);
    ASSERT_EQ(next(publisher_).what, What::connected);
    ASSERT_EQ(next(subscriber_).what, What::connected);
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) ASSERT_TRUE(subscriber_.port->receive(subscriber_.connection, slot));
    send(0, 100);
    EXPECT_EQ(next(subscriber_).bytes, 100);
    subscriber_.port->close(subscriber_.connection);
    publisher_.port->close(publisher_.connection);
    publisher_.events.clear();
    subscriber_.events.clear();
    publisher_.add();
    subscriber_.add();
    for (int i = 0; i < 1000; ++i) {
      publisher_.poll();
      subscriber_.poll();
    }
    EXPECT_TRUE(publisher_.events.empty());
    EXPECT_TRUE(subscriber_.events.empty());
  }
}

TEST_P(Fabric, SignalHandlersStayOurs) {
  for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT}) {
    struct sigaction ours{};
    ours.sa_handler = [](int) {};
    struct sigaction before{};
    ASSERT_EQ(::sigaction(signal, &ours, &before), 0);
    publisher_.add();
    subscriber_.open(GetParam(), "");
    struct sigaction after{};
    ASSERT_EQ(::sigaction(signal, &before, &after), 0);
    EXPECT_EQ(after.sa_handler, ours.sa_handler) << "signal " << signal;
  }
}

/// The first port of a process loads libfabric and its libraries.
TEST(LoadingTheFabric, SignalHandlersAreOursAllTheTime) {
  constexpr std::array kEnding{SIGINT, SIGTERM};
  for (const int signal : kEnding) {
    struct sigaction ours{};
    ours.sa_handler = [](int) {};
    ASSERT_EQ(::sigaction(signal, &ours, nullptr), 0);
  }
  std::array<struct sigaction, kEnding.size()> ours{};
  for (std::size_t i = 0; i < kEnding.size(); ++i) ASSERT_EQ(::sigaction(kEnding[i], nullptr, &ours[i]), 0);
  std::atomic<bool> looks{false};
  std::atomic<bool> others{false};
  std::jthread looking([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      for (std::size_t i = 0; i < kEnding.size(); ++i) {
        struct sigaction now{};
        if (::sigaction(kEnding[i], nullptr, &now) != 0 || now.sa_handler != ours[i].sa_handler) others = true;
      }
      looks = true;
    }
  });
  while (!looks) std::this_thread::yield();
  EXPECT_TRUE(open_fabric("tcp", "", PortSize::few));
  looking.request_stop();
  looking.join();
  EXPECT_FALSE(others) << "a signal during this time would have ended the process";
}

INSTANTIATE_TEST_SUITE_P(Provider, Fabric, testing::Values("tcp", "shm"),
                         [](const auto& of) { return std::string(of.param); });

class ConnectingFabric : public Fabric {};

TEST_P(ConnectingFabric, WhoHasNoTokenIsTurnedAway) {
  connect({std::byte{9}});
  EXPECT_EQ(next(subscriber_).what, What::broken);
  EXPECT_TRUE(publisher_.events.empty());
}

TEST_P(ConnectingFabric, TheEndOfAPeerBreaksAConnection) {
  connect(kToken);
  ASSERT_EQ(next(publisher_).what, What::connected);
  ASSERT_EQ(next(subscriber_).what, What::connected);
  subscriber_.port->close(subscriber_.connection);
  EXPECT_EQ(next(publisher_).what, What::broken);
  EXPECT_FALSE(publisher_.port->send(publisher_.connection, 0, 100));
}

INSTANTIATE_TEST_SUITE_P(Provider, ConnectingFabric, testing::Values("tcp"),
                         [](const auto& of) { return std::string(of.param); });

TEST(FabricProviders, MemoryThatAKilledProcessLeftIsClearedAway) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const auto left = [](pid_t pid, const char* rest) { return "/dev/shm/" + std::to_string(pid) + rest; };
  const std::string of_the_dead = left(dead, ":7:0"), of_the_living = left(::getpid(), ":70:0"),
                    another = left(dead, ":7:0x");
  for (const std::string& file : {of_the_dead, of_the_living, another}) std::ofstream(file) << "left";
  ASSERT_TRUE(open_fabric("shm", ""));
  EXPECT_FALSE(std::filesystem::exists(of_the_dead));
  EXPECT_TRUE(std::filesystem::remove(of_the_living));
  EXPECT_TRUE(std::filesystem::remove(another)) << "this is not a name of libfabric";
}

TEST(FabricProviders, OneThatThereIsNotIsRefusedByName) {
  const auto port = open_fabric("pigeon", "");
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, "transport.provider");
  EXPECT_NE(port.error().what.find("pigeon"), std::string::npos);
}

TEST(FabricProviders, AnAddressThatIsNotOursIsRefused) {
  const auto port = open_fabric("tcp", "192.0.2.77");
  ASSERT_FALSE(port);
}

}  // namespace
}  // namespace rodeo::transport
