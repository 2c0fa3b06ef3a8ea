// The server's side of vfio-user (docs/reference/protocols/vfio-user.md), with correct, wrong and vanished clients.
#include "emulator/server.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "emulator/card_fixture.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;

class ServerTest : public CardTest {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    start(settings(felix()));
  }
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(ServerTest, EndsAlsoWhileClientsGo) {
  // A leaving client wakes the server's thread as the stop does: neither event may hide the other.
  for (int round = 0; round < 300; ++round) {
    auto one = std::make_unique<VfioClient>(socket());
    auto other = std::make_unique<VfioClient>(socket());
    one.reset();
    std::this_thread::sleep_for(std::chrono::microseconds(round % 20 * 10));
    std::jthread going([&] { other.reset(); });
    emulator_.reset();
    going.join();
    start(settings(felix()));
  }
}

TEST_F(ServerTest, NegotiatesTheSmallerMinorVersion) {
  VfioClient client(socket(), false);
  const Reply reply = client.call(vfio::Version{.minor = 0});
  const auto version = vfio::decode_version(reply.payload);
  ASSERT_TRUE(version.has_value());
  EXPECT_EQ(version->major, 0);
  EXPECT_EQ(version->minor, 0);
  EXPECT_EQ(version->capabilities.max_data_xfer_size, vfio::kDefaultTransferBytes);
  EXPECT_TRUE(version->capabilities.write_multiple);
}

TEST_F(ServerTest, TellsTheClientThatIsOneTooManyWhatIsWrong) {
  std::vector<std::unique_ptr<VfioClient>> clients;
  for (int i = 0; i < 256; ++i) clients.push_back(std::make_unique<VfioClient>(socket()));
  VfioClient one_more(socket(), false);
  EXPECT_EQ(one_more.call(vfio::Version{}).error(), EUSERS);
  EXPECT_FALSE(one_more.receive().has_value());
  EXPECT_EQ(clients.back()->call(vfio::DeviceInfo{}).error(), 0);
}

TEST_F(ServerTest, OneClientCannotTakeTheMapsOfAllOthers) {
  VfioClient greedy(socket(), false);
  const auto version = vfio::decode_version(greedy.call(vfio::Version{}).payload);
  ASSERT_TRUE(version.has_value());
  const base::UniqueFd memory(::memfd_create("maps", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  const auto map = [&](VfioClient& client, std::uint64_t page) {
    const std::array fd{memory.get()};
    return client.call(vfio::DmaMap{.flags = 3, .address = page * 4096, .size = 4096}, fd).error();
  };
  for (std::uint64_t page = 0; page < version->capabilities.max_dma_maps; ++page) ASSERT_EQ(map(greedy, page), 0) << page;
  EXPECT_EQ(map(greedy, version->capabilities.max_dma_maps), ENOSPC);
  VfioClient other(socket());
  EXPECT_EQ(map(other, 0), 0);
}

TEST_F(ServerTest, HangsUpOnAnotherMajorVersion) {
  VfioClient client(socket(), false);
  EXPECT_EQ(client.call(vfio::Version{.major = 1}).error(), EINVAL);
  EXPECT_FALSE(client.receive().has_value());
}

TEST_F(ServerTest, HangsUpOnASecondVersion) {
  VfioClient client(socket());
  EXPECT_EQ(client.call(vfio::Version{}).error(), EINVAL);
  EXPECT_FALSE(client.receive().has_value());
}

TEST_F(ServerTest, AnswersNothingBeforeTheVersion) {
  VfioClient client(socket(), false);
  EXPECT_EQ(client.call(vfio::DeviceInfo{}).error(), EINVAL);
  EXPECT_EQ(client.call(vfio::Version{}).error(), 0);
  EXPECT_EQ(client.call(vfio::DeviceInfo{}).error(), 0);
}

TEST_F(ServerTest, SaysWhatItHas) {
  VfioClient client(socket());
  const auto info = vfio::decode_device_info(client.call(vfio::DeviceInfo{}).payload);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->flags, vfio::DeviceInfo::kReset | vfio::DeviceInfo::kPci);
  EXPECT_EQ(info->regions, 9U);
  const auto irqs = vfio::decode_irq_info(client.call(vfio::IrqInfo{.index = 1}).payload);
  ASSERT_TRUE(irqs.has_value());
  EXPECT_EQ(irqs->count, 8U);
  EXPECT_EQ(vfio::decode_irq_info(client.call(vfio::IrqInfo{.index = 0}).payload)->count, 0U);
  EXPECT_EQ(client.call(vfio::IrqInfo{.index = 5}).error(), EINVAL);
  const auto config = vfio::decode_region_info(client.call(vfio::RegionInfo{.index = 7}).payload);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->info.size, 4096U);
  EXPECT_EQ(vfio::decode_region_info(client.call(vfio::RegionInfo{.index = 5}).payload)->info.size, 0U);
  EXPECT_EQ(client.call(vfio::RegionInfo{.index = 9}).error(), EINVAL);
  EXPECT_EQ(client.call(vfio::RegionIoFds{.index = 0}).error(), 0);
  EXPECT_EQ(client.call(vfio::DeviceFeature{}).error(), ENOTSUP);
}

TEST_F(ServerTest, TellsHowMuchRoomAreasNeedBeforeItSendsTheDescriptor) {
  VfioClient client(socket());
  Reply first = client.call(vfio::RegionInfo{.argsz = 32, .index = 0});
  const auto info = vfio::decode_region_info(first.payload);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->info.argsz, vfio::region_info_bytes(1));
  EXPECT_TRUE(first.fds.fds.empty());
  Reply second = client.call(vfio::RegionInfo{.argsz = info->info.argsz, .index = 0});
  const auto whole = vfio::decode_region_info(second.payload);
  ASSERT_TRUE(whole && whole->areas);
  EXPECT_EQ(*whole->areas, (std::vector<vfio::Area>{{0, 4096}}));
  ASSERT_EQ(second.fds.fds.size(), 1U);
  // A trapped read sees values written to the mapped memory, and vice versa.
  auto* const bar =
      static_cast<std::uint64_t*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, second.fds.fds[0].get(), 0));
  ASSERT_NE(bar, MAP_FAILED);
  bar[0] = 0x1122334455667788;
  EXPECT_EQ(client.read<std::uint64_t>(0, 0), 0x1122334455667788U);
  client.write<std::uint64_t>(0, 8, 42);
  EXPECT_EQ(bar[1], 42U);
  EXPECT_NE(::ftruncate(second.fds.fds[0].get(), 0), 0) << "a client must not be able to truncate the card's memory";
  ::munmap(bar, 4096);
}

TEST_F(ServerTest, DescriptorsStayWithTheirMessageInAPipeline) {
  VfioClient client(socket());
  vfio::MessageWriter writer;
  writer.request(1, vfio::RegionInfo{.argsz = 32, .index = 0});
  writer.request(2, vfio::RegionInfo{.argsz = 64, .index = 0});
  writer.request(3, vfio::RegionInfo{.argsz = 32, .index = 0});
  writer.request(4, vfio::RegionInfo{.argsz = 64, .index = 0});
  ASSERT_TRUE(client.send(writer.bytes()));
  for (const std::size_t expected : {0U, 1U, 0U, 1U}) {
    const auto reply = client.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->fds.fds.size(), expected);
  }
}

TEST_F(ServerTest, MapsOverlapUnmapsAndLimitsAreChecked) {
  VfioClient client(socket());
  const SharedMemory memory(1 << 20);
  EXPECT_EQ(client.map(memory, 0x10000000), 0);
  EXPECT_EQ(client.map(memory, 0x10000000), EEXIST);
  EXPECT_EQ(client.map(memory, 0x100ff000, 4096), EEXIST);
  EXPECT_EQ(client.map(memory, 0xfff0000, 1 << 17, 0), EEXIST);
  EXPECT_EQ(client.map(memory, 0x10100000, 4096), 0);
  EXPECT_EQ(client.unmap(0x20000000, 4096), ENOENT);
  EXPECT_EQ(client.unmap(0x10000000, 4096), EINVAL) << "part of a map";
  EXPECT_EQ(client.unmap(0x10000000, (1 << 20) + 4096), 0) << "two maps at once";
  EXPECT_EQ(client.unmap(0x10000000, 1 << 20), ENOENT);
  EXPECT_EQ(client.map(memory, 0x123, 4096), EINVAL);
  EXPECT_EQ(client.map(memory, 0x1000, 100), EINVAL);
  EXPECT_EQ(client.map(memory, 0x1000, 0), EINVAL);
  EXPECT_EQ(client.map(memory, 0xfffffffffffff000, 8192), EINVAL);
  EXPECT_EQ(client.map(memory, 0x1000, 2 << 20), EINVAL) << "longer than the file";
  EXPECT_EQ(client.call(vfio::DmaMap{.flags = 3, .address = 0x1000, .size = 4096}).error(), EOPNOTSUPP);
  EXPECT_EQ(client.map(memory, 0x1000, 4096), 0);
  EXPECT_EQ(client.call(vfio::DmaUnmap{.flags = vfio::DmaUnmap::kAll}).error(), 0);
  EXPECT_EQ(client.unmap(0x1000, 4096), ENOENT);
}

TEST_F(ServerTest, ReadAndWriteTogetherInOneOrder) {
  VfioClient client(socket());
  vfio::MessageWriter writer;
  std::vector<vfio::SmallWrite> writes;
  for (unsigned i = 0; i < 100; ++i) writes.push_back({{.offset = 0x60, .region = 2, .count = 8}, i});
  writer.write_multi(1, writes, vfio::Header::kNoReply);
  writer.request(2, vfio::RegionRead{{.offset = 0x60, .region = 2, .count = 8}});
  ASSERT_TRUE(client.send(writer.bytes()));
  const auto reply = client.receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.id, 2);
  const auto data = vfio::decode_region_data(reply->payload);
  EXPECT_EQ(static_cast<unsigned>((*data)[0]), 99U);
  writes[1].offset = 1 << 20;
  writer.clear();
  writer.write_multi(3, writes);
  ASSERT_TRUE(client.send(writer.bytes()));
  EXPECT_EQ(client.receive()->error(), EINVAL) << "one access is beyond the region: none is done";
}

TEST_F(ServerTest, AccessesBeyondARegionAreRefused) {
  VfioClient client(socket());
  const auto read = [&](std::uint64_t offset, unsigned region, unsigned count) {
    return client.call(vfio::RegionRead{{.offset = offset, .region = region, .count = count}}).error();
  };
  EXPECT_EQ(read(65532, 2, 4), 0);
  EXPECT_EQ(read(65532, 2, 8), EINVAL);
  EXPECT_EQ(read(~std::uint64_t{0}, 2, 4), EINVAL);
  EXPECT_EQ(read(0, 2, 0), EINVAL);
  EXPECT_EQ(read(0, 3, 4), EINVAL);
  EXPECT_EQ(read(0, 99, 4), EINVAL);
  EXPECT_EQ(read(0, 2, 65536), 0);
  EXPECT_EQ(read(1, 7, 7), 0);
  EXPECT_EQ(read(0, 2, 2 << 20), EINVAL);
}

TEST_F(ServerTest, ConfigurationSpaceAnswersAsPciDevicesDo) {
  VfioClient client(socket());
  EXPECT_EQ(client.read<std::uint32_t>(7, 0), 0x042710dcU);
  client.write<std::uint32_t>(7, 0x10, 0xffffffff);
  EXPECT_EQ(client.read<std::uint32_t>(7, 0x10), 0xfffff000U) << "BAR 0 has 4 KiB";
  client.write<std::uint32_t>(7, 0x18, 0xffffffff);
  EXPECT_EQ(client.read<std::uint32_t>(7, 0x18), 0xffff0000U) << "BAR 2 has 64 KiB";
  client.write<std::uint32_t>(7, 0x24, 0xffffffff);
  EXPECT_EQ(client.read<std::uint32_t>(7, 0x24), 0U);
  // The chain of capabilities ends, and contains power management, MSI and PCI Express.
  std::vector<unsigned> found;
  for (auto at = client.read<std::uint8_t>(7, 0x34); at != 0 && found.size() < 10;
       at = client.read<std::uint8_t>(7, at + 1U))
    found.push_back(client.read<std::uint8_t>(7, at));
  EXPECT_EQ(found, (std::vector<unsigned>{1, 5, 16}));
  client.set_bus_master();
  EXPECT_EQ(client.read<std::uint16_t>(7, 4), 6);
  EXPECT_EQ(client.call(vfio::DeviceReset{}).error(), 0);
  EXPECT_EQ(client.read<std::uint16_t>(7, 4), 0);
}

TEST_F(ServerTest, InterruptsReachWhoAskedForThem) {
  VfioClient one(socket()), two(socket());
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::array fds{event.get()};
  EXPECT_EQ(one.call(
                   vfio::SetIrqs{
                       .flags = vfio::SetIrqs::kDataEventfd | vfio::SetIrqs::kTrigger, .index = 1, .start = 3, .count = 1},
                   fds)
                .error(),
            0);
  two.write<std::uint64_t>(2, 0x1800, 3);  // interrupt_test
  std::uint64_t count = 0;
  EXPECT_EQ(::read(event.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(one.call(vfio::SetIrqs{.flags = vfio::SetIrqs::kDataNone | vfio::SetIrqs::kTrigger, .index = 1}).error(), 0);
  two.write<std::uint64_t>(2, 0x1800, 3);
  EXPECT_LT(::read(event.get(), &count, sizeof count), 0) << "the card has no descriptor any more";
  EXPECT_EQ(one.call(
                   vfio::SetIrqs{
                       .flags = vfio::SetIrqs::kDataEventfd | vfio::SetIrqs::kTrigger, .index = 1, .start = 7, .count = 2},
                   fds)
                .error(),
            EINVAL);
  EXPECT_EQ(
      one.call(vfio::SetIrqs{.flags = vfio::SetIrqs::kDataNone | vfio::SetIrqs::kMask, .index = 1, .count = 1}).error(),
      ENOTSUP);
}

TEST_F(ServerTest, TwoClientsShareRegistersAndNotMaps) {
  VfioClient one(socket()), two(socket());
  const SharedMemory memory(4096);
  EXPECT_EQ(one.map(memory, 0x1000), 0);
  EXPECT_EQ(two.map(memory, 0x1000), 0) << "it has its own address space";
  EXPECT_EQ(one.unmap(0x1000, 4096), 0);
  EXPECT_EQ(two.unmap(0x1000, 4096), 0);
  one.write<std::uint64_t>(2, 0x60, 7);
  EXPECT_EQ(two.read<std::uint64_t>(2, 0x60), 7U);
  one.close();
  EXPECT_EQ(two.read<std::uint64_t>(2, 0x60), 7U) << "the card keeps its state";
}

TEST_F(ServerTest, BrokenMessagesCostTheConnectionAndNothingElse) {
  VfioClient bystander(socket());
  const auto hangs_up = [&](vfio::Header header) {
    VfioClient client(socket());
    std::array<std::byte, vfio::kHeaderBytes> bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    EXPECT_TRUE(client.send(bytes));
    return !client.receive().has_value();
  };
  EXPECT_TRUE(hangs_up({.id = 1, .command = 9, .size = 15}));
  EXPECT_TRUE(hangs_up({.id = 1, .command = 9, .size = 0xffffffff}));
  EXPECT_TRUE(hangs_up({.id = 1, .command = 9, .size = 32, .flags = 1}));
  {
    VfioClient half(socket());  // disconnects in the middle of a message
    const std::array<std::byte, 7> some{};
    half.send(some);
  }
  {
    VfioClient many(socket());
    vfio::MessageWriter writer;
    writer.request(1, vfio::DmaMap{.flags = 3, .address = 0x1000, .size = 4096});
    std::array<int, 20> fds;
    fds.fill(many.socket());
    EXPECT_TRUE(many.send(writer.bytes(), fds));
    const auto reply = many.receive();
    EXPECT_TRUE(!reply || reply->error() == EINVAL) << "more descriptors than the server accepts";
  }
  EXPECT_EQ(bystander.read<std::uint64_t>(2, 0x80), 0x2c8U);
}

TEST_F(ServerTest, ASlowClientHoldsNobodyUp) {
  VfioClient slow(socket()), other(socket());
  vfio::MessageWriter writer;
  for (std::uint16_t i = 0; i < 200; ++i) writer.request(i, vfio::RegionRead{{.offset = 0, .region = 2, .count = 65536}});
  EXPECT_TRUE(slow.send(writer.bytes()));  // 13 MB of replies that it does not read
  for (int i = 0; i < 50; ++i) EXPECT_EQ(other.read<std::uint64_t>(2, 0x80), 0x2c8U);
  for (std::uint16_t i = 0; i < 200; ++i) {
    const auto reply = slow.receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.id, i);
  }
}

TEST_F(ServerTest, AnyBytesLeaveItAlive) {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    VfioClient client(socket(), i % 2 == 0);
    std::vector<std::byte> bytes(random() % 300);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (i % 4 == 0 && bytes.size() >= 16) {
      const vfio::Header header{
          .id = 1, .command = static_cast<std::uint16_t>(random() % 20), .size = static_cast<std::uint32_t>(bytes.size())};
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    client.send(bytes);
  }
  VfioClient client(socket());
  EXPECT_EQ(client.read<std::uint64_t>(2, 0x80), 0x2c8U);
}

TEST_F(ServerTest, NothingIsLeftOfAThousandClients) {
  const SharedMemory memory(1 << 16);
  {
    VfioClient warm(socket());
  }
  ASSERT_TRUE(wait_until([&] { return emulator_->report().functions[0].clients == 0; }));
  const std::size_t before = open_descriptors();
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  const auto mapped_before = mappings();
  for (int i = 0; i < 1000; ++i) {
    VfioClient client(socket());
    ASSERT_EQ(client.map(memory, 0x1000), 0);
    const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
    const std::array fds{event.get()};
    ASSERT_EQ(
        client
            .call(vfio::SetIrqs{.flags = vfio::SetIrqs::kDataEventfd | vfio::SetIrqs::kTrigger, .index = 1, .count = 1}, fds)
            .error(),
        0);
    if (i % 3 == 0) client.unmap(0x1000, 1 << 16);
  }
  EXPECT_TRUE(wait_until([&] { return emulator_->report().functions[0].clients == 0; }));
  EXPECT_LE(open_descriptors(), before + 1);
  EXPECT_LE(mappings(), mapped_before + 300) << "some stacks and heaps of threads are kept for later threads";
}

TEST_F(ServerTest, AnAddressIsTakenOnceAndLeftClean) {
  EXPECT_THROW(emulator::Emulator again(settings(felix())), SetupError);
  emulator_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  // Files of a killed server do not block the next one.
  {
    std::ofstream(socket()) << "left";
  }
  {
    std::ofstream(directory_ / "0000:3b:00.0.lock") << "";
  }
  start(settings(felix()));
  VfioClient client(socket());
  EXPECT_EQ(client.read<std::uint64_t>(2, 0x80), 0x2c8U);
}

TEST_F(ServerTest, SurpriseRemovalEndsEverythingAndReplugStartsAnew) {
  VfioClient client(socket());
  client.write<std::uint64_t>(2, 0x60, 7);
  ASSERT_TRUE(emulator_->inject("felix", {.kind = emulator::FaultKind::removal}).has_value());
  EXPECT_FALSE(client.try_call(vfio::DeviceInfo{}).has_value());
  EXPECT_FALSE(std::filesystem::exists(socket()));
  ASSERT_TRUE(emulator_->inject("3b:00.0", {.kind = emulator::FaultKind::replug}).has_value());
  VfioClient again(socket());
  EXPECT_EQ(again.read<std::uint64_t>(2, 0x60), 0U) << "as after power-on";
}

}  // namespace
