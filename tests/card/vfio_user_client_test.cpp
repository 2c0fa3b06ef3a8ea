#include "card/pci/vfio_user_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include "card/bar.h"
#include "card/pci/found_function.h"
#include "card_registers/cru.h"
#include "formats/temporary_directory.h"
#include "scripted_server.h"

namespace rodeo::card {
namespace {

namespace wire = formats::vfio_user;
using doubles::ScriptedServer;

constexpr pci::Address kAddress{0, 0x3b, 0, 0};

class VfioUserClient : public testing::Test {
 protected:
  void serve(ScriptedServer::Hook hook = {}) {
    server_ = std::make_unique<ScriptedServer>(directory_.file("s"), card_registers::cru::kPciId, std::move(hook));
  }
  Result<std::unique_ptr<pci::Function>> connect(std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    return pci::open_vfio_user(directory_.file("s"), kAddress, {.patience = patience, .silence = patience});
  }
  test::TemporaryDirectory directory_;
  std::unique_ptr<ScriptedServer> server_;
};

template <typename Word>
Word read(pci::Function& function, unsigned region, std::uint64_t offset) {
  Word value = 0;
  const auto done = function.read(region, offset, std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_TRUE(done) << done.error().message();
  return value;
}

TEST_F(VfioUserClient, LearnsTheRegions) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function) << function.error().message();
  EXPECT_EQ((*function)->region(0)->bytes, ScriptedServer::kBar0);
  ASSERT_EQ((*function)->region(0)->mappable.size(), 1u);
  EXPECT_EQ((*function)->region(2)->bytes, ScriptedServer::kBar2);
  EXPECT_TRUE((*function)->region(2)->mappable.empty());
  EXPECT_EQ((*function)->region(1)->bytes, 0u);
  EXPECT_FALSE((*function)->region(9));
  EXPECT_EQ((*function)->interrupts(), 8u);
}

TEST_F(VfioUserClient, ReadsWhatItWroteInEveryWidth) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  const std::uint64_t value = 0x1122334455667788;
  for (std::size_t bytes : {1u, 2u, 4u, 8u}) {
    ASSERT_TRUE((*function)->write(2, 64, std::as_bytes(std::span(&value, 1)).first(bytes)));
  }
  EXPECT_EQ(read<std::uint64_t>(**function, 2, 64), value);
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 68), 0x11223344u);
  EXPECT_EQ(read<std::uint8_t>(**function, 2, 65), 0x77u);
  EXPECT_EQ(read<std::uint16_t>(**function, pci::kConfigurationRegion, 2), card_registers::cru::kPciId.device);
}

TEST_F(VfioUserClient, RefusesAccessesOutsideOrAskewWithoutAskingTheCard) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  std::uint32_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  EXPECT_TRUE((*function)->read(2, ScriptedServer::kBar2 - 4, bytes)) << "the last word";
  for (const std::uint64_t offset : {std::uint64_t{ScriptedServer::kBar2}, std::uint64_t{2}, ~std::uint64_t{3}})
    EXPECT_EQ((*function)->read(2, offset, bytes).error().code, "card.bad_access") << offset;
  EXPECT_EQ((*function)->read(1, 0, bytes).error().code, "card.bad_access") << "no such BAR";
  EXPECT_EQ((*function)->read(2, 0, bytes.first(3)).error().code, "card.bad_access");
}

TEST_F(VfioUserClient, PostsABatchInOneMessageAndALaterReadSeesIt) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  std::vector<pci::RegionOperation> writes{{2, 0, 4, true, 1}, {2, 4, 4, true, 2}, {2, 8, 8, true, 0x300000004}};
  ASSERT_TRUE((*function)->exchange(writes));
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 12), 3u);
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 4), 2u);
  EXPECT_EQ(server_->multi_writes, 1);
}

TEST_F(VfioUserClient, PostsSingleWritesToAServerThatTakesNoBatches) {
  serve();
  server_->write_multiple = false;
  auto function = connect();
  ASSERT_TRUE(function);
  std::vector<pci::RegionOperation> writes{{2, 0, 4, true, 1}, {2, 4, 4, true, 2}};
  ASSERT_TRUE((*function)->exchange(writes));
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 4), 2u);
  EXPECT_EQ(server_->write_messages, 2);
  EXPECT_EQ(server_->multi_writes, 0);
}

TEST_F(VfioUserClient, ExchangesReadsAndWritesInTheirOrder) {
  for (const bool batches : {true, false}) {
    serve();
    server_->write_multiple = batches;
    auto function = connect();
    ASSERT_TRUE(function);
    std::vector<pci::RegionOperation> operations;
    for (std::uint32_t i = 0; i < 3000; ++i) {  // more than one batch of messages
      operations.push_back({2, 0, 4, true, i});
      operations.push_back({2, 8, 8, true, (std::uint64_t{i} << 32) + 1});
      operations.push_back({2, 0, 4, false, 0});
      operations.push_back({2, 12, 4, false, 0});
    }
    ASSERT_TRUE((*function)->exchange(operations));
    for (std::uint32_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(operations[4 * i + 2].value, i);
      ASSERT_EQ(operations[4 * i + 3].value, i);
    }
    std::vector<pci::RegionOperation> long_run(700, {2, 16, 4, true, 5});  // more writes than fit into a message
    long_run.push_back({2, 16, 4, false, 0});
    const auto exchanged = (*function)->exchange(long_run);
    ASSERT_TRUE(exchanged) << exchanged.error().message();
    EXPECT_EQ(long_run.back().value, 5u);
    operations.push_back({2, ScriptedServer::kBar2, 4, false, 0});
    EXPECT_EQ((*function)->exchange(operations).error().code, "card.bad_access");
    server_.reset();
    std::filesystem::remove(directory_.file("s"));
  }
}

TEST_F(VfioUserClient, MapsARegionThatIsMappable) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  auto bar = Bar::open(**function, 0);
  ASSERT_TRUE(bar) << bar.error().message();
  ASSERT_TRUE(bar->mapped<std::uint32_t>(ScriptedServer::kBar0 - 4));
  EXPECT_FALSE(bar->mapped<std::uint64_t>(ScriptedServer::kBar0 - 4));
  ASSERT_TRUE(bar->write32(0x10, 77));
  EXPECT_EQ(static_cast<int>(server_->bar0[0x10]), 77);
  EXPECT_FALSE(bar->read32(ScriptedServer::kBar0));
  EXPECT_EQ((*function)->map(2, {0, 4096}).error().code, "card.bad_access");
}

TEST_F(VfioUserClient, GivesMemoryToTheCardWithTheFileBehindIt) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  std::vector<std::byte> memory(8192);
  EXPECT_EQ((*function)->dma_map(memory, -1, 0, 0x1000).error().code, "card.dma_memory");
  const base::UniqueFd file(::memfd_create("dma", 0));
  ASSERT_TRUE((*function)->dma_map(memory, file.get(), 0, 0x10000));
  EXPECT_EQ(server_->dma_maps, 1);
  EXPECT_EQ((*function)->bus_address(0x11000).value(), (std::pair<std::uint64_t, std::uint64_t>{0x11000, 4096}));
  EXPECT_FALSE((*function)->bus_address(0x12000));
  ASSERT_TRUE((*function)->dma_unmap(0x10000, 8192));
  EXPECT_EQ((*function)->dma_unmap(0x10000, 8192).error().code, "card.refused");
}

TEST_F(VfioUserClient, CountsInterruptsInAnEventfd) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  const auto fd = (*function)->interrupt(3);
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_EQ((*function)->interrupt(3).value(), *fd);
  std::uint64_t count = 0;
  ASSERT_EQ(::read(*fd, &count, sizeof count), 8) << "the server raises each vector when it gets its eventfd";
  EXPECT_EQ(count, 1u);
  EXPECT_FALSE((*function)->interrupt(8));
}

TEST_F(VfioUserClient, ResetsAndSwitchesTheBusMasterBit) {
  serve();
  auto function = connect();
  ASSERT_TRUE(function);
  ASSERT_TRUE((*function)->set_bus_master(true));
  EXPECT_EQ(read<std::uint16_t>(**function, pci::kConfigurationRegion, 4), 4u);
  ASSERT_TRUE((*function)->set_bus_master(false));
  EXPECT_EQ(read<std::uint16_t>(**function, pci::kConfigurationRegion, 4), 0u);
  EXPECT_TRUE((*function)->reset());
}

TEST_F(VfioUserClient, SaysThatNobodyListens) {
  const auto function = connect();
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, "card.gone");
}

TEST_F(VfioUserClient, DoesNotWaitForEverForASilentCard) {
  std::atomic<bool> silent = false;
  serve([&](int, const wire::Header&, const wire::Request& request) {
    return silent && std::holds_alternative<wire::RegionRead>(request);
  });
  auto function = connect(std::chrono::seconds(1));
  ASSERT_TRUE(function);
  silent = true;
  std::uint32_t word = 0;
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.timeout");
  silent = false;
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.timeout")
      << "a late answer would be mistaken for that of another request";
}

TEST_F(VfioUserClient, ACardThatStandsStillForAWhileGoesOn) {
  std::atomic<bool> stands_still = false;
  serve([&](int, const wire::Header&, const wire::Request& request) {
    if (stands_still && std::holds_alternative<wire::RegionRead>(request)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      stands_still = false;
    }
    return false;
  });
  auto function = pci::open_vfio_user(directory_.file("s"), kAddress,
                                      {.patience = std::chrono::milliseconds(100), .silence = std::chrono::seconds(60)});
  ASSERT_TRUE(function) << function.error().message();
  stands_still = true;
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 0), 0u);
  EXPECT_FALSE(stands_still);
}

TEST_F(VfioUserClient, OnlyARunWaitsLongForASilentCard) {
  pci::FoundFunction found{.address = kAddress, .back_end = pci::BackEnd::vfio_user, .place = directory_.file("s")};
  EXPECT_EQ(found.silence, std::chrono::seconds(2)) << "a verb ends soon after Ctrl-C";
  EXPECT_EQ(pci::VfioUserSettings{}.silence, found.silence);
  std::atomic<bool> silent = false;
  serve([&](int, const wire::Header&, const wire::Request& request) {
    return silent && std::holds_alternative<wire::RegionRead>(request);
  });
  found.silence = std::chrono::milliseconds(200);
  auto function = pci::open_function(found);
  ASSERT_TRUE(function) << function.error().message();
  silent = true;
  std::uint32_t word = 0;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.timeout");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30)) << "the wait is the function's own";
}

TEST_F(VfioUserClient, AnOrderlyEndDoesNotWaitForACardThatStandsStill) {
  std::atomic<bool> silent = false;
  serve([&](int, const wire::Header&, const wire::Request& request) {
    return silent && std::holds_alternative<wire::RegionRead>(request);
  });
  auto function = pci::open_vfio_user(directory_.file("s"), kAddress,
                                      {.patience = std::chrono::milliseconds(300), .silence = std::chrono::hours(1)});
  ASSERT_TRUE(function) << function.error().message();
  silent = true;
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    (*function)->hurry();
  });
  std::uint32_t word = 0;
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.timeout");
  ends.join();
}

TEST_F(VfioUserClient, WaitsForAWholeAnswerNotForEachByteOfIt) {
  // A byte comes before each half of the patience is over: no single wait is too long, but the answer never ends.
  std::atomic<bool> drips = false, heard = false;
  serve([&](int socket, const wire::Header& header, const wire::Request& request) {
    if (!drips || !std::holds_alternative<wire::RegionRead>(request)) return false;
    wire::MessageWriter out;
    (void)out.reply_read(header, std::get<wire::RegionRead>(request));
    for (std::size_t i = 0;
         base::send_all(socket, out.bytes().subspan(i % 8, 1), {}, std::chrono::seconds(1)).status == base::IoStatus::done;
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    heard = true;
    return true;
  });
  auto function = connect(std::chrono::seconds(1));
  ASSERT_TRUE(function);
  drips = true;
  std::uint32_t word = 0;
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.timeout");
  while (!heard) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(VfioUserClient, OpensInOnePatienceHoweverManyAnswersThatTakes) {
  // Each answer comes in time, but all together take too long.
  serve([&](int, const wire::Header&, const wire::Request& request) {
    if (!std::holds_alternative<wire::Version>(request)) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return false;
  });
  const auto function = connect(std::chrono::milliseconds(700));
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, "card.timeout");
}

TEST_F(VfioUserClient, NoticesThatTheCardHungUp) {
  serve([&](int socket, const wire::Header&, const wire::Request& request) {
    if (std::holds_alternative<wire::RegionRead>(request)) ::shutdown(socket, SHUT_RDWR);
    return std::holds_alternative<wire::RegionRead>(request);
  });
  auto function = connect();
  ASSERT_TRUE(function);
  std::uint32_t word = 0;
  EXPECT_EQ((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))).error().code, "card.gone");
  std::vector<pci::RegionOperation> one{{2, 0, 4, true, 1}};
  EXPECT_EQ((*function)->exchange(one).error().code, "card.gone");
}

TEST_F(VfioUserClient, AnswersARequestOfTheServerWithARefusal) {
  std::atomic<bool> refused{false};
  serve([&](int socket, const wire::Header&, const wire::Request& request) {
    if (!std::holds_alternative<wire::RegionRead>(request) || refused) return false;
    wire::Header dma{.id = 99, .command = static_cast<std::uint16_t>(wire::Command::dma_read), .size = 32};
    std::array<std::byte, 32> message{};
    std::memcpy(message.data(), &dma.id, 2);
    std::memcpy(message.data() + 2, &dma.command, 2);
    std::memcpy(message.data() + 4, &dma.size, 4);
    base::send_all(socket, message, {}, std::chrono::seconds(1));
    std::array<std::byte, 16> answer{};
    base::ReceivedFds fds;
    base::receive_all(socket, answer, fds, std::chrono::seconds(5));
    refused = wire::read_header(answer).id == 99 && wire::read_header(answer).is_error();
    return false;
  });
  auto function = connect();
  ASSERT_TRUE(function);
  EXPECT_EQ(read<std::uint32_t>(**function, 2, 0), 0u);
  EXPECT_TRUE(refused);
}

TEST_F(VfioUserClient, SaysThatACardHasTooManyClients) {
  serve([](int socket, const wire::Header& header, const wire::Request& request) {
    if (!std::holds_alternative<wire::Version>(request)) return false;
    wire::MessageWriter out;
    out.error(header, EUSERS);
    base::send_all(socket, out.bytes(), {}, std::chrono::seconds(1));
    return true;
  });
  const auto function = connect();
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, "card.refused");
  EXPECT_THAT(function.error().what, testing::HasSubstr(std::strerror(EUSERS)));
  EXPECT_THAT(function.error().next, testing::HasSubstr("its limit of clients"));
}

/// All kinds of invalid answers: the client returns an error, and never waits or reads beyond them.
class VfioUserClientHostile : public VfioUserClient, public testing::WithParamInterface<int> {};

TEST_P(VfioUserClientHostile, SurvivesWrongAnswers) {
  serve([&](int socket, const wire::Header& header, const wire::Request& request) {
    if (!std::holds_alternative<wire::RegionRead>(request)) return false;
    std::array<std::byte, 64> bytes{};
    std::uint32_t size = 36;
    std::uint16_t id = header.id;
    std::uint32_t flags = wire::Header::kReply;
    std::size_t send = 36;
    switch (GetParam()) {
      case 0: size = 3; break;
      case 1: size = 0xffffffff; break;
      case 2: id = static_cast<std::uint16_t>(id + 1); break;
      case 3: send = size = 16; break;  // no data
      case 4: send = size = 34; break;  // truncated data
      case 5: size = 64; break;         // announces more than it sends
      case 6: flags = 7; break;         // neither command nor reply
      default: break;
    }
    std::memcpy(bytes.data(), &id, 2);
    std::memcpy(bytes.data() + 2, &header.command, 2);
    std::memcpy(bytes.data() + 4, &size, 4);
    std::memcpy(bytes.data() + 8, &flags, 4);
    const std::uint32_t count = 4;
    std::memcpy(bytes.data() + 28, &count, 4);
    base::send_all(socket, std::span(bytes).first(send), {}, std::chrono::seconds(1));
    return true;
  });
  auto function = connect(std::chrono::milliseconds(100));
  ASSERT_TRUE(function);
  std::uint32_t word = 0;
  EXPECT_FALSE((*function)->read(2, 0, std::as_writable_bytes(std::span(&word, 1))));
}

INSTANTIATE_TEST_SUITE_P(Answers, VfioUserClientHostile, testing::Range(0, 7));

}  // namespace
}  // namespace rodeo::card
