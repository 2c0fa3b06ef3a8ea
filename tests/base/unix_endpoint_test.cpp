#include "base/unix_endpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace rodeo::base {
namespace {

namespace fs = std::filesystem;

class UnixEndpointTest : public testing::Test {
 protected:
  UnixEndpointTest() {
    char name[] = "/tmp/rodeo-endpoint-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~UnixEndpointTest() override { fs::remove_all(directory_); }

  fs::path path() const { return directory_ / "name.kind"; }
  fs::path lock() const { return directory_ / "name.kind.lock"; }
  Result<UnixEndpoint> opened() const {
    return UnixEndpoint::open({.path = path(), .taken = {"test.taken", "it is taken"}});
  }

  fs::path directory_;
};

TEST_F(UnixEndpointTest, ListensForThisUserAndLeavesNothingBehind) {
  {
    const auto endpoint = opened();
    ASSERT_TRUE(endpoint) << endpoint.error().message();
    struct stat about{};
    ASSERT_EQ(::lstat(path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0600U);
    EXPECT_FALSE(endpoint->accept()) << "there is no client";
    const auto client = connect_unix(path());
    ASSERT_TRUE(client);
    EXPECT_TRUE(endpoint->accept());
  }
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(UnixEndpointTest, ANameHasOneOwner) {
  const auto owner = opened();
  ASSERT_TRUE(owner);
  const auto other = opened();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, "test.taken");
  EXPECT_TRUE(has_listener(path())) << "the refused one has removed the name";
}

TEST_F(UnixEndpointTest, ReplacesWhatADeadProcessLeft) {
  (void)listen_unix(path());  // closed, but not removed
  (void)UniqueFd(::open(lock().c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_FALSE(has_listener(path()));
  EXPECT_TRUE(opened());
}

TEST_F(UnixEndpointTest, HidesAndKeepsItsName) {
  auto endpoint = opened();
  ASSERT_TRUE(endpoint);
  endpoint->hide();
  EXPECT_FALSE(*endpoint);
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_EQ(opened().error().code, "test.taken");
  EXPECT_TRUE(endpoint->listen());
  EXPECT_TRUE(has_listener(path()));
}

TEST_F(UnixEndpointTest, MovesWithItsName) {
  UnixEndpoint kept;
  {
    auto endpoint = opened();
    ASSERT_TRUE(endpoint);
    kept = std::move(*endpoint);
  }
  EXPECT_TRUE(has_listener(path()));
  kept = UnixEndpoint();
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(UnixEndpointTest, SaysWhatIsWrong) {
  const auto nowhere = UnixEndpoint::open({.path = directory_ / "no" / "where", .taken = {}});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, "base.runtime_dir");
  const auto endless = UnixEndpoint::open({.path = directory_ / std::string(120, 'x'), .taken = {}});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, "base.socket");
  EXPECT_TRUE(fs::is_empty(directory_));
}

}  // namespace
}  // namespace rodeo::base
