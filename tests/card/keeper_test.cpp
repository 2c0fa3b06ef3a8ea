#include "card/pci/keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "card/pci/held_memory.h"
#include "card/pci/keeper_client.h"
#include "card/pci/regions.h"
#include "card/pci/vfio.h"
#include "formats/temporary_directory.h"

namespace rodeo::card::pci {
namespace {

/// A keeper in a thread; clients of this process find its socket.
class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    ::setenv("RODEO_KEEPER_SOCKET", socket_.c_str(), 1);
    ::setenv("RODEO_KEEPER", "/bin/false", 1);
  }
  ~KeeperTest() override {
    stop();
    ::unsetenv("RODEO_KEEPER_SOCKET");
    ::unsetenv("RODEO_KEEPER");
  }
  void start(std::chrono::seconds idle = std::chrono::seconds{30}) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    thread_ = std::thread([this, idle, fd = ready[1]] {
      KeeperSettings settings{socket_, "", idle, fd, stop_.get()};
      result_ = run_keeper(settings);
    });
    std::array<char, 16> said{};
    EXPECT_EQ(::read(ready[0], said.data(), said.size()), 5);
    EXPECT_STREQ(said.data(), "ready");
    ::close(ready[0]);
  }
  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  Descriptor connect_raw() const {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static Error refusal(KeeperClient& client, KeeperOperation operation, const char* address = "ffff:1e:1f.7") {
    KeeperRequest request;
    request.operation = operation;
    request.address = Address::parse(address).value();
    const auto answer = client.ask(request);
    EXPECT_FALSE(answer);
    return answer ? Error{} : answer.error();
  }

  test::TemporaryDirectory directory_;
  std::string socket_ = directory_.file("keeper.sock");
  Descriptor stop_{::eventfd(0, EFD_CLOEXEC)};
  std::thread thread_;
  Result<void> result_;
};

TEST_F(KeeperTest, SaysWhyAFunctionCannotBeHad) {
  start();
  const auto function = open_vfio(Address::parse("ffff:1e:1f.7").value());
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, "card.not_found");
  EXPECT_NE(function.error().what.find("ffff:1e:1f.7"), std::string::npos);
  EXPECT_NE(function.error().next, "");
}

TEST_F(KeeperTest, IsForItsUserAndOneGroup) {
  start();
  struct stat found{};
  ASSERT_EQ(::stat(socket_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0660u);
  EXPECT_EQ(found.st_uid, ::geteuid());
}

TEST_F(KeeperTest, MemoryNeedsAFunctionFirst) {
  start();
  const auto client = KeeperClient::connect();
  ASSERT_TRUE(client);
  for (const KeeperOperation operation :
       {KeeperOperation::map, KeeperOperation::unmap, KeeperOperation::physical, KeeperOperation::reset})
    EXPECT_EQ(refusal(**client, operation).code, "card.keeper");
  EXPECT_EQ(refusal(**client, KeeperOperation::keep).code, "card.keeper");
}

TEST_F(KeeperTest, TellsItsStateAndEndsWhenTold) {
  EXPECT_EQ(keeper_status().value(), "");  // no keeper runs
  EXPECT_FALSE(stop_keeper().value());
  start();
  EXPECT_EQ(keeper_status().value(), "{\"functions\":[]}");
  EXPECT_TRUE(stop_keeper().value());
  thread_.join();
  EXPECT_TRUE(result_);
  EXPECT_EQ(::access(socket_.c_str(), F_OK), -1);
}

TEST_F(KeeperTest, EndsByItselfWhenNobodyIsThere) {
  start(std::chrono::seconds{1});
  thread_.join();
  EXPECT_TRUE(result_);
}

TEST_F(KeeperTest, ThereIsOneAtATime) {
  start();
  const auto second = run_keeper({socket_, "", std::chrono::seconds{1}, -1, -1});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "card.held");
  EXPECT_TRUE(keeper_status());
}

TEST_F(KeeperTest, AKeeperThatCannotStartSaysSo) {
  const auto client = KeeperClient::connect();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, "card.keeper");
  EXPECT_NE(client.error().what.find("/bin/false"), std::string::npos);
}

TEST_F(KeeperTest, AProgramThatIsNotThereIsNamed) {
  ::setenv("RODEO_KEEPER", "/nonexistent/rodeo", 1);
  const auto client = KeeperClient::connect();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, "card.keeper");
  EXPECT_NE(client.error().what.find("/nonexistent/rodeo: No such file or directory"), std::string::npos);
}

TEST_F(KeeperTest, AGroupThatIsNotThereIsRefused) {
  const auto done = run_keeper({socket_, "no_such_group_here", std::chrono::seconds{1}, -1, -1});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().next.find("groupadd"), std::string::npos);
}

TEST_F(KeeperTest, NonsenseEndsTheConnectionAndNoOther) {
  start();
  const auto other = KeeperClient::connect();
  ASSERT_TRUE(other);
  for (const std::size_t size : {1, 39, 41, 40000}) {
    const Descriptor socket = connect_raw();
    const std::vector<std::byte> nonsense(size, std::byte{0x5a});
    ASSERT_TRUE(send_packet(socket.get(), nonsense));
    const auto reply = receive_packet(socket.get(), std::chrono::seconds{10});
    ASSERT_TRUE(reply);
    EXPECT_EQ(decode_reply(reply->bytes, KeeperOperation::status).error().code, "card.keeper");
    EXPECT_TRUE(receive_packet(socket.get(), std::chrono::seconds{10})->bytes.empty());
  }
  KeeperRequest request;
  EXPECT_TRUE((*other)->ask(request));
}

TEST_F(KeeperTest, AClientOfAKeeperThatEndedIsTold) {
  start();
  const auto client = KeeperClient::connect();
  ASSERT_TRUE(client);
  stop();
  EXPECT_EQ((*client)->ask(KeeperRequest{}).error().code, "card.gone");
  EXPECT_EQ((*client)->ask(KeeperRequest{}).error().code, "card.gone");
}

TEST(KeeperMessages, ARefusalKeepsItsFourTexts) {
  const Error error{"card.held", "what", "where", "next"};
  const auto back = decode_reply(encode(KeeperOperation::map, error), KeeperOperation::map);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message(), error.message());
}

class MemoryFile {
 public:
  explicit MemoryFile(std::size_t bytes) : fd_(::memfd_create("test", MFD_CLOEXEC)) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no memory");
  }
  int fd() const { return fd_.get(); }

 private:
  Descriptor fd_;
};

TEST(HeldMemory, IsWhatItsFileHolds) {
  const MemoryFile file(1 << 16);
  ASSERT_EQ(::pwrite(file.fd(), "held", 4, 4096), 4);
  const auto held = HeldMemory::hold(file.fd(), 4096, 8192, false);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->memory().size(), 8192u);
  EXPECT_EQ(std::memcmp(held->memory().data(), "held", 4), 0);
}

TEST(HeldMemory, IsWithinItsFileAndInWholePages) {
  const MemoryFile file(1 << 16);
  const std::uint64_t end = 1 << 16;
  for (const auto& [offset, bytes] : std::initializer_list<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {1, 4096}, {0, 100}, {end, 4096}, {4096, end}, {UINT64_MAX - 4095, 4096}, {0, UINT64_MAX - 4095}}) {
    const auto held = HeldMemory::hold(file.fd(), offset, bytes, false);
    ASSERT_FALSE(held) << offset << " " << bytes;
    EXPECT_EQ(held.error().code, "card.dma_memory");
  }
}

TEST(HeldMemory, WithoutAnIommuItMustBeOnHugePages) {
  const MemoryFile file(1 << 16);
  EXPECT_EQ(HeldMemory::hold(file.fd(), 0, 4096, true).error().code, "card.not_contiguous");
}

TEST(HeldMemory, FilesThatCouldMakeTheKeeperWaitAreRefused) {
  const Descriptor proc(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(HeldMemory::hold(proc.get(), 0, 4096, false));
  const Descriptor event(::eventfd(0, EFD_CLOEXEC));
  EXPECT_FALSE(HeldMemory::hold(event.get(), 0, 4096, false));
}

TEST(Regions, AreReadAndWrittenWithinTheirBounds) {
  const MemoryFile file(1 << 16);
  Regions regions("card");
  regions.add(0, file.fd(), 8192, FunctionRegion{8192, true, true, {{0, 4096}}},
              false);  // the second page belongs to the kernel
  regions.add(2, file.fd(), 0, FunctionRegion{4096, true, false, {}}, true);
  const std::uint32_t word = 0x12345678;
  std::uint32_t back = 0;
  const auto out = std::as_bytes(std::span(&word, 1));
  const auto in = std::as_writable_bytes(std::span(&back, 1));
  for (const std::uint64_t offset : {0, 4092, 4096, 8188}) {
    ASSERT_TRUE(regions.write(0, offset, out));
    back = 0;
    ASSERT_TRUE(regions.read(0, offset, in));
    EXPECT_EQ(back, word);
    ASSERT_EQ(::pread(file.fd(), &back, 4, static_cast<off_t>(8192 + offset)), 4);
    EXPECT_EQ(back, word);
  }
  for (const std::uint64_t offset : std::initializer_list<std::uint64_t>{2, 8192, 8190, UINT64_MAX - 3})
    EXPECT_EQ(regions.read(0, offset, in).error().code, "card.bad_access") << offset;
  std::array<std::byte, 3> three{};
  EXPECT_FALSE(regions.read(0, 0, three));
  EXPECT_FALSE(regions.read(1, 0, in));    // absent
  EXPECT_FALSE(regions.read(99, 0, in));   // invalid region number
  EXPECT_FALSE(regions.write(2, 0, out));  // not writable
  EXPECT_FALSE(regions.read(2, 0, in));    // not mappable
  EXPECT_TRUE(regions.map(0, {0, 4096}));
  EXPECT_FALSE(regions.map(0, {0, 8192}));
  EXPECT_FALSE(regions.map(0, {UINT64_MAX - 4095, 4096}));
}

}  // namespace
}  // namespace rodeo::card::pci
